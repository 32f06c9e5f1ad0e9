// Swift's tasks: every job of the global executor, and what a task says of itself.

internal import CLinux
internal import Logging
internal import StallDetection
internal import StallModel

extension StallMonitor {
    /// Watches every job of Swift's tasks, in an app that changes nothing else: a job that keeps its thread for at
    /// least the threshold is a stall, with that thread and its stack.
    ///
    /// A job is what a task does between two suspensions. It runs where it would run without this: only a begin and an
    /// end are noted around it. Reports call all threads `tasks`. When a job waits and all threads of the pool are
    /// held, the report of each says so and shows the others; ``watchCooperativePool(threshold:)`` then reports only
    /// what no job explains.
    ///
    /// Jobs of the main actor and of executors of the app's own are not seen, nor jobs that were enqueued before. An
    /// executor that is installed for all tasks, such as SwiftNIO's, must be installed before. Where the runtime has no
    /// hook for jobs, or their executor is not Dispatch's, the pool is watched instead, and the logger hears of it.
    ///
    /// - Parameter threshold: How long a job may keep its thread; the configuration's threshold when nil. At least 20 ms.
    public func watchTasks(threshold: Duration? = nil) {
        guard agent != nil, !watches.isClosed else { return }
        if !TaskJobs.begin(for: self, threshold: threshold) {
            watchPoolInsteadOfTasks(threshold: threshold)
        }
    }

    func watchPoolInsteadOfTasks(threshold: Duration?) {
        configuration.logger.notice(
            "jobs of tasks cannot be watched here: the cooperative pool is watched instead")
        watchCooperativePool(threshold: threshold)
    }

    func watchWorker(_ number: Int32, threshold: Duration?) {
        let worker = stall_worker_numbered(number)
        watch(
            WorkerThreadTarget(worker), LoopBeacon(worker.pointee.beacon), as: "tasks",
            threshold: threshold, key: .worker(number), thread: nil)
    }

    /// Labels what the calling task does while `body` runs, on whichever threads: `GET /orders/:id`.
    ///
    ///     try await monitor.withTaskActivity("GET /orders/:id") { try await next(request, context) }
    ///
    /// A job of the task that stalls carries the label, wherever jobs are watched. Tasks that it starts do not. Labels
    /// nest; the innermost counts. At most 63 bytes of UTF-8 are kept, of 1,024 tasks at a time. Cost: some 100 ns.
    @discardableResult
    public nonisolated(nonsending) func withTaskActivity<Result, Failure: Error>(
        _ label: String, _ body: nonisolated(nonsending) () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        let outer = Self.setTaskNote(label)
        defer { _ = Self.setTaskNote(outer) }
        return try await body()
    }

    /// Returns the label before.
    private static func setTaskNote(_ label: String) -> String {
        var label = label
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { before in
            label.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    _ = stall_task_note_set(
                        $0.baseAddress, UInt32(clamping: $0.count), before.baseAddress!)
                }
            }
            return before[0] == 0 ? "" : String(cString: before.baseAddress!)
        }
    }
}
