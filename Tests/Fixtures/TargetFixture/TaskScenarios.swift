// Jobs of Swift's tasks: every planned stall keeps a thread of the pool for 500 ms.

import CTaskHook
import Foundation
import StallAgent

let taskScenarios: [String: @Sendable (StallMonitor) async -> Void] = [
    "task-blocks": taskBlocks, "task-sleeps": taskSleeps, "task-priorities": taskPriorities,
    "task-label": taskLabel, "task-thread-label": taskThreadLabel,
    "tasks-exhausted": tasksExhausted,
    "tasks-busy": tasksBusy, "tasks-actor": tasksActor, "tasks-actor-stall": tasksActorStall,
    "tasks-earlier-hook": tasksEarlierHook, "tasks-later-hook": tasksLaterHook,
    "tasks-stopped": tasksStopped, "tasks-two-monitors": tasksTwoMonitors,
    "executor": executor, "executor-exhausted": executorExhausted,
    "executor-stopped": executorStopped, "tasks-open": tasksOpen, "suspicion": suspicion,
]

/// The queues of all priorities are known after this.
func settle() async { try? await Task.sleep(for: .milliseconds(200)) }

/// One handler blocks while another thread of the pool is free.
@Sendable func taskBlocks(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    await Task.detached { plannedStall() }.value
    await settle()
}

/// A job that resumes after a sleep goes through the hook as well.
@Sendable func taskSleeps(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    await Task.detached {
        try? await Task.sleep(for: .milliseconds(50))
        plannedStall()
    }.value
    await settle()
}

@Sendable func taskPriorities(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    for priority in [TaskPriority.background, .utility, .medium, .userInitiated] {
        // Waiting for its value would raise its priority.
        let isDone = DispatchSemaphore(value: 0)
        Task.detached(priority: priority) {
            plannedStall()
            isDone.signal()
        }
        onThread { isDone.wait() }
    }
    await settle()
}

/// The label is the task's: it goes with it to another thread, and stays away from other tasks.
@Sendable func taskLabel(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    await Task.detached {
        await monitor.withTaskActivity("GET /orders/:id") {
            for _ in 0..<20 { try? await Task.sleep(for: .milliseconds(2)) }
            await monitor.withTaskActivity("inner") { await Task.yield() }
            plannedStall()
        }
    }.value
    await settle()
    await Task.detached { plannedStall() }.value
    await settle()
}

/// A label of the thread's code, which does not suspend.
@Sendable func taskThreadLabel(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    await Task.detached { monitor.withActivity("decode") { plannedStall() } }.value
    await settle()
}

/// Each thread of the pool is held, and reported itself; that tasks wait is not reported once more.
@Sendable func tasksExhausted(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    monitor.watchCooperativePool()
    await settle()
    onThread {
        let group = DispatchGroup()
        for number in 0..<ProcessInfo.processInfo.activeProcessorCount + 1 {
            group.enter()
            Task.detached {
                number < ProcessInfo.processInfo.activeProcessorCount
                    ? plannedStall() : plannedWork()
                group.leave()
            }
            pause(0.01)
        }
        group.wait()
    }
    await settle()
}

@Sendable func tasksBusy(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<1000 { group.addTask { plannedWork() } }
    }
}

actor Ledger {
    private(set) var count = 0
    /// 1 ms of computing.
    func add() {
        let end = DispatchTime.now().uptimeNanoseconds + 1_000_000
        while DispatchTime.now().uptimeNanoseconds < end { count += 1 }
    }
    func block() { plannedStall() }
}

/// An actor that always has work keeps its thread; but each piece of it is short, and another task's.
@Sendable func tasksActor(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    let ledger = Ledger()
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<1000 { group.addTask { await ledger.add() } }
    }
}

/// One of them stalls in the middle.
@Sendable func tasksActorStall(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    let ledger = Ledger()
    await withTaskGroup(of: Void.self) { group in
        for number in 0..<800 {
            group.addTask { number == 400 ? await ledger.block() : await ledger.add() }
        }
    }
}

/// A hook that was installed before is called, and what it passes to the runtime is watched.
@Sendable func tasksEarlierHook(_ monitor: StallMonitor) async {
    task_hook_set()
    await taskBlocks(monitor)
    print(task_hook_count() > 0 ? "earlier hook called" : "earlier hook not called")
}

/// A hook that is set over the agent's and calls it.
@Sendable func tasksLaterHook(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    task_hook_set()
    await settle()
    await Task.detached { plannedStall() }.value
    await settle()
    print(task_hook_count() > 0 ? "later hook called" : "later hook not called")
}

/// Nothing is left behind, and tasks go on.
@Sendable func tasksStopped(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    print(task_hook_is_set() ? "set" : "not set")
    monitor.stop()
    print(task_hook_is_set() ? "left behind" : "taken back")
    await Task.detached { plannedStall() }.value
    await taskBlocks(monitor)
    print(task_hook_is_set() ? "set again" : "stays away")
}

@Sendable func tasksTwoMonitors(_ monitor: StallMonitor) async {
    let second = try! StallMonitor.start(
        .init(
            app: "second", version: "1", store: CommandLine.arguments[2] + ".second",
            threshold: .milliseconds(200)))
    nonisolated(unsafe) var count = 0
    second.onStall { _ in count += 1 }
    monitor.watchTasks()
    second.watchTasks()
    await settle()
    await Task.detached { plannedStall() }.value
    await settle()
    second.stop()
    print("second monitor: \(count)")
    await Task.detached { plannedStall() }.value
    await settle()
}

/// A task on threads of its own blocks one of them; jobs of the global executor are not watched.
@Sendable func executor(_ monitor: StallMonitor) async {
    let executor = monitor.taskExecutor
    await settle()
    await Task.detached(executorPreference: executor) {
        await Task.yield()
        await monitor.withTaskActivity("GET /orders/:id") { plannedStall() }
    }.value
    await settle()
}

/// One task more than threads: the last report shows the others.
@Sendable func executorExhausted(_ monitor: StallMonitor) async {
    let executor = monitor.taskExecutor
    await settle()
    await withTaskGroup(of: Void.self) { group in
        for number in 0...executor.threadCount {
            group.addTask(executorPreference: executor) {
                number < executor.threadCount ? plannedStall() : plannedWork()
            }
        }
    }
    await settle()
}

/// After the end of the agent tasks still run there.
@Sendable func executorStopped(_ monitor: StallMonitor) async {
    let executor = monitor.taskExecutor
    monitor.stop()
    let (first, second) = (
        Task(executorPreference: executor) { plannedStall() },
        Task(executorPreference: executor) { await Task.yield() }
    )
    await first.value
    await second.value
    print("ran")
}

/// Two requests are open while a third blocks its thread.
@Sendable func tasksOpen(_ monitor: StallMonitor) async {
    monitor.watchTasks()
    await settle()
    let open = ["GET /stock", "GET /report"].map { label in
        Task.detached {
            try? await monitor.withTaskActivity(label) { try await Task.sleep(for: .seconds(2)) }
        }
    }
    await settle()
    await Task.detached {
        await monitor.withTaskActivity("GET /orders/:id") { plannedStall() }
    }.value
    await settle()
    for task in open { task.cancel() }
}

/// What the hook says is in the report. A hook is called for each suspicion.
@Sendable func suspicion(_ monitor: StallMonitor) async {
    monitor.onSuspicion { loop, elapsed in
        ["queue depth": "7 of \(loop)", "early": "\(elapsed < .milliseconds(400))"]
    }
    onThread {
        let thread = monitor.watchCurrentThread(as: "decoder")
        thread.begin()
        plannedStall()
        thread.end()
    }
}
