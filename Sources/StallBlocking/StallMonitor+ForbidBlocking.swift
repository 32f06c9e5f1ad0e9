// No blocking on watched threads: calls that may wait are reported whatever they last. For tests and staging. Only
// programs that import this module call its interposed functions instead of libc's.

public import StallAgent

extension StallMonitor {
    /// Reports calls that may block on the threads that this monitor watches: in callouts of loops, and in jobs of tasks
    /// once ``StallAgent/StallMonitor/watchTasks(threshold:)`` has begun.
    ///
    ///     let monitor = try StallMonitor.start(.init(app: "photos", version: "2.3.0"))
    ///     monitor.watch(EventRunLoop.main, as: "main")
    ///     monitor.forbidBlocking(allowing: ["Logger.*", "image libsqlite3.so*"])
    ///
    /// A threshold never sees a read that takes 2 ms on a developer's disk and 4 s in production. This reports the first
    /// such call of each callout or job, however short it was, with its stack and the name of the function: sleeps; reads and
    /// writes of files, and of pipes and sockets that are not `O_NONBLOCK`; fsync, flock, connect, accept, getaddrinfo,
    /// waitpid; contended mutexes, semaphores, conditions and joins; dispatch_sync; and whatever of Foundation's calls
    /// these. The reports have the verdict `blocking`: `stallctl top --state blocking` ranks them.
    ///
    /// For tests and staging, not for production: every call of these functions in the process passes through this
    /// module, and each report interrupts the call's thread for about 0.1 ms. Not for programs linked with
    /// `-static-executable`. Calls that a library makes without libc, or libc within itself, are not seen. One monitor of
    /// a process forbids blocking; the last one that does. A forked child forbids it again, after `restartAfterFork()`.
    ///
    /// - Parameter rules: Functions that may block, whatever calls them and whatever they call: patterns with `*` and `?`
    ///   of their names in reports, after `image` of the file names of their images, or of their paths with a `/`.
    /// - Returns: The ban, which lasts until its ``BlockingBan/end()`` or the monitor's, whether it is kept or not.
    @discardableResult
    public func forbidBlocking(allowing rules: [String] = []) -> BlockingBan {
        let ban = BlockingBan(allowing: rules.map(AllowRule.init))
        ban.begin(for: self)
        return ban
    }
}

/// The ban of ``StallAgent/StallMonitor/forbidBlocking(allowing:)``, while it lasts.
///
/// **Thread safety:** may be used on any thread.
public final class BlockingBan: Sendable {
    private let source: ViolationSource

    init(allowing rules: [AllowRule]) { source = ViolationSource(allowing: rules) }

    /// Whether calls are reported. Not without an agent, in a static program, or after the end.
    public var isInForce: Bool { source.isCurrent }

    /// Ends the ban. Calls that were reported so far are still recorded. Idempotent.
    public func end() { source.end() }

    func begin(for monitor: StallMonitor) { source.begin(for: monitor) }
}
