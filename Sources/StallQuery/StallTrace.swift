// Stalls one at a time, for exports: a cursor reads a store of millions without retaining what was read.

package import StallModel

/// One stall with its stacks as numbers: equal stacks of a store have one number, so that a writer renders each once.
package struct StallTrace: Hashable, Sendable {
    package var id: UniqueID
    package var run: ProcessRun
    package var loop: String
    package var start: UnixTime
    package var duration: Duration
    package var state: StallState
    package var cause: StallCause?
    /// The hash of its stored group; nil if none is stored.
    package var group: Int64?
    /// The stacks of samples that are not late, in chronological order.
    package var stacks: [WeightedStack]
    package var threads: [TracedThread]

    package init(
        id: UniqueID, run: ProcessRun, loop: String, start: UnixTime, duration: Duration,
        state: StallState, cause: StallCause?, group: Int64? = nil, stacks: [WeightedStack],
        threads: [TracedThread] = []
    ) {
        self.id = id
        self.run = run
        self.loop = loop
        self.start = start
        self.duration = duration
        self.state = state
        self.cause = cause
        self.group = group
        self.stacks = stacks
        self.threads = threads
    }
}

/// Another thread of the process, with its stack as a number.
package struct TracedThread: Hashable, Sendable {
    package var thread: ThreadID
    package var name: String?
    package var role: ThreadRole
    package var stack: Int64?

    package init(thread: ThreadID, name: String?, role: ThreadRole, stack: Int64?) {
        self.thread = thread
        self.name = name
        self.role = role
        self.stack = stack
    }
}

/// A part of a stall with one stack.
package struct StackPart: Hashable, Sendable {
    package var stack: Int64
    package var begin_ns: Int64
    package var duration_ns: Int64

    package init(stack: Int64, begin_ns: Int64, duration_ns: Int64) {
        self.stack = stack
        self.begin_ns = begin_ns
        self.duration_ns = duration_ns
    }
}

extension StallTrace {
    /// Distributes the whole duration over the stacks by weight, without gaps; empty without a stack. The parts of all
    /// stalls add up to the total of `top`, to the nanosecond.
    package var parts: [StackPart] {
        let whole = max(0, duration.nanoseconds)
        let weights = stacks.map { Double(max($0.weight.nanoseconds, 1)) }
        let sum = weights.reduce(0, +)
        var (passed, begin) = (0.0, Int64(0))
        return stacks.indices.map { index in
            passed += weights[index]
            let share = Double(whole) * (passed / sum)
            let end =
                index == stacks.count - 1 || share >= Double(whole)
                ? whole : max(begin, Int64(nearest: share))
            defer { begin = end }
            return StackPart(
                stack: stacks[index].stack, begin_ns: begin, duration_ns: end - begin)
        }
    }

    /// The holder of the lock that the thread waited for longest; nil if unknown.
    package var holder: TracedThread? {
        guard let holder = cause?.holder else { return nil }
        return threads.first { $0.role == .holder && $0.thread == holder.thread }
            ?? TracedThread(thread: holder.thread, name: holder.name, role: .holder, stack: nil)
    }
}

/// The order in which a store returns its reports one by one.
package enum CursorOrder: Sendable {
    /// By the store that they were first written to, as numbered there: without a sort, and whatever the order of ingest.
    case stored
    /// Newest first, like `reports(_:limit:)`.
    case newestFirst
    /// By process, the first that started first, by name of the loop, then chronologically.
    case byLoop
}

/// Lookups during a cursor's pass, on the same snapshot.
package protocol StoreLookup: AnyObject {
    /// The frames of a stack, innermost first; empty for an unknown number.
    func frames(ofStack number: Int64) throws -> [Frame]
    /// The images that a run's reports refer to, at their last load addresses.
    func images(ofRun run: UniqueID) throws -> [Image]
}
