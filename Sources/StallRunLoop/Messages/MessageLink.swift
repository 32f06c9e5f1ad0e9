// The socket of a message port: what waits to be sent, and who may use the descriptor. Knows bytes, not messages.
//
// One thread at a time has the turn to write: the one that sends, if it is free, else the loop as soon as there is room. No thread
// waits: writing never blocks, and a thread that finds the turn taken leaves its bytes in the queue.
//
// A passed descriptor is never closed on the loop's thread: that may wait for as long as the peer likes (stall_socket.h).

internal import CLinux
internal import Glibc
internal import Synchronization

final class MessageLink: @unchecked Sendable {
    /// `either`: more is to be written, by the loop or by the next thread that sends.
    enum Turn {
        case free, sender, loop, either

        /// Whether the loop may write when the socket has room.
        var mayBeLoop: Bool { self == .loop || self == .either }
    }

    /// Whether bytes to send were accepted.
    enum Acceptance { case taken, full, closed }

    private struct State {
        /// Behind what is being written.
        var queue: [UInt8] = []
        /// How many bytes wait, those that are being written included.
        var waiting = 0
        var turn = Turn.free
        /// No more is taken: it was finished or closed, or the peer cannot be written to.
        var isRefusing = false
        /// The peer is to be notified that no more comes, once all is written; it was notified.
        var isFinishing = false
        var isFinished = false
        /// Nothing more comes. The end of a stream is ready forever, which a nested run would see again and again.
        var isAtEnd = false
        /// No more is read; the socket is closed once all is written.
        var isReadingOver = false
        /// The source is gone, and the descriptor is to be closed by the thread that has the turn.
        var isCancelled = false
        /// Something was refused since there was room last.
        var wasFull = false
        /// Another thread takes bytes out of the socket, with the descriptors that came with them. Nothing is read meanwhile.
        var isDropping = false
    }

    /// How many bytes are written in one turn: other threads may add more for as long as one writes.
    private static let mostAtOnce = 64 << 10

    private let descriptor: CInt
    /// The app may close it, and have something else under the number.
    private let opened: OpenedDescriptor
    private let queueSize: Int
    private let state = Locked(State())
    /// The process that has made it. In a forked child it is closed: the stream is the parent's, and the lock may be held by a thread
    /// that the child does not have.
    private let forkGeneration = stall_fork_generation()
    private let isClosedInChild = Atomic<Bool>(false)
    /// Whether the peer can pass descriptors.
    private let mayBringDescriptors: Bool
    /// Touched by the thread that has the turn.
    private var writing: [UInt8] = []
    private var offset = 0
    /// Set before the source is in a loop; from then on only read.
    private(set) var source: DescriptorSource!
    private(set) var inbox: LoopSource!
    private var hasRoom: LoopSource!

    init(descriptor: CInt, queueSize: Int) {
        self.descriptor = descriptor
        opened = OpenedDescriptor(socket: descriptor)
        self.queueSize = queueSize
        mayBringDescriptors = !stall_socket_refuse_descriptors(descriptor)
    }

    /// Adds itself to the loop.
    ///
    /// - Parameters:
    ///   - onReady: Called when there may be something to read.
    ///   - onInbox: Called when something was read that is not handed over yet.
    ///   - onRoom: Called when everything is written, after something was refused.
    func start(
        on loop: EventRunLoop, inMode mode: LoopMode, onReady: sending @escaping () -> Void,
        onInbox: sending @escaping () -> Void, onRoom: sending @escaping () -> Void
    ) throws(LoopError) {
        // Kept by its loop; this keeps what the loop keeps, until it is closed.
        source = DescriptorSource(
            opened: opened, ofProcess: forkGeneration,
            onCancel: { [self] _ in cancelled() }
        ) { [self] _, events in
            if takeTurnOfLoop() { write(upTo: Self.mostAtOnce) }
            if events != .writable { onReady() }
        }
        // The loop's thread cancels its sources when it ends.
        inbox = LoopSource(onCancel: { [weak self] _, _ in self?.close() }) { _ in onInbox() }
        hasRoom = LoopSource { _ in onRoom() }
        do throws(LoopError) {
            guard loop.add(inbox, toMode: mode), loop.add(hasRoom, toMode: mode),
                try loop.add(source, toMode: mode)
            else { throw .stopped }
        } catch {
            close()
            throw error
        }
    }

    private var isOfThisProcess: Bool { forkGeneration == stall_fork_generation() }

    var isOpen: Bool { isOfThisProcess && source.isValid }

    // MARK: Sending

    /// Takes bytes, and writes what the socket has room for.
    func send(_ bytes: [UInt8]) -> Acceptance {
        guard isOfThisProcess else { return .closed }
        let (acceptance, hasTurn) = state.withLock { state -> (Acceptance, Bool) in
            guard !state.isRefusing else { return (.closed, false) }
            guard state.waiting == 0 || state.waiting + bytes.count <= queueSize else {
                state.wasFull = true
                return (.full, false)
            }
            if state.queue.isEmpty { state.queue = bytes } else { state.queue += bytes }
            state.waiting += bytes.count
            let wasSharing = state.turn == .either
            guard state.turn == .free || wasSharing else { return (.taken, false) }
            state.turn = .sender
            if wasSharing { setEvents(state) }
            return (.taken, true)
        }
        if hasTurn { write(upTo: max(Self.mostAtOnce, bytes.count)) }
        return acceptance
    }

    /// How many bytes wait to be written.
    var waiting: Int { isOfThisProcess ? state.withLock { $0.waiting } : 0 }

    /// How many bytes it has memory for.
    var keptSize: Int { state.withLock { $0.queue.capacity + writing.capacity } }

    /// Takes no more; messages that wait are written, then the peer is notified that these were all.
    func finish() {
        guard isOfThisProcess else { return }
        state.withLock { state in
            state.isRefusing = true
            state.isFinishing = true
            if state.turn == .free { shutDown(&state) }
        }
    }

    /// The peer sends no more; more may be sent to it.
    func stopReading() {
        state.withLock { state in
            state.isAtEnd = true
            setEvents(state)
        }
    }

    /// The peer sends no more. Messages that wait are written, then the socket is closed.
    func endReading() {
        let isIdle = state.withLock { state in
            state.isRefusing = true
            state.isReadingOver = true
            setEvents(state)
            return state.turn == .free
        }
        if isIdle { close() }
    }

    /// Drops what waits, and closes the socket as soon as it is not in use.
    func close() {
        guard isOfThisProcess else { return closeInChild() }
        state.withLock { state in
            state.isRefusing = true
            state.queue = []
            state.waiting = 0
        }
        source.invalidate()
        inbox.invalidate()
        hasRoom.invalidate()
    }

    /// No handler runs and none will.
    private func cancelled() {
        guard isOfThisProcess else { return closeInChild() }
        let isUnused = state.withLock { state in
            state.isRefusing = true
            state.isCancelled = true
            guard state.turn != .sender else { return false }
            (writing, offset) = ([], 0)
            return !state.isDropping
        }
        if isUnused { closeDescriptor() }
    }

    /// The parent's socket stays open, and its peer notices nothing.
    private func closeInChild() {
        if !isClosedInChild.exchange(true, ordering: .relaxed) { closeDescriptor() }
    }

    private func closeDescriptor() {
        if opened.isSocketOpen {
            if mayBringDescriptors {
                stall_socket_close(descriptor)
            } else {
                Glibc.close(descriptor)
            }
        }
        opened.close()
    }

    // MARK: Reading

    /// As recv(2), without waiting. On the loop's thread.
    func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard opened.isOwn else {
            errno = EBADF
            return -1
        }
        guard mayBringDescriptors else { return take(buffer) }
        guard !state.withLock({ $0.isDropping }) else {
            errno = EAGAIN
            return -1
        }
        var brings = false
        let count = stall_socket_peek(descriptor, buffer.baseAddress!, buffer.count, &brings)
        guard count > 0 else { return count }
        guard brings else { return take(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])) }
        return takeElsewhere(count) ? count : -1
    }

    private func take(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        recv(descriptor, buffer.baseAddress, buffer.count, CInt(MSG_DONTWAIT))
    }

    /// Has another thread take bytes that are known already. False with errno when there is none.
    private func takeElsewhere(_ count: Int) -> Bool {
        state.withLock { state in
            state.isDropping = true
            setEvents(state)
        }
        let part = Unmanaged.passRetained(PartWithDescriptors(self, count))
        let error = stall_thread_start_detached(
            "message drop",
            { context in
                let part = Unmanaged<PartWithDescriptors>.fromOpaque(context!).takeRetainedValue()
                part.link.drop(part.count)
                return nil
            }, part.toOpaque())
        guard error != 0 else { return true }
        part.release()
        endDropping()
        // Not EAGAIN, which would be tried again at once.
        errno = error == EAGAIN ? ENOBUFS : error
        return false
    }

    private func drop(_ count: Int) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        // Returns when the kernel has closed what came with the bytes.
        _ = take(buffer)
        buffer.deallocate()
        endDropping()
    }

    private func endDropping() {
        let isUnused = state.withLock { state in
            state.isDropping = false
            setEvents(state)
            return state.isCancelled && state.turn != .sender
        }
        if isUnused { closeDescriptor() }
    }

    // MARK: Writing

    /// The next step of the thread that has the turn.
    private enum Step { case write, closeDescriptor, close, nothing }

    private func takeTurnOfLoop() -> Bool {
        state.withLock { state in
            guard state.turn.mayBeLoop else { return false }
            state.turn = .sender
            return true
        }
    }

    /// Writes until all is written, the socket has no room, or `most` bytes are written: the loop writes the rest. The
    /// caller has the turn, which this gives on.
    private func write(upTo most: Int) {
        var left = most
        while true {
            switch state.withLock({ nextStep(&$0) }) {
            case .nothing: return
            case .closeDescriptor:
                closeDescriptor()
                return
            case .close: return close()
            case .write: if !writeSome(&left) { return }
            }
        }
    }

    private func nextStep(_ state: inout State) -> Step {
        if state.isCancelled {
            (writing, offset) = ([], 0)
            state.turn = .free
            return state.isDropping ? .nothing : .closeDescriptor
        }
        if offset < writing.count { return .write }
        (writing, offset) = (state.queue, 0)
        state.queue = []
        if !writing.isEmpty { return .write }
        state.turn = .free
        setEvents(state)
        if state.isFinishing { shutDown(&state) }
        if state.wasFull {
            state.wasFull = false
            hasRoom.signal()
            hasRoom.wakeLoops()
        }
        return state.isReadingOver ? .close : .nothing
    }

    /// False when the turn is the loop's, because there is no room or nothing is left of the bytes of this turn.
    private func writeSome(_ left: inout Int) -> Bool {
        let isOwn = opened.isOwn
        let most = left
        let sent = writing.withUnsafeBytes { bytes in
            isOwn
                ? Glibc.send(
                    descriptor, bytes.baseAddress! + offset, min(most, bytes.count - offset),
                    CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)) : -1
        }
        let error = isOwn ? errno : EBADF
        left -= max(0, sent)
        let isTurnOver = left == 0
        return state.withLock { state in
            if sent >= 0 {
                offset += sent
                state.waiting = max(0, state.waiting - sent)
                let isAllWritten = offset == writing.count && state.queue.isEmpty
                if isTurnOver && !isAllWritten && !state.isCancelled {
                    return give(to: .either, &state)
                }
            } else if error == EAGAIN {
                return state.isCancelled || give(to: .loop, &state)
            } else if error != EINTR {
                // The peer reads no more. The messages that it sent before can still be read.
                state.isRefusing = true
                (state.queue, state.waiting) = ([], 0)
                (writing, offset) = ([], 0)
            }
            return true
        }
    }

    /// With the lock. Returns false: the calling thread is done.
    private func give(to turn: Turn, _ state: inout State) -> Bool {
        state.turn = turn
        setEvents(state)
        return false
    }

    /// Sets the events to wait for. With the lock, so that they change together with the work there is.
    private func setEvents(_ state: borrowing State) {
        var events: DescriptorEvents = state.isAtEnd || state.isDropping ? [] : .readable
        if state.turn.mayBeLoop { events.insert(.writable) }
        if source.events != events { source.events = events }
    }

    private func shutDown(_ state: inout State) {
        guard !state.isFinished, !state.isCancelled else { return }
        state.isFinished = true
        if opened.isOwn { shutdown(descriptor, CInt(SHUT_WR)) }
    }
}

/// Bytes at the front of a socket that bring descriptors.
private final class PartWithDescriptors: Sendable {
    let link: MessageLink
    let count: Int

    init(_ link: MessageLink, _ count: Int) {
        self.link = link
        self.count = count
    }
}
