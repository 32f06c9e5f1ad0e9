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
/// Children of the process inherit what is blocked. Several sources may wait for one signal, also on several loops: each
/// gets it. If the app closes the source's descriptor, as a daemon closes all, or forks, the loop opens another one when it
/// renews its own; in a child, for the child's signals.
///
/// **Thread safety:** any thread may invalidate; the handler runs on the loop's thread.
public final class SignalSource: Sendable {
    /// The signals it waits for.
    public let signals: [CInt]
    let source: DescriptorSource
    /// For signals that another source has taken from the kernel.
    let inbox: LoopSource

    /// Blocks the signals in the calling thread and makes a source for them.
    ///
    /// - Parameters:
    ///   - signals: Their numbers.
    ///   - handler: Gets the signal and the process that sent it, 0 for the kernel.
    /// - Throws: ``LoopError/system(call:errno:)``: `EINVAL` for a number that is no signal, `EMFILE` without descriptors.
    public init(
        _ signals: [CInt], handler: sending @escaping (_ signal: CInt, _ sender: CInt) -> Void
    ) throws(LoopError) {
        let opening = OpenedDescriptor { _ in stall_signal_descriptor(signals, signals.count) }
        guard let opened = opening else { throw .system(call: "signalfd", errno: errno) }
        self.signals = signals
        let reader = SignalReader(Set(signals))
        // Both call it on the loop's thread only. It is the first that they capture, where a dump looks for the app's function.
        nonisolated(unsafe) let handler = handler
        nonisolated(unsafe) let deliver: (LoopSource) -> Void = { inbox in
            let call = handler
            reader.deliverReceived(of: inbox, to: call)
        }
        inbox = LoopSource(handler: deliver)
        source = DescriptorSource(opened: opened, onCancel: { _ in opened.close() }) { source, _ in
            let call = handler
            var (signal, sender) = (CInt(0), CInt(0))
            // The handler may invalidate the source or close the descriptor, and it may raise the signal again: the rest
            // stays in the kernel.
            for _ in 0..<SignalReader.mostAtOnce {
                guard source.isValid, opened.isOwn,
                    stall_signal_take(opened.number, &signal, &sender)
                else { break }
                reader.handOn(signal, sender)
                call(signal, sender)
            }
            if source.isValid && !opened.isOwn { source.watchAgain() }
        }
        SignalReader.add(reader, inbox)
    }

    /// Removes it from all loops for good, and releases the handler: when it runs, as soon as it returns.
    public func invalidate() {
        source.invalidate()
        inbox.invalidate()
    }
}

/// The signals of one source. The kernel hands a signal to one of the descriptors that wait for
/// it; its reader hands it on to the others. Kept by the handlers of the source, so gone when that is invalidated.
private final class SignalReader: @unchecked Sendable {
    /// A reader, and what is signalled for it.
    private struct Other {
        weak var reader: SignalReader?
        weak var inbox: LoopSource?
    }

    /// How many signals are handed over in one turn: as many as there are kinds.
    static let mostAtOnce = 64
    /// All of the process.
    private static let all = Locked<[Other]>([])

    private let signals: Set<CInt>
    /// Signals from other readers, each once, and who sent it.
    private let received = Locked<[(signal: CInt, sender: CInt)]>([])

    init(_ signals: Set<CInt>) { self.signals = signals }

    static func add(_ reader: SignalReader, _ inbox: LoopSource) {
        all.withLock { all in
            all.removeAll { $0.reader == nil }
            all.append(Other(reader: reader, inbox: inbox))
        }
    }

    /// Hands on what this one has read.
    func handOn(_ signal: CInt, _ sender: CInt) {
        let others = Self.all.withLock { $0.map { ($0.reader, $0.inbox) } }
        for case (let reader?, let inbox?) in others
        where reader !== self && reader.signals.contains(signal) {
            reader.received.withLock { received in
                guard !received.contains(where: { $0.signal == signal }) else { return }
                received.append((signal, sender))
            }
            inbox.signal()
            inbox.wakeLoops()
        }
    }

    /// Hands over what has been received up to now, as long as the source is valid.
    func deliverReceived(of inbox: LoopSource, to handler: (CInt, CInt) -> Void) {
        for _ in 0..<received.withLock({ $0.count }) {
            guard inbox.isValid,
                let next = received.withLock({ $0.isEmpty ? nil : $0.removeFirst() })
            else { return }
            handler(next.signal, next.sender)
        }
    }
}

extension EventRunLoop {
    /// Adds signals to a mode, or to all common modes, as ``add(_:toMode:)-(DescriptorSource,_)`` does.
    @discardableResult
    public func add(_ source: SignalSource, toMode mode: LoopMode) throws(LoopError) -> Bool {
        try add(source.source, toMode: mode) && add(source.inbox, toMode: mode)
    }

    /// Removes signals from a mode, or from the common items.
    public func remove(_ source: SignalSource, fromMode mode: LoopMode) {
        remove(source.source, fromMode: mode)
        remove(source.inbox, fromMode: mode)
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
