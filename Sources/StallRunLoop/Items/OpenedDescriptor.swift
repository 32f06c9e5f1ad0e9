// A descriptor that is a source's own, because the library has opened it, or was given it to keep. The app may close it, as
// a daemon closes all, and have a file of its own under that number; then the number is left alone, and the source gets a
// new descriptor. So it does in a forked child, because this one's events are the parent's.

internal import CLinux
internal import Glibc
internal import Synchronization

final class OpenedDescriptor: Sendable {
    private struct State {
        /// See `stall_descriptor_own_one`.
        var ticket: UInt32 = 0
        /// The process that has opened it.
        var forkGeneration = stall_fork_generation()
        /// The socket that it was given, or 0: see `stall_socket_identity`.
        var socket: UInt64 = 0
    }

    private let current: Atomic<CInt>
    private let over = Atomic<Bool>(false)
    private let state: Locked<State>
    /// Opens it. -1 with errno.
    private let opener: @Sendable (_ again: Bool) -> CInt

    /// Nil with errno if it cannot be opened.
    init?(_ opener: @escaping @Sendable (_ again: Bool) -> CInt) {
        self.opener = opener
        let number = opener(false)
        current = Atomic(number)
        state = Locked(State(ticket: stall_descriptor_own_one(number)))
        if number < 0 { return nil }
    }

    /// A socket that another one cannot be opened for.
    init(socket: CInt) {
        opener = { _ in
            errno = EBADF
            return -1
        }
        current = Atomic(socket)
        state = Locked(State(socket: stall_socket_identity(socket)))
    }

    deinit { close() }

    /// Its number; -1 without one.
    var number: CInt { current.load(ordering: .acquiring) }

    /// It cannot be opened again, because what it was for is gone. It is always ready then, so that its source learns of it.
    var isOver: Bool { over.load(ordering: .acquiring) }

    /// Whether the number still means what the source is for, in this process. Two or three system calls.
    var isOwn: Bool { !isOver && state.withLock { isOwn($0) } }

    /// Whether the number that it was given is that socket still, also in a forked child.
    var isSocketOpen: Bool { !isOver && state.withLock { isOpen($0) } }

    private func isOwn(_ state: State) -> Bool {
        state.forkGeneration == stall_fork_generation() && isOpen(state)
    }

    /// The same, also in the child of the process that has opened it.
    private func isOpen(_ state: State) -> Bool {
        if state.ticket != 0 { return stall_descriptor_is_one(number, state.ticket) }
        return number >= 0
            && (state.socket == 0 || stall_socket_identity(number) == state.socket)
    }

    /// The number to watch, of a new descriptor where the app or the parent has the old one. -1 with errno when there is none
    /// for it now.
    func renewed() -> CInt {
        state.withLock { state in
            if isOwn(state) { return number }
            close(state)
            var made = opener(true)
            if made < 0 && ![EMFILE, ENFILE, ENOMEM].contains(errno) {
                made = stall_ready_descriptor_create()
                if made >= 0 { over.store(true, ordering: .releasing) }
            }
            let error = errno
            state = State(ticket: stall_descriptor_own_one(made))
            current.store(made, ordering: .releasing)
            errno = error
            return made
        }
    }

    /// Closes it, unless the number means another file by now.
    func close() {
        state.withLock { state in
            close(state)
            state = State()
            current.store(-1, ordering: .releasing)
        }
    }

    private func close(_ state: State) {
        if state.ticket != 0 {
            stall_descriptor_close_one(number, state.ticket)
        }
    }
}
