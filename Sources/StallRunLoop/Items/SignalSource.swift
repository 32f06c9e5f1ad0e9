// Signals as events of a loop, by signalfd(2).

internal import CLinux
internal import Glibc

/// Calls a handler on a loop's thread for each signal that the process gets.
///
///     let ending = try SignalSource([SIGTERM, SIGINT]) { _, _ in loop.stop() }
///     try loop.add(ending, toMode: .common)
///
/// The signals are blocked in the thread that makes the source, and in threads that it starts later; make it before
/// other threads are started, for a signal that a thread does not block has its ordinary effect there. They stay
/// blocked when the source is gone. Several signals of one kind may be handed over as one, as always with signals.
/// Children of the process inherit what is blocked.
///
/// **Thread safety:** any thread may invalidate; the handler runs on the loop's thread.
public final class SignalSource: Sendable {
    /// The signals it waits for.
    public let signals: [CInt]
    let descriptor: OwnedDescriptor
    let source: DescriptorSource

    /// Blocks the signals in the calling thread and makes a source for them.
    ///
    /// - Parameters:
    ///   - signals: Their numbers.
    ///   - handler: Gets the signal and the process that sent it, 0 for the kernel.
    /// - Throws: ``LoopError/system(call:errno:)``: `EINVAL` for a number that is no signal, `EMFILE` without descriptors.
    public init(
        _ signals: [CInt], handler: sending @escaping (_ signal: CInt, _ sender: CInt) -> Void
    ) throws(LoopError) {
        let number = stall_signal_descriptor(signals, signals.count)
        guard number >= 0 else { throw .system(call: "signalfd", errno: errno) }
        self.signals = signals
        let descriptor = OwnedDescriptor(number)
        self.descriptor = descriptor
        source = DescriptorSource(descriptor: number) { _, _ in
            var (signal, sender) = (CInt(0), CInt(0))
            while stall_signal_take(descriptor.number, &signal, &sender) { handler(signal, sender) }
        }
    }

    /// Removes it from all loops for good.
    public func invalidate() { source.invalidate() }
}

/// A descriptor that is closed when it is let go of.
final class OwnedDescriptor: Sendable {
    let number: CInt
    init(_ number: CInt) { self.number = number }
    deinit { close(number) }
}

extension EventRunLoop {
    /// Adds signals to a mode, or to all common modes, as ``add(_:toMode:)-(DescriptorSource,_)`` does.
    @discardableResult
    public func add(_ source: SignalSource, toMode mode: LoopMode) throws(LoopError) -> Bool {
        try add(source.source, toMode: mode)
    }

    /// Removes signals from a mode, or from the common items.
    public func remove(_ source: SignalSource, fromMode mode: LoopMode) {
        remove(source.source, fromMode: mode)
    }

    /// Adds a child process to a mode, or to all common modes, as ``add(_:toMode:)-(DescriptorSource,_)`` does.
    @discardableResult
    public func add(_ source: ChildProcessSource, toMode mode: LoopMode) throws(LoopError) -> Bool {
        try add(source.source, toMode: mode)
    }

    /// Removes a child process from a mode, or from the common items.
    public func remove(_ source: ChildProcessSource, fromMode mode: LoopMode) {
        remove(source.source, fromMode: mode)
    }
}
