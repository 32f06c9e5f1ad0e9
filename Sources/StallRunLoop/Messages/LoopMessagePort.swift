// Messages between processes, for the uses of a CFMessagePort elsewhere. The peer is not trusted: it may send anything,
// stop in the middle, never read, or die.

internal import CLinux
internal import Glibc

/// How much a ``LoopMessagePort`` holds for its peer.
public struct MessageLimits: Hashable, Sendable {
    /// The longest message in bytes, in both directions; at most 4,294,967,295.
    public var messageSize: Int
    /// How many bytes wait to be sent. One message is taken in any case.
    public var queueSize: Int

    /// Sets both.
    public init(messageSize: Int = 1 << 20, queueSize: Int = 4 << 20) {
        self.messageSize = messageSize
        self.queueSize = queueSize
    }
}

/// Why a ``LoopMessagePort`` has ended without being closed.
public enum MessagePortEnd: Equatable, Sendable {
    /// The peer has ended its stream behind a message, or has died there.
    case finished
    /// The peer has ended its stream, or died, in the middle of a message.
    case cutOff
    /// The peer has announced a message of this many bytes, above the limit.
    case tooLong(Int)
    /// The coding did not take a message; this is what it threw.
    case undecodable(String)
    /// recv(2) failed with this errno: with `EBADF`, the app has closed the socket, as a daemon closes all descriptors.
    case failed(errno: CInt)
}

/// Why a message was not taken.
public enum MessageRefusal: Error, Equatable, Sendable {
    /// Too much waits to be sent: the peer reads slowly or not at all.
    case full
    /// The port was finished or closed, the peer has gone, or the loop's thread has ended.
    case closed
    /// It has this many bytes, above the limit.
    case tooLong(Int)
    /// The coding did not take it; this is what it threw.
    case unencodable(String)
}

extension MessageRefusal: CustomStringConvertible {
    /// One plain clause.
    public var description: String {
        switch self {
        case .full: "too much waits to be sent to the peer"
        case .closed: "the port or its peer is closed"
        case .tooLong(let size): "the message has \(size) bytes, more than the port's limit"
        case .unencodable(let reason): "the message could not be encoded: \(reason)"
        }
    }
}

/// Two connected Unix sockets: one for a port of this process, one for its peer, mostly a child process. Both are closed
/// by exec(3), so pass the peer's with posix_spawn_file_actions_adddup2(3), and close it after that: as long as it is open
/// here, the end of the peer is not noticed.
public struct MessageSockets: Sendable {
    /// This process's.
    public let own: CInt
    /// The peer's.
    public let peer: CInt

    /// Makes the two.
    ///
    /// - Throws: ``LoopError/system(call:errno:)``: `EMFILE` without descriptors.
    public init() throws(LoopError) {
        var ends: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
            throw .system(call: "socketpair", errno: errno)
        }
        let (first, second) = (stall_above_standard(ends[0]), stall_above_standard(ends[1]))
        guard first >= 0, second >= 0 else {
            let error = errno
            for end in [first, second] where end >= 0 { close(end) }
            throw .system(call: "fcntl", errno: error)
        }
        (own, peer) = (first, second)
    }
}

/// Exchanges messages with another process through a socket, in order, within limits.
///
///     let sockets = try MessageSockets()
///     let port = try LoopMessagePort(descriptor: sockets.own, on: loop, coding: .text) { port, text in print(text) }
///     try port.send("hello")                                       // on any thread
///
/// In the stream each message follows its length, four bytes, the most significant first. A port never blocks. It takes
/// memory for what has arrived, not for what a length promises: at most one message and 64 KB. While handlers run nothing
/// is read, so a peer that sends faster than they work finds its own socket full. In one turn of its source a port
/// reads and writes at most 64 KB each, and calls its handler for at most 256 messages, so that everything else has its
/// turn.
///
/// The loop keeps the port until it ends: by ``close()``, by the peer, or with the loop's thread. Then its socket is closed, and its
/// handlers are released.
///
/// **Thread safety:** any thread may send, finish and close; the handlers run on the loop's thread.
public final class LoopMessagePort<Message: Sendable>: Sendable {
    /// How much it holds.
    public let limits: MessageLimits
    /// Kept by the handlers, so that a closed port keeps nothing that the app's coding captured.
    private nonisolated(unsafe) weak var coding: KeptCoding<Message>?
    let link: MessageLink

    /// Makes a port and adds it to a mode, or to all common modes.
    ///
    /// - Parameters:
    ///   - descriptor: A connected stream socket. It is the port's to close, also when this throws.
    ///   - loop: The loop that the messages are for.
    ///   - mode: The mode in which it takes and sends them.
    ///   - coding: How messages are encoded.
    ///   - limits: How much it holds.
    ///   - onRoom: Called after a message was refused because too much waited, once all of that is sent.
    ///   - onEnd: Called once when the port ends by the peer's doing, behind all messages. If the peer has ``MessagePortEnd/finished``,
    ///     messages that are sent before this returns are sent still; in all other cases the port is closed already.
    ///   - handler: Called for each message.
    /// - Throws: ``LoopError/stopped`` when the loop's thread has ended; ``LoopError/system(call:errno:)``: `ENOTSOCK` or
    ///   `EPROTOTYPE` from `getsockopt` for what is no stream socket.
    public init(
        descriptor: CInt, on loop: EventRunLoop, inMode mode: LoopMode = .common,
        coding: MessageCoding<Message>, limits: MessageLimits = MessageLimits(),
        onRoom: sending @escaping (LoopMessagePort) -> Void = { _ in },
        onEnd: sending @escaping (LoopMessagePort, MessagePortEnd) -> Void = { _, _ in },
        handler: sending @escaping (LoopMessagePort, Message) -> Void
    ) throws(LoopError) {
        do throws(LoopError) { try Self.requireStream(descriptor) } catch {
            if error != .system(call: "getsockopt", errno: EBADF) {
                stall_socket_close(descriptor)
            }
            throw error
        }
        self.limits = MessageLimits(
            messageSize: min(max(0, limits.messageSize), Int(UInt32.max)),
            queueSize: max(0, limits.queueSize))
        let coding = KeptCoding(coding)
        self.coding = coding
        link = MessageLink(descriptor: descriptor, queueSize: self.limits.queueSize)
        let receiver = MessageReceiver(
            self, coding, longest: self.limits.messageSize, onRoom: onRoom, onEnd: onEnd,
            handler: handler)
        try link.start(
            on: loop, inMode: mode, onReady: { receiver.read() },
            onInbox: { receiver.handOver() }, onRoom: { receiver.tellRoom() })
    }

    private static func requireStream(_ descriptor: CInt) throws(LoopError) {
        var (kind, size) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
        guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 else {
            throw .system(call: "getsockopt", errno: errno)
        }
        guard kind == CInt(SOCK_STREAM.rawValue) else {
            throw .system(call: "getsockopt", errno: EPROTOTYPE)
        }
    }

    /// False once it was closed, or has ended and sent what waited.
    public var isOpen: Bool { link.isOpen }

    /// How many bytes wait to be sent.
    public var waitingSize: Int { link.waiting }

    /// Sends a message, or keeps it until the peer reads. Never waits. Messages of one thread arrive in order.
    ///
    /// - Throws: ``MessageRefusal``. The message was not taken then. One that was taken is lost if the port is closed, the peer goes or
    ///   this process ends before it is sent.
    public func send(_ message: Message) throws(MessageRefusal) {
        guard let encode = coding?.value.encode else { throw .closed }
        let bytes: [UInt8]
        do { bytes = try encode(message) } catch { throw .unencodable("\(error)") }
        guard bytes.count <= limits.messageSize else { throw .tooLong(bytes.count) }
        switch link.send(MessageFrames.header(bytes.count) + bytes) {
        case .taken: return
        case .full: throw .full
        case .closed: throw .closed
        }
    }

    /// Takes no more messages, and signals that to the peer behind those that wait. Messages of the peer are handed
    /// over still; when it has finished too, the port ends. A peer that never reads keeps the port open: then
    /// ``close()`` it.
    public func finish() { link.finish() }

    /// Closes the socket, drops messages that wait, and releases the handlers and the coding: one that runs, when it
    /// returns. No handler is called after it.
    public func close() { link.close() }

    fileprivate func stopReading() { link.stopReading() }
    fileprivate func endReading() { link.endReading() }
    fileprivate var inbox: LoopSource { link.inbox }
    fileprivate func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        link.receive(buffer)
    }
}

extension LoopRegistration {
    /// Owns a port: closes it.
    public convenience init<Message>(_ port: LoopMessagePort<Message>) {
        self.init { port.close() }
    }
}

/// A coding that goes with the port's handlers.
private final class KeptCoding<Message: Sendable>: Sendable {
    let value: MessageCoding<Message>
    init(_ value: MessageCoding<Message>) { self.value = value }
}

/// Hands over what arrives. Used by the loop's thread alone, and kept by the handlers of the port's sources, so gone when the
/// port is closed.
private final class MessageReceiver<Message: Sendable>: @unchecked Sendable {
    private static var mostAtOnce: Int { 64 << 10 }
    /// How often the handler is called in one turn: 64 KB may hold 16,384 empty messages.
    private static var mostMessagesAtOnce: Int { 256 }

    private let port: LoopMessagePort<Message>
    private let coding: KeptCoding<Message>
    private var frames: MessageFrames
    private var isOver = false
    private let onRoom: (LoopMessagePort<Message>) -> Void
    private let onEnd: (LoopMessagePort<Message>, MessagePortEnd) -> Void
    private let handler: (LoopMessagePort<Message>, Message) -> Void

    init(
        _ port: LoopMessagePort<Message>, _ coding: KeptCoding<Message>, longest: Int,
        onRoom: @escaping (LoopMessagePort<Message>) -> Void,
        onEnd: @escaping (LoopMessagePort<Message>, MessagePortEnd) -> Void,
        handler: @escaping (LoopMessagePort<Message>, Message) -> Void
    ) {
        self.port = port
        self.coding = coding
        frames = MessageFrames(longest: longest)
        self.onRoom = onRoom
        self.onEnd = onEnd
        self.handler = handler
    }

    func tellRoom() {
        if port.isOpen { onRoom(port) }
    }

    /// Reads once, unless messages wait that were read before: they come first, in the turn of the inbox.
    func read() {
        guard !isOver, port.isOpen else { return }
        guard !frames.hasNext else { return port.inbox.signal() }
        withUnsafeTemporaryAllocation(byteCount: Self.mostAtOnce, alignment: 1) { buffer in
            let count = port.receive(buffer)
            if count > 0 {
                frames.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            } else if count == 0 || errno == ECONNRESET {
                // Reset: the peer has gone without reading all.
                end(frames.isBetweenMessages ? .finished : .cutOff)
            } else if errno != EAGAIN && errno != EINTR {
                end(.failed(errno: errno))
            }
        }
        handOver()
    }

    /// Hands over whole messages. Those above a turn's number wait in the inbox, which is signalled for them, and
    /// nothing is read meanwhile.
    func handOver() {
        for _ in 0..<Self.mostMessagesAtOnce where !isOver && port.isOpen {
            switch frames.next() {
            case .incomplete: return
            case .tooLong(let size): return end(.tooLong(size))
            case .message(let bytes):
                // The app's coding takes its time: another thread may have closed the port meanwhile.
                guard let message = decoded(bytes), port.isOpen else { return }
                // For a run that is nested in the handler: the socket may have nothing to wake it.
                if frames.hasNext { port.inbox.signal() }
                handler(port, message)
                _ = port.inbox.takeSignal()
            }
        }
        if !isOver, port.isOpen, frames.hasNext { port.inbox.signal() }
    }

    private func decoded(_ bytes: [UInt8]) -> Message? {
        do { return try coding.value.decode(bytes) } catch {
            end(.undecodable("\(error)"))
            return nil
        }
    }

    private func end(_ end: MessagePortEnd) {
        guard port.isOpen else { return }
        isOver = true
        if end == .finished { port.stopReading() } else { port.close() }
        onEnd(port, end)
        if end == .finished { port.endReading() }
    }
}
