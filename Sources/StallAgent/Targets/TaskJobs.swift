// The Swift runtime has one hook for jobs of tasks, but a process may have several monitors: each watches every thread
// that runs jobs.

internal import CLinux
internal import StallRunLoop

/// The monitors that watch jobs of tasks.
enum TaskJobs {
    private struct Watcher {
        weak var monitor: StallMonitor?
        let threshold: Duration?
    }
    private static let watchers = AgentLocked<[ObjectIdentifier: Watcher]>([:])

    /// The priorities of Swift tasks: background, utility, default, user initiated, user interactive. Each has its own
    /// queue.
    private static let priorities: [UInt8] = [0x15, 0x09, 0x11, 0x19, 0x21]

    /// Makes a monitor watch every thread that runs jobs, present and future. False if the runtime has no hook.
    static func begin(for monitor: StallMonitor, threshold: Duration?) -> Bool {
        // The hook is set and removed under the lock: another monitor's end would remove it from under this one.
        let isHooked = watchers.withLock { watchers in
            guard stall_jobs_start({ TaskJobs.watch($0) }) else { return false }
            watchers[ObjectIdentifier(monitor)] = Watcher(monitor: monitor, threshold: threshold)
            return true
        }
        guard isHooked else { return false }
        for number in 0..<stall_worker_count() {
            monitor.watchWorker(number, threshold: threshold)
        }
        for priority in priorities {
            Task.detached(priority: TaskPriority(rawValue: priority)) { [weak monitor] in
                if !stall_jobs_learn_queue(priority), priority == priorities[0] {
                    monitor?.watchPoolInsteadOfTasks(threshold: threshold)
                }
            }
        }
        return true
    }

    /// Undoes `begin`. Removes the hook after the last monitor.
    static func end(for monitor: StallMonitor) {
        watchers.withLock { watchers in
            guard watchers.removeValue(forKey: ObjectIdentifier(monitor)) != nil else { return }
            watchers = watchers.filter { $0.value.monitor != nil }
            if watchers.isEmpty { stall_jobs_stop() }
        }
    }

    /// Called on a thread that is about to run its first job.
    private static func watch(_ number: Int32) {
        let all = watchers.withLock { Array($0.values) }
        for watcher in all { watcher.monitor?.watchWorker(number, threshold: watcher.threshold) }
    }
}
