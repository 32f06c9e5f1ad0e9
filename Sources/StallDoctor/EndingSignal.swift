// A signal that ends stallctl in the middle of an examination: its directory is deleted first.

internal import Glibc
internal import Synchronization

/// Asks for the end of this process.
package enum EndingSignal {
    private static let received = Atomic<CInt>(0)

    /// Lets the signals end the examination instead of the process, from now on. An ignored one stays ignored.
    package static func intercept() {
        // Made here: the handler must not be the first to use it.
        received.store(0, ordering: .relaxed)
        for number in [SIGHUP, SIGINT, SIGTERM] {
            let before = signal(number) { EndingSignal.received.store($0, ordering: .relaxed) }
            if unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) {
                signal(number, SIG_IGN)
            }
        }
    }

    static var isPending: Bool { received.load(ordering: .relaxed) != 0 }

    /// Ends the process by the signal, if one is pending.
    package static func raiseIfPending() {
        let number = received.load(ordering: .relaxed)
        guard number != 0 else { return }
        signal(number, SIG_DFL)
        raise(number)
    }
}
