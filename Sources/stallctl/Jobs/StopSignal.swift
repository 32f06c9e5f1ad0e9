// SIGTERM and SIGINT end a job between two batches: what was taken is kept, and the store is closed.

internal import Glibc

/// Whether the job was told to stop. The signals are held back, so that nothing is cut short.
struct StopSignal {
    private var signals = sigset_t()

    /// From now on both signals wait until they are asked for.
    init() {
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        sigprocmask(SIG_BLOCK, &signals, nil)
    }

    var hasCome: Bool {
        var pending = sigset_t()
        sigpending(&pending)
        return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1
    }

    /// Waits until there is something to read, or the end; false when the job is to stop.
    func waits(forInput descriptor: CInt) -> Bool {
        while !hasCome {
            var input = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            // The signals are held back, so that they do not end this wait: it is a short one.
            if poll(&input, 1, 100) != 0 { return true }
        }
        return false
    }

    /// Sleeps; less when a signal comes.
    func sleep(seconds: Int) {
        guard !hasCome else { return }
        var signals = signals
        var time = timespec(tv_sec: seconds, tv_nsec: 0)
        let signal = sigtimedwait(&signals, nil, &time)
        // Taken by waiting for it: put it back for `hasCome`.
        if signal > 0 { raise(signal) }
    }
}
