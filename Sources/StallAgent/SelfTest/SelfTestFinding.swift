// The parts of the agent, and whether each works in this process.

/// The result of ``StallMonitor/selfTest()`` for one part of the agent.
public struct SelfTestFinding: Sendable, Hashable {
    /// Something that the agent does.
    public enum Part: String, Sendable, Hashable, CaseIterable {
        /// Stacks of threads that wait in the kernel.
        case blockedStacks = "blocked-stacks"
        /// Stacks of threads that compute.
        case runningStacks = "running-stacks"
        /// The cause of a stall.
        case causes
        /// The thread that holds the lock that a loop waits for.
        case lockHolders = "lock-holders"
        /// Dispatch queues, with `DispatchQueue.main`.
        case queues
        /// Jobs of Swift tasks.
        case tasks
        /// Foundation's run loops.
        case runLoops = "run-loops"
        /// The store that reports are written to.
        case store
        /// The duration of a stall in which the process was killed.
        case endings
    }

    public enum Verdict: String, Sendable, Hashable {
        case works
        /// Something is lost: see ``SelfTestFinding/losses``.
        case limited
        case fails
    }

    /// Something that is missing here.
    public struct Loss: Sendable, Hashable {
        /// The missing thing and the error: `/dev/shm: Read-only file system`.
        public var what: String
        /// The loss, as a clause.
        public var effect: String
        /// A repair; nil if neither the app nor its operator has one.
        public var remedy: String?

        package init(what: String, effect: String, remedy: String?) {
            self.what = what
            self.effect = effect
            self.remedy = remedy
        }
    }

    public var part: Part
    public var verdict: Verdict
    /// Empty where it works.
    public var losses: [Loss]
}
