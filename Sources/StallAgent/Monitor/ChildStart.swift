// A start in a forked child. The agent's first threads use the same conformances first as the start itself, and both
// would spin: CLinux/stall_runtime_thread.h.

internal import CLinux
internal import Logging
internal import StallDetection
internal import Synchronization

enum ChildStart {
    /// Runs the start on the calling thread; or on a new one, where the Swift runtime takes the calling one for the
    /// parent's but not the new one, and waits for that. Lines are logged by the caller, since a log handler may need a
    /// lock that it holds.
    static func run(_ logger: Logger, _ start: @escaping @Sendable (Logger) -> Void) {
        if stall_runtime_knows_thread() { return start(logger) }
        let (attempt, held) = (Attempt(), HeldLines())
        let thread = AgentThread(name: "stall-start", scheduling: .alike) {
            guard stall_runtime_knows_thread() else { return }
            attempt.hasBegun.store(true, ordering: .releasing)
            start(logger.holding(held))
        }
        // In a library that is being loaded the new thread may have to wait for the loader.
        if let thread, !thread.join(within: longestStart) {
            thread.detach()
            logger.error("stalls are not recorded yet: the start takes longer than \(longestStart)")
        } else if !attempt.hasBegun.load(ordering: .acquiring) {
            // No thread, or a runtime that locks in another way.
            start(logger)
        }
        held.pass(to: logger)
    }

    private static var longestStart: Duration { .seconds(10) }

    private final class Attempt: Sendable {
        let hasBegun = Atomic(false)
    }
}
