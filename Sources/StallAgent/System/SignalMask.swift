// The agent's threads block the signals that are sent to the app. Callbacks of the app run with the app's own mask.

internal import Glibc

/// The signals that a thread blocks.
struct SignalMask: Sendable {
    private var set: sigset_t

    init(_ set: sigset_t = sigset_t()) { self.set = set }

    /// The calling thread's mask.
    static func current() -> SignalMask {
        var mask = SignalMask()
        pthread_sigmask(SIG_SETMASK, nil, &mask.set)
        return mask
    }

    /// Runs `body` with this mask on the calling thread.
    func run(_ body: () -> Void) {
        var (own, before) = (set, sigset_t())
        pthread_sigmask(SIG_SETMASK, &own, &before)
        body()
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }
}
