// A descriptor that is a source's own, because the library has opened it, or was given it to keep. The app may close it, as
// a daemon closes all, and have a file of its own under that number; then the number is left alone, and the source gets a
// new descriptor. So it does in a forked child, because this one's events are the parent's.

internal import CLinux
internal import Glibc
internal import Synchronization

final class OpenedDescriptor: Sendable {
    private struct State {
        /// See `stall_descriptor_own_one`; 0 without one.
        var ticket: UInt32 = 0
        /// The process that has opened it.
        var forkGeneration = stall_fork_generation()

        init(ticket: UInt32 = 0) { self.ticket = ticket }

        init(word: UInt64) {
            ticket = UInt32(truncatingIfNeeded: word)
            forkGeneration = UInt32(truncatingIfNeeded: word >> 32)
        }

        var word: UInt64 { UInt64(forkGeneration) << 32 | UInt64(ticket) }
    }

    private let current: Atomic<CInt>
    private let over = Atomic<Bool>(false)
    /// Of `State`. Read without a lock: every thread that sends looks at it, and a forked child would wait for one it does not have.
    private let state: Atomic<UInt64>
    /// Held by the thread that opens it again or closes it.
    private let changing = Locked(())
    /// The socket that it was given, or 0: see `stall_socket_identity`.
    private let socket: UInt64
    /// Opens it. -1 with errno.
    private let opener: @Sendable (_ again: Bool) -> CInt

    /// Nil with errno if it cannot be opened.
    init?(_ opener: @escaping @Sendable (_ again: Bool) -> CInt) {
        self.opener = opener
        socket = 0
        let number = opener(false)
        current = Atomic(number)
        state = Atomic(State(ticket: stall_descriptor_own_one(number)).word)
        if number < 0 { return nil }
    }

    /// A socket that another one cannot be opened for.
    init(socket number: CInt) {
        opener = { _ in
            errno = EBADF
            return -1
        }
        current = Atomic(number)
        state = Atomic(State().word)
        socket = stall_socket_identity(number)
    }

    deinit { close() }

    /// Its number; -1 without one.
    var number: CInt { current.load(ordering: .acquiring) }

    /// It cannot be opened again, because what it was for is gone. It is always ready then, so that its source learns of it.
    var isOver: Bool { over.load(ordering: .acquiring) }

    /// Whether the number still means what the source is for, in this process. Two or three system calls.
    var isOwn: Bool { !isOver && isOwn(State(word: state.load(ordering: .acquiring))) }

    /// Whether the number that it was given is that socket still, also in a forked child.
    var isSocketOpen: Bool { !isOver && isOpen(State(word: state.load(ordering: .acquiring))) }

    private func isOwn(_ state: State) -> Bool {
        state.forkGeneration == stall_fork_generation() && isOpen(state)
    }

    /// The same, also in the child of the process that has opened it.
    private func isOpen(_ state: State) -> Bool {
        if state.ticket != 0 { return stall_descriptor_is_one(number, state.ticket) }
        return number >= 0 && (socket == 0 || stall_socket_identity(number) == socket)
    }

    /// The number to watch, of a new descriptor where the app or the parent has the old one. -1 with errno when there is none
    /// for it now.
    func renewed() -> CInt {
        changing.withLock { _ in
            if isOwn(State(word: state.load(ordering: .acquiring))) { return number }
            closeOpened()
            var made = opener(true)
            if made < 0 && ![EMFILE, ENFILE, ENOMEM].contains(errno) {
                made = stall_ready_descriptor_create()
                if made >= 0 { over.store(true, ordering: .releasing) }
            }
            let error = errno
            replace(by: made, State(ticket: stall_descriptor_own_one(made)))
            errno = error
            return made
        }
    }

    /// Closes it, unless the number means another file by now.
    func close() {
        // There is nothing to close of a socket that was given, and its lock may be another thread's at a fork.
        if socket != 0 && !isOver { return replace(by: -1, State()) }
        changing.withLock { _ in
            closeOpened()
            replace(by: -1, State())
        }
    }

    private func closeOpened() {
        let ticket = State(word: state.load(ordering: .acquiring)).ticket
        if ticket != 0 { stall_descriptor_close_one(number, ticket) }
    }

    private func replace(by number: CInt, _ new: State) {
        current.store(number, ordering: .releasing)
        state.store(new.word, ordering: .releasing)
    }
}
