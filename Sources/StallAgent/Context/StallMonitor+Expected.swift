// Blocking that the app means: a stall in it has a verdict of its own.

internal import CLinux
internal import StallModel

extension StallMonitor {
    /// Declares that the calling thread may block in `body`: a migration at start, a modal dialog, the load of a plug-in.
    ///
    ///     try monitor.expected("migration", atMost: .seconds(30)) { try database.migrate() }
    ///
    /// A stall in it is recorded with the verdict ``StallVerdict/expected``, which is not ranked, with the name as its
    /// activity if it has no label. It is a stall as soon as its time outside of such scopes reaches the threshold;
    /// after `limit`, the rest of a scope is outside. Scopes nest; the outermost counts, with its name and limit.
    ///
    /// Cost: a lock of the agent at each end. Limits: 63 bytes of UTF-8, 64 scopes at a time; further ones have no effect.
    ///
    /// - Parameters:
    ///   - name: The name in reports.
    ///   - limit: How long that may last, from now on.
    @discardableResult
    public func expected<Result, Failure: Error>(
        _ name: String, atMost limit: Duration = .seconds(10), _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        stall_expected_enter(MonotonicInstant.now.end(after: limit))
        defer { stall_expected_leave() }
        guard agent != nil else { return try body() }
        let scope = expectedScopes.begin(
            name.shortened, .thread(ThreadID(rawValue: stall_gettid())), in: stall_task_current(),
            atMost: limit, at: .now)
        defer { expectedScopes.end(scope, at: .now) }
        return try body()
    }

    /// Declares that the calling task may block its threads in `body`, on whatever thread it resumes.
    ///
    /// As the form without `async`, for a task: others that run on the same thread meanwhile are not
    /// in the scope, nor are child tasks. The thread of an actor's executor, or of the main one, is known if the scope
    /// began on it; jobs that ``watchTasks(threshold:)`` watches always are.
    @_disfavoredOverload
    @discardableResult
    public nonisolated(nonsending) func expected<Result, Failure: Error>(
        _ name: String, atMost limit: Duration = .seconds(10),
        _ body: nonisolated(nonsending) () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        let task = stall_task_current()
        let isAdded = stall_expected_add_task(task, MonotonicInstant.now.end(after: limit))
        defer { if isAdded { stall_expected_remove_task(task) } }
        guard task != 0, agent != nil else { return try await body() }
        stall_jobs_learn_thread()
        let scope = expectedScopes.begin(name.shortened, .task(task), atMost: limit, at: .now)
        defer { expectedScopes.end(scope, at: .now) }
        return try await body()
    }
}

extension MonotonicInstant {
    fileprivate static var now: Self { Self(nanoseconds: stall_monotonic_ns()) }

    /// In nanoseconds; the last instant for a limit that is beyond it.
    fileprivate func end(after limit: Duration) -> UInt64 {
        let (sum, isTooLong) = nanoseconds.addingReportingOverflow(
            UInt64(max(0, limit.nanoseconds)))
        return isTooLong ? .max : sum
    }
}

extension String {
    /// At most 63 bytes of it, whole characters.
    fileprivate var shortened: String {
        guard utf8.count > 63 else { return self }
        var end = utf8.index(startIndex, offsetBy: 63)
        while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end])
    }
}
