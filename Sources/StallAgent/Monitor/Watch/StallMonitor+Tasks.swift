// Swift tasks: every job of the global executor, and the activity labels of tasks.

internal import CLinux
internal import Logging
internal import StallDetection
internal import StallModel

extension StallMonitor {
    /// Watches every job of Swift tasks without any change in the app: a job that occupies its thread for at least the
    /// threshold is a stall, with that thread and its stack.
    ///
    /// A job is what a task does between two suspensions. It runs on the same executor as before; only its begin and
    /// end are recorded. Reports name all threads `tasks`. If a job waits while all threads of the pool are occupied,
    /// the report of each shows the others; ``watchCooperativePool(threshold:)`` then reports only what no job
    /// explains.
    ///
    /// Jobs of the main actor and of custom executors are not watched, nor jobs that were enqueued before, or before the
    /// first job of their priority has run, which takes some milliseconds. A custom global executor, such as SwiftNIO's,
    /// must be installed before. If the runtime has no hook for jobs, or their
    /// executor is not Dispatch's, the pool is watched instead, and that is logged.
    ///
    /// - Parameter threshold: How long a job may occupy its thread; the configuration's threshold if nil. At least 20
    ///   ms.
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

    /// Labels the calling task's activity while `body` runs, on any thread: `GET /orders/:id`.
    ///
    ///     try await monitor.withTaskActivity("GET /orders/:id") { try await next(request, context) }
    ///
    /// A stalled job of the task carries the label, if jobs are watched. Child tasks do not. Labels nest; the innermost
    /// counts. Limits: 63 bytes of UTF-8, 1,024 tasks at a time. Cost: about 100 ns.
    ///
    /// Labelled tasks are requests: a report also lists up to eight others that were open meanwhile. If the
    /// configuration's logger has a metadata provider with a trace id, so has the request.
    @discardableResult
    public nonisolated(nonsending) func withTaskActivity<Result, Failure: Error>(
        _ label: String, _ body: nonisolated(nonsending) () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        let outer = Self.setTaskNote(label)
        defer { _ = Self.setTaskNote(outer) }
        if let provider = configuration.logger.metadataProvider {
            Self.setTaskTrace(provider.get().traceID)
        }
        return try await body()
    }

    private static func setTaskTrace(_ id: String?) {
        guard var id else { return }
        id.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                stall_task_note_set_trace($0.baseAddress, UInt32(clamping: $0.count))
            }
        }
    }

    /// Returns the previous label.
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

extension Logger.Metadata {
    /// The value of `trace-id`, `trace_id` or `traceID`; nil without one.
    var traceID: String? {
        let found = first { key, _ in
            key.lowercased().filter { !"-_.".contains($0) } == "traceid"
        }
        return found.map { "\($0.value)" }
    }
}
