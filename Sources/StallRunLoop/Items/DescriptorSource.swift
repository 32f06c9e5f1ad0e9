// A version-1 source: a file descriptor that becomes ready. Level-triggered; never reads the user's bytes.

internal import CLinux
internal import Synchronization

/// The events that a descriptor is ready for.
public struct DescriptorEvents: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt32

    /// Wraps bits of epoll(7).
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// There is something to read, a connection to accept, or the end of the stream.
    public static let readable = DescriptorEvents(rawValue: EPOLLIN.rawValue)
    /// Writing would not block.
    public static let writable = DescriptorEvents(rawValue: EPOLLOUT.rawValue)
    /// The other side closed in both directions; a paused source gets it also when only the other side's stream has ended,
    /// which is otherwise `readable`. Always reported.
    public static let hangUp = DescriptorEvents(rawValue: EPOLLHUP.rawValue)
    /// The descriptor failed; read or write to learn the error. Always reported.
    public static let error = DescriptorEvents(rawValue: EPOLLERR.rawValue)
}

/// Calls a handler on a loop's thread while a file descriptor is ready.
///
/// The loop never reads from or writes to the descriptor. As long as it stays ready the handler is called again, in
/// every iteration, so read what there is. Files and `/dev/null` are always ready. Several sources may wait for one
/// descriptor; each gets the events that it waits for. A source keeps the modes it is in alive, and may be in several
/// loops, whose threads may then call the handler at the same time.
///
/// The descriptor stays the caller's. Close it in `onCancel`, which comes after the last call:
///
///     let connection = DescriptorSource(descriptor: socket, onCancel: { close($0) }) { source, _ in
///         if read(socket, &buffer, buffer.count) <= 0 { source.invalidate() }
///     }
///
/// On the loop's thread, outside of the handler, it may also be closed once ``invalidate()`` or a removal has returned.
/// On another thread it may not: a call may have begun just before, or begin still, and would use whatever has the
/// number by then.
///
/// **Thread safety:** any thread may add, remove, change and invalidate; the handler runs on the loop's thread.
public final class DescriptorSource: @unchecked Sendable {
    /// The watched descriptor.
    public let descriptor: CInt
    /// A descriptor that the library has opened, or keeps, for a source of another kind: it may have another number by now.
    let opened: OpenedDescriptor?

    /// The events that the handler waits for. Set it to nothing to pause: the end of the other side's stream, and errors, are
    /// reported all the same, as `hangUp` and `error`, each once until the source waits for something again. A loop that
    /// sleeps notices a change at once; one event that it was woken for already may still come.
    public var events: DescriptorEvents {
        get { DescriptorEvents(rawValue: wanted.load(ordering: .acquiring)) }
        set {
            if !newValue.isEmpty { told.store(0, ordering: .relaxed) }
            // Stored before the loops are looked at: one that takes the source after that reads the new events.
            wanted.store(newValue.rawValue, ordering: .releasing)
            for loop in places.withLock({ $0.loops }) { loop.eventsChanged(of: self) }
        }
    }
    private let wanted: Atomic<UInt32>
    /// The ends that were reported while it waits for nothing.
    let told = Atomic<UInt32>(0)

    /// Nil once the source was invalidated. Guarded by the lock of `places`.
    @exclusivity(unchecked) private var handler: ((DescriptorSource, DescriptorEvents) -> Void)?
    /// Called once, when the source is invalid and no handler runs; nil from then on. Guarded like `handler`.
    @exclusivity(unchecked) private var onCancel: (@Sendable (CInt) -> Void)?
    /// How many calls of the handler run: more than one when runs are nested. Guarded like `handler`; not kept without
    /// an
    /// `onCancel`.
    @exclusivity(unchecked) private var callCount = 0
    private let tellsCancel: Bool
    /// The process that it works in, by its fork generation; nil for every one, which has the same open file.
    private let forkGeneration: UInt32?
    /// A copy in a forked child, which must not be served there.
    var isOfParent: Bool { forkGeneration.map { $0 != stall_fork_generation() } ?? false }
    let validity = Atomic<Bool>(true)
    /// Whether the app has named it; see ``ItemLabels``.
    let isLabelled = Atomic<Bool>(false)
    /// Where it is, one place a mode.
    let places = Locked(ItemPlaces())

    /// Makes a source; add it with ``EventRunLoop/add(_:toMode:)-(DescriptorSource,_)``. Its descriptor is the caller's
    /// to close; to learn when on any thread, take the one with `onCancel`.
    public init(
        descriptor: CInt, events: DescriptorEvents = .readable,
        handler: sending @escaping (DescriptorSource, DescriptorEvents) -> Void
    ) {
        self.descriptor = descriptor
        wanted = Atomic(events.rawValue)
        onCancel = nil
        tellsCancel = false
        forkGeneration = nil
        opened = nil
        self.handler = handler
    }

    /// Makes a source that reports when its descriptor can be closed.
    ///
    /// - Parameters:
    ///   - descriptor: A number that is open.
    ///   - events: The events that the handler waits for.
    ///   - onCancel: Called once, with the descriptor, when it can be closed: the source was invalidated or released,
    ///     and its handler does not run. On the thread that did it, or on the loop's if the handler was running there.
    ///   - handler: Gets what the descriptor is ready for.
    public init(
        descriptor: CInt, events: DescriptorEvents = .readable,
        onCancel: @escaping @Sendable (CInt) -> Void,
        handler: sending @escaping (DescriptorSource, DescriptorEvents) -> Void
    ) {
        self.descriptor = descriptor
        wanted = Atomic(events.rawValue)
        self.onCancel = onCancel
        tellsCancel = true
        forkGeneration = nil
        opened = nil
        self.handler = handler
    }

    /// The same for a descriptor of the library's, which is not to be served in a forked child if it is that of one process.
    init(
        opened: OpenedDescriptor, ofProcess forkGeneration: UInt32? = nil,
        onCancel: @escaping @Sendable (CInt) -> Void,
        handler: sending @escaping (DescriptorSource, DescriptorEvents) -> Void
    ) {
        self.forkGeneration = forkGeneration
        self.opened = opened
        descriptor = opened.number
        let events = DescriptorEvents.readable
        wanted = Atomic(events.rawValue)
        self.onCancel = onCancel
        tellsCancel = true
        self.handler = handler
    }

    deinit {
        if isLabelled.load(ordering: .relaxed) { ItemLabels.set(nil, of: self) }
        onCancel?(descriptor)
    }

    /// False once it was invalidated.
    public var isValid: Bool { validity.load(ordering: .acquiring) }

    /// The ends in a report of the kernel that are new to it while it waits for nothing: each is reported once.
    func untold(_ events: UInt32) -> UInt32 {
        var ends = events & (EPOLLHUP.rawValue | EPOLLERR.rawValue)
        if events & EPOLLRDHUP.rawValue != 0 { ends |= EPOLLHUP.rawValue }
        return ends & ~told.load(ordering: .relaxed)
    }

    /// The number that a loop is to watch; -1 with errno when there is none now.
    @inline(__always) func numberToWatch() -> CInt { opened?.renewed() ?? descriptor }

    /// The library's descriptor belongs to another file by now: has the loops watch a new one.
    func watchAgain() {
        for loop in places.withLock({ $0.loops }) { loop.watchAgain(self) }
    }

    /// For a dump.
    var dumpedHandler: DumpedHandler? {
        places.withLock { _ in
            // A generic function, as `map` is, would put a thunk around it.
            guard let handler else { return nil }
            return DumpedHandler(handler)
        }
    }

    /// Calls the handler; false when the source is invalid. Without a lock.
    @inline(__always) func serve(
        _ events: DescriptorEvents, _ callOut: (() -> Void) -> Void
    ) -> Bool {
        guard isValid, let handler = places.withLock({ _ in handlerToCall() }) else { return false }
        callOut { handler(self, events) }
        if tellsCancel { endCall() }
        return true
    }

    /// With the lock of `places`. An invalidation clears the handler with it, so it sees this call or the call sees it.
    @inline(__always) private func handlerToCall()
        -> ((DescriptorSource, DescriptorEvents) -> Void)?
    {
        if tellsCancel && handler != nil { callCount += 1 }
        return handler
    }

    @inline(never) private func endCall() {
        let cancel = places.withLock { _ in
            callCount -= 1
            return takeCancel()
        }
        cancel?(descriptor)
    }

    /// The call that is due now, with the lock of `places`.
    private func takeCancel() -> (@Sendable (CInt) -> Void)? {
        handler == nil && callCount == 0 ? onCancel.take() : nil
    }

    /// Removes it from all loops for good, and releases the handler: when it runs, as soon as it returns. Its
    /// descriptor stays open, unless `onCancel` closes it. On another thread than the loop's, the handler may be called
    /// once more after this has returned.
    public func invalidate() {
        guard validity.exchange(false, ordering: .acquiringAndReleasing) else { return }
        while let loop = places.withLock({ $0.anyLoop }) { loop.removeFromAllModes(self) }
        let (dropped, cancel) = places.withLock { _ in (handler.take(), takeCancel()) }
        withExtendedLifetime(dropped) {}
        cancel?(descriptor)
    }
}
