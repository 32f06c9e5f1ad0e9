// A version-1 source: a file descriptor that becomes ready. Level-triggered; never reads the user's bytes.

internal import CLinux
internal import Synchronization

/// What a descriptor is ready for.
public struct DescriptorEvents: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt32

    /// Wraps bits of epoll(7).
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// There is something to read, a connection to accept, or the end of the stream.
    public static let readable = DescriptorEvents(rawValue: EPOLLIN.rawValue)
    /// Writing would not block.
    public static let writable = DescriptorEvents(rawValue: EPOLLOUT.rawValue)
    /// The other side closed. Always reported.
    public static let hangUp = DescriptorEvents(rawValue: EPOLLHUP.rawValue)
    /// The descriptor failed; read or write to learn the error. Always reported.
    public static let error = DescriptorEvents(rawValue: EPOLLERR.rawValue)
}

/// Calls a handler on a loop's thread while a file descriptor is ready.
///
/// The loop never reads from or writes to the descriptor. As long as it stays ready the handler is called again, in
/// every iteration, so read what there is. The descriptor stays the caller's: remove or invalidate the source,
/// then close it. A source keeps the modes it is in alive, and may be in several loops.
///
/// **Thread safety:** any thread may add, remove and invalidate; the handler runs on the loop's thread.
public final class DescriptorSource: @unchecked Sendable {
    /// The watched descriptor.
    public let descriptor: CInt
    /// What the handler waits for.
    public let events: DescriptorEvents

    /// Nil once the source was invalidated. Guarded by the lock of `places`.
    @exclusivity(unchecked) private var handler: ((DescriptorSource, DescriptorEvents) -> Void)?
    let validity = Atomic<Bool>(true)
    /// Where it is, one place a mode.
    let places = Locked(ItemPlaces())

    /// Makes a source; add it with ``EventRunLoop/add(_:toMode:)-(DescriptorSource,_)``.
    public init(
        descriptor: CInt, events: DescriptorEvents = .readable,
        handler: sending @escaping (DescriptorSource, DescriptorEvents) -> Void
    ) {
        self.descriptor = descriptor
        self.events = events
        self.handler = handler
    }

    /// False once it was invalidated.
    public var isValid: Bool { validity.load(ordering: .acquiring) }

    /// Calls the handler; false when the source is invalid. Without a lock.
    @inline(__always) func serve(
        _ events: DescriptorEvents, _ callOut: (() -> Void) -> Void
    ) -> Bool {
        guard isValid, let handler = places.withLock({ _ in handler }) else { return false }
        callOut { handler(self, events) }
        return true
    }

    /// Removes it from all loops for good, and lets go of the handler: when it runs, as soon as it returns. Its
    /// descriptor stays open.
    public func invalidate() {
        guard validity.exchange(false, ordering: .acquiringAndReleasing) else { return }
        while let loop = places.withLock({ $0.anyLoop }) { loop.removeFromAllModes(self) }
        let dropped = places.withLock { _ in handler.take() }
        withExtendedLifetime(dropped) {}
    }
}
