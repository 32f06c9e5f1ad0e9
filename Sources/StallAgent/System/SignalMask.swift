// The agent's threads block the signals that are sent to the app. What the app does on one of them it does with its own
// mask.

internal import Glibc

/// The signals that a thread blocks.
struct SignalMask: Sendable {
    private var set: sigset_t

    init(_ set: sigset_t = sigset_t()) { self.set = set }

    /// The calling thread's.
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
