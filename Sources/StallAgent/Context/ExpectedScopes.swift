// The intervals in which the app declared blocking as meant. The app's threads add them; the recorder compares them with
// a stall when it makes the report. The watchdog has no part in it.
//
// Bounded: a scope that does not fit is not noted, and a stall in it is a stall.

internal import CLinux
internal import StallModel
internal import StallRunLoop

/// The scopes of one monitor: those that are open, and the last ones that have ended.
final class ExpectedScopes: Sendable {
    /// Of a thread, or of a task, by its address, which leaves its thread where it suspends.
    enum Owner: Hashable, Sendable {
        case thread(ThreadID)
        case task(UInt64)
    }

    /// The part of a stall that was meant.
    struct Overlap: Equatable {
        /// The scope that stood for most of it.
        var name: String
        var time: Duration
    }

    private struct Scope {
        var number: UInt64
        var name: String
        var owner: Owner
        var began: MonotonicInstant
        /// When it ended, or will end by its limit.
        var ends: MonotonicInstant
    }

    private struct State {
        /// The fork that the scopes are from: a child has other threads.
        var generation: UInt32 = 0
        var lastNumber: UInt64 = 0
        var open: [Scope] = []
        /// A ring, once it is full.
        var ended: [Scope] = []
        var oldest = 0

        mutating func prepare() {
            if generation != stall_fork_generation() {
                generation = stall_fork_generation()
                open.removeAll(keepingCapacity: true)
                ended.removeAll(keepingCapacity: true)
                oldest = 0
            }
            guard open.capacity < openLimit else { return }
            open.reserveCapacity(openLimit)
            ended.reserveCapacity(endedLimit)
        }

        mutating func keep(_ scope: Scope) {
            guard ended.count == endedLimit else { return ended.append(scope) }
            ended[oldest] = scope
            oldest = (oldest + 1) % endedLimit
        }
    }

    static let (openLimit, endedLimit) = (64, 256)
    /// Shorter scopes are forgotten at their end: they cannot explain a stall.
    static let shortest = Duration.milliseconds(1)
    private let state = AgentLocked(State())

    /// Begins a scope. The first call reserves the room for all.
    ///
    /// - Parameters:
    ///   - owner: The thread or task it is of.
    ///   - task: The task that runs on the thread; 0 for none. Its scope is an outer one as well.
    /// - Returns: A number for `end`; 0 for an inner scope, which changes nothing, and if too many are open.
    func begin(
        _ name: String, _ owner: Owner, in task: UInt64 = 0, atMost limit: Duration,
        at now: MonotonicInstant
    ) -> UInt64 {
        state.withLock { state in
            state.prepare()
            for scope in state.open where scope.owner == owner || scope.owner == .task(task) {
                return 0
            }
            guard state.open.count < Self.openLimit else { return 0 }
            state.lastNumber += 1
            state.open.append(
                Scope(
                    number: state.lastNumber, name: name, owner: owner, began: now,
                    ends: now + max(.zero, limit)))
            return state.lastNumber
        }
    }

    /// Ends a scope. Does nothing for 0, nor in a child that was forked meanwhile.
    func end(_ number: UInt64, at now: MonotonicInstant) {
        guard number != 0 else { return }
        state.withLock { state in
            state.prepare()
            guard let index = state.open.firstIndex(where: { $0.number == number }) else { return }
            var scope = state.open[index]
            state.open.swapAt(index, state.open.count - 1)
            state.open.removeLast()
            scope.ends = min(scope.ends, now)
            if now - scope.began >= Self.shortest { state.keep(scope) }
        }
    }

    /// How much of an interval was meant, on a thread or in a task (0: unknown). Nil for nothing.
    func overlap(
        of thread: ThreadID?, task: UInt64, from began: MonotonicInstant, to end: MonotonicInstant
    ) -> Overlap? {
        var parts: [(from: MonotonicInstant, to: MonotonicInstant, name: String)] = []
        // Not with the lock: another thread of the app may wait for it, and the heap may be locked.
        parts.reserveCapacity(Self.openLimit + Self.endedLimit)
        state.withLock { state in
            state.prepare()
            func add(_ scope: Scope) {
                switch scope.owner {
                case .thread(let owner): guard owner == thread else { return }
                case .task(let owner): guard owner == task else { return }
                }
                let part = (from: max(scope.began, began), to: min(scope.ends, end), scope.name)
                if part.from < part.to { parts.append(part) }
            }
            for scope in state.ended { add(scope) }
            for scope in state.open { add(scope) }
        }
        guard let longest = parts.max(by: { $0.to - $0.from < $1.to - $1.from }) else { return nil }
        // A thread's scope and its task's may lie over each other.
        parts.sort { $0.from < $1.from }
        var (time, covered) = (Duration.zero, began)
        for part in parts where part.to > covered {
            time += part.to - max(part.from, covered)
            covered = part.to
        }
        return Overlap(name: longest.name, time: time)
    }
}
