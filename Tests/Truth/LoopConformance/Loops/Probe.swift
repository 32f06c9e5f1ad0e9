package import StallRunLoop
internal import Synchronization

/// What a handler, block, unit or message holds in the tests: lives as long as that does, and when it is let go of,
/// does what an app's object may do there: it touches the loop.
package final class Probe: Sendable {
    /// How many there are, and how many were let go of while the lock of their loop was held.
    package final class Census: Sendable {
        private let living = Atomic<Int>(0)
        private let lockedIn = Atomic<Int>(0)
        package init() {}
        package var alive: Int { living.load(ordering: .sequentiallyConsistent) }
        package var underLock: Int { lockedIn.load(ordering: .sequentiallyConsistent) }

        fileprivate func add() { living.add(1, ordering: .sequentiallyConsistent) }
        fileprivate func remove(underLock: Bool) {
            living.subtract(1, ordering: .sequentiallyConsistent)
            if underLock { lockedIn.add(1, ordering: .sequentiallyConsistent) }
        }
    }

    /// Those of all plays: of the loop's own, and beside it of the real one.
    package static let ours = Census()
    package static let real = Census()

    private let census: Census
    private let touch: @Sendable () -> Bool

    package init(_ loop: EventRunLoop, _ census: Census = ours) {
        self.census = census
        // The loop's own thread ends it: what lives longer must not keep it.
        touch = { [weak loop] in
            guard let loop else { return true }
            guard loop.isLockAvailable else { return false }
            let timer = LoopTimer(after: .seconds(1_000)) { _ in }
            loop.add(timer, toMode: .default)
            timer.invalidate()
            _ = loop.currentMode
            return true
        }
        census.add()
    }

    /// One that is only counted, for handlers of the real loop.
    package init(_ census: Census) {
        self.census = census
        touch = { true }
        census.add()
    }

    /// Lets go of a probe while the loop's lock is held, and keeps another one for ever.
    static func sabotage(_ loop: EventRunLoop) {
        loop.whileLocked { _ = Probe(loop) }
        _ = Unmanaged.passRetained(Probe(loop))
    }

    deinit { census.remove(underLock: !touch()) }
}
