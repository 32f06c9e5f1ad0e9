// A version-0 source: work that something signals. Signalling does not wake the loop; see `wakeUp()`.

internal import Synchronization

/// Calls a handler on a loop's thread once it has been signalled.
///
/// A source keeps the modes it is in alive. Signals coalesce until it is served. Sources are served by order,
/// then by the time of their first signal. A source may be in several loops; the first one takes the signal,
/// and another one the next signal, also while the handler still runs.
///
/// **Thread safety:** any thread may use it; the handler runs on the loop's thread, the schedule and cancel
/// handlers on the thread that adds and removes.
public final class LoopSource: @unchecked Sendable {
    /// Sources with a smaller order are served first.
    public let order: Int

    /// The three are nil once the source was invalidated. Guarded by the lock of `places`.
    @exclusivity(unchecked) private var handler: ((LoopSource) -> Void)?
    @exclusivity(unchecked) private var onSchedule: ((EventRunLoop, LoopMode) -> Void)?
    @exclusivity(unchecked) private var onCancel: ((EventRunLoop, LoopMode) -> Void)?
    /// Whether there is a handler to call when it is added to a mode.
    let tellsSchedule: Bool
    let validity = Atomic<Bool>(true)
    /// Whether the app has named it; see ``ItemLabels``.
    let isLabelled = Atomic<Bool>(false)
    /// 0: not signalled; otherwise the position of its signal among all signals of the process.
    let signalTicket = Atomic<UInt64>(0)
    /// Where it is, one place a mode.
    let places = Locked(ItemPlaces())

    private static let tickets = Atomic<UInt64>(0)

    /// Makes a source; add it with ``EventRunLoop/add(_:toMode:)-(LoopSource,_)``.
    ///
    /// - Parameters:
    ///   - order: Sources of lower order are served first.
    ///   - onSchedule: Called after it was added to a mode.
    ///   - onCancel: Called after it was removed from a mode.
    ///   - handler: The work.
    public init(
        order: Int = 0, onSchedule: (@Sendable (EventRunLoop, LoopMode) -> Void)? = nil,
        onCancel: (@Sendable (EventRunLoop, LoopMode) -> Void)? = nil,
        handler: sending @escaping (LoopSource) -> Void
    ) {
        self.order = order
        self.onSchedule = onSchedule
        self.onCancel = onCancel
        tellsSchedule = onSchedule != nil
        self.handler = handler
    }

    deinit {
        if isLabelled.load(ordering: .relaxed) { ItemLabels.set(nil, of: self) }
    }

    /// False once it was invalidated.
    public var isValid: Bool { validity.load(ordering: .acquiring) }

    /// Whether it waits to be served.
    public var isSignalled: Bool { signalTicket.load(ordering: .acquiring) != 0 }

    /// Asks for the handler to be called in the next pass of a loop that has this source. Does not wake
    /// a sleeping loop: call ``EventRunLoop/wakeUp()`` after it.
    public func signal() {
        guard isValid, signalTicket.load(ordering: .relaxed) == 0 else { return }
        let ticket = Self.tickets.wrappingAdd(1, ordering: .relaxed).newValue
        let isFirst = signalTicket.compareExchange(
            expected: 0, desired: ticket, ordering: .acquiringAndReleasing
        ).exchanged
        guard isFirst else { return }
        places.withLock { places in
            places.forEach { place in
                place.items?._withUnsafeGuaranteedRef { $0.noteSignal(of: place.slot) }
            }
        }
    }

    /// Wakes the loops that have it.
    func wakeLoops() {
        for loop in places.withLock({ $0.loops }) { loop.wakeUp() }
    }

    /// Takes the signal; false when there was none.
    func takeSignal() -> Bool { signalTicket.exchange(0, ordering: .acquiringAndReleasing) != 0 }

    /// Takes the signal and calls the handler. False when there was no signal, or the source is invalid.
    @inline(__always) func serve(_ callOut: (() -> Void) -> Void) -> Bool {
        guard takeSignal(), isValid else { return false }
        guard let handler = places.withLock({ _ in handler }) else { return false }
        callOut { handler(self) }
        return true
    }

    /// For a dump.
    var dumpedHandler: DumpedHandler? {
        places.withLock { _ in
            // A generic function, as `map` is, would put a thunk around it.
            guard let handler else { return nil }
            return DumpedHandler(handler)
        }
    }

    /// Reports that it was added to a mode. Without a lock.
    func wasScheduled(in loop: EventRunLoop, _ mode: LoopMode) {
        places.withLock { _ in onSchedule }?(loop, mode)
    }

    /// Reports that it was removed from a mode. Without a lock.
    func wasCancelled(in loop: EventRunLoop, _ mode: LoopMode) {
        places.withLock { _ in onCancel }?(loop, mode)
    }

    /// Removes it from all loops for good, drops a signal that was not yet served, and releases the handlers: one that
    /// runs, when it returns.
    public func invalidate() {
        guard validity.exchange(false, ordering: .acquiringAndReleasing) else { return }
        signalTicket.store(0, ordering: .releasing)
        leaveAllLoops()
        // Consumed here, behind the lock.
        let dropped = places.withLock { _ in
            (handler.take(), onSchedule.take(), onCancel.take())
        }
        withExtendedLifetime(dropped) {}
    }

    private func leaveAllLoops() {
        // Mostly it is in the caller's own loop, which needs no reference: it cannot go away meanwhile.
        if let own = LoopOfThread.ifAny,
            own._withUnsafeGuaranteedRef({ $0.removeFromAllModes(self) })
        {
            return
        }
        while let loop = places.withLock({ $0.anyLoop }) { loop.removeFromAllModes(self) }
    }
}
