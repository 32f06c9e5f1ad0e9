// Jobs of tasks that record themselves: when they began, on which thread, for how long, and how long they queued.

import CLinux
import CMishaps
import CTaskHook
import Foundation

/// A part of a job that ran without a suspension. Times in microseconds.
struct Span {
    var isPlanted: Bool
    /// Others' calls of the same actor came before it in its job, or after it.
    var isAmongOthers: Bool
    var kind: String
    var thread: Int32
    /// Wall clock.
    var start: Int64
    var duration: Int64
    /// The part of it in which its thread queued for a CPU, by the kernel's account.
    var queued: Int64
    /// How long the thread had queued for one before, in its life.
    var queuedBefore: Int64
    /// The task, and how often it had been enqueued: equal for two spans if it did not suspend between them.
    var task: UInt64
    var enqueued: UInt64
    var end: Int64 { start + duration }
}

extension [Span] {
    /// A sleep or another `await` need not suspend: not if what is awaited is there before the task has suspended, since
    /// its thread lost the CPU. Then the spans are one piece of work.
    var withoutSuspensions: [Span] {
        var joined: [Span] = []
        var last: [UInt64: Int] = [:]
        for span in sorted(by: { $0.start < $1.start }) {
            if let index = last[span.task], joined[index].enqueued == span.enqueued,
                joined[index].thread == span.thread, span.task != 0
            {
                joined[index].duration = span.end - joined[index].start
                joined[index].queued =
                    span.queuedBefore + span.queued - joined[index].queuedBefore
                joined[index].isPlanted = joined[index].isPlanted || span.isPlanted
            } else {
                last[span.task] = joined.count
                joined.append(span)
            }
        }
        return joined
    }
}

/// What happened in this process. The truth.
final class TaskTruth: @unchecked Sendable {
    // Unchecked because `lock` guards all that changes.
    private let lock = NSLock()
    private var all: [Span] = []
    private var healthyCount = 0
    private var allThreads: Set<Int32> = []

    func note(_ span: Span) {
        lock.withLock {
            all.append(span)
            allThreads.insert(span.thread)
            if !span.isPlanted { healthyCount += 1 }
        }
    }
    var spans: [Span] { lock.withLock { all } }
    var healthy: Int { lock.withLock { healthyCount } }
    var threads: Int { lock.withLock { allThreads.count } }
}

/// How a job occupies its thread.
enum Occupation: String, CaseIterable {
    case usleep, poll, semaphore, read, compute
}

/// In which job of a task a plant runs.
enum JobKind: String, CaseIterable {
    /// The first job of a task.
    case first
    /// A job that resumes after a sleep.
    case resumed
    /// A child of a group.
    case child
    /// A call of an actor that nobody else calls.
    case actorAlone
    /// One call of many of an actor, which runs them in turn.
    case actorBusy
}

actor Account {
    func run(_ body: () -> Void) { body() }
}

struct TaskVictims: Sendable {
    let threshold: Double
    let truth: TaskTruth
    /// The priorities of tasks; each has its own threads, as many as there are CPUs.
    static let priorities: [TaskPriority] = [
        .background, .utility, .medium, .high, .init(rawValue: 33),
    ]
    static let width = ProcessInfo.processInfo.activeProcessorCount

    /// Returns when a task of each priority has run: jobs enqueued before are not watched.
    static func waitForThreads() {
        for _ in 0..<2 {
            let group = DispatchGroup()
            for priority in priorities {
                group.enter()
                Task.detached(priority: priority) { group.leave() }
            }
            group.wait()
            usleep(200_000)
        }
    }

    /// Some stalls at once, on threads of any priority. Returns their number after they have ended.
    func plant() -> Int {
        let group = DispatchGroup()
        let places = Self.priorities.flatMap { [$0, $0] }.shuffled()
        let count = min(Int.random(in: 1...8), Self.priorities.count * Self.width)
        var computing = 0
        for priority in places.prefix(count) {
            var occupation = Occupation.allCases.randomElement()!
            // Several that compute would only starve each other.
            if occupation == .compute {
                if computing > 0 { occupation = .usleep }
                computing += 1
            }
            let length = threshold * (Bool.random() ? .random(in: 1...1.6) : .random(in: 1.6...8))
            start(JobKind.allCases.randomElement()!, occupation, for: length, priority, in: group)
            if Bool.random() { usleep(.random(in: 0...30_000)) }
        }
        group.wait()
        return count
    }

    private func start(
        _ kind: JobKind, _ occupation: Occupation, for length: Double, _ priority: TaskPriority,
        in group: DispatchGroup
    ) {
        let name = "\(kind) \(occupation) \(priority.rawValue)"
        let body = { @Sendable in occupy(occupation, for: length, name, isPlanted: true) }
        group.enter()
        Task.detached(priority: priority) {
            switch kind {
            case .first: body()
            case .resumed:
                try? await Task.sleep(for: .milliseconds(Int.random(in: 1...40)))
                body()
            case .child:
                await withTaskGroup(of: Void.self) { $0.addTask { body() } }
            case .actorAlone: await Account().run(body)
            case .actorBusy:
                let account = Account()
                await withTaskGroup(of: Void.self) { tasks in
                    let place = Int.random(in: 0..<12)
                    for index in 0..<12 {
                        tasks.addTask {
                            await account.run {
                                index == place
                                    ? body()
                                    : occupy(.usleep, for: 0.001, "piece", isPlanted: false)
                            }
                        }
                    }
                }
            }
            group.leave()
        }
    }

    /// Jobs that keep threads occupied for long, each for a short time.
    func playHealthy() {
        let group = DispatchGroup()
        let priority = Self.priorities.randomElement()!
        group.enter()
        switch Int.random(in: 0..<3) {
        case 0:
            // An actor that always has work keeps its thread; each piece is another task's.
            let account = Account()
            Task.detached(priority: priority) {
                await withTaskGroup(of: Void.self) { tasks in
                    for _ in 0..<Int(threshold * 2 / 0.001) {
                        tasks.addTask {
                            await account.run {
                                occupy(.usleep, for: 0.001, "piece", isPlanted: false)
                            }
                        }
                    }
                }
                group.leave()
            }
        case 1:
            Task.detached(priority: priority) {
                await withTaskGroup(of: Void.self) { tasks in
                    for _ in 0..<200 {
                        tasks.addTask { occupy(.usleep, for: 0.0005, "crowd", isPlanted: false) }
                    }
                }
                group.leave()
            }
        default:
            Task.detached(priority: priority) {
                for _ in 0..<6 {
                    occupy(
                        .usleep, for: threshold * .random(in: 0.1...0.45), "short", isPlanted: false
                    )
                    // Not `yield`, which need not suspend if another thread is free.
                    try? await Task.sleep(for: .milliseconds(1))
                }
                group.leave()
            }
        }
        group.wait()
    }

    private func occupy(
        _ occupation: Occupation, for length: Double, _ kind: String, isPlanted: Bool
    ) {
        let task = withUnsafeCurrentTask { $0.map { unsafeBitCast($0, to: UInt64.self) } ?? 0 }
        let enqueued = task_hook_count_of(task)
        let (wall, began) = (wallClock(), monotonic())
        let queuedBefore = runDelay()
        let end = began + UInt64(length * 1e9)
        switch occupation {
        case .usleep:
            while monotonic() < end {
                Glibc.usleep(UInt32((end - min(end, monotonic())) / 1000 + 1))
            }
        case .poll:
            while monotonic() < end {
                Glibc.poll(nil, 0, CInt((end - min(end, monotonic())) / 1_000_000 + 1))
            }
        case .semaphore: _ = DispatchSemaphore(value: 0).wait(timeout: .now() + length)
        case .read:
            var ends: [CInt] = [0, 0]
            precondition(pipe(&ends) == 0)
            let writer = ends[1]
            Thread {
                Glibc.usleep(UInt32(length * 1e6))
                close(writer)
            }.start()
            var byte: UInt8 = 0
            _ = Glibc.read(ends[0], &byte, 1)
            close(ends[0])
        case .compute:
            let limit = mishap_thread_cpu_ns() + UInt64(length * 1e9)
            while mishap_thread_cpu_ns() < limit {}
        }
        let queued = runDelay() - queuedBefore
        truth.note(
            Span(
                isPlanted: isPlanted, isAmongOthers: kind.hasPrefix(JobKind.actorBusy.rawValue),
                kind: kind, thread: stall_gettid(), start: wall,
                duration: Int64(monotonic() - began) / 1000, queued: queued,
                queuedBefore: queuedBefore, task: task, enqueued: enqueued))
    }
}

func monotonic() -> UInt64 { clock(CLOCK_MONOTONIC) }

/// Microseconds since 1970.
func wallClock() -> Int64 { Int64(clock(CLOCK_REALTIME) / 1000) }

/// For how many microseconds the calling thread has queued for a CPU in its life.
private func runDelay() -> Int64 {
    let text = try? String(contentsOfFile: "/proc/thread-self/schedstat", encoding: .utf8)
    let nanoseconds = text?.split(separator: " ").dropFirst().first.flatMap { Int64($0) }
    return (nanoseconds ?? 0) / 1000
}

private func clock(_ id: CInt) -> UInt64 {
    var time = timespec()
    clock_gettime(id, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
