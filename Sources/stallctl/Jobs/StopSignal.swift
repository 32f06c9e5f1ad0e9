// SIGTERM and SIGINT end a job between two batches: the imported reports are committed, and the store is closed.

internal import Glibc

/// Whether the job was asked to stop. The signals are blocked, so that no system call is interrupted.
struct StopSignal {
    private var signals = sigset_t()

    /// Blocks both signals from now on; ``isRequested`` polls for them.
    init() {
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        sigprocmask(SIG_BLOCK, &signals, nil)
    }

    var isRequested: Bool {
        var pending = sigset_t()
        sigpending(&pending)
        return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1
    }

    /// Waits for input or end of file; false if the job is to stop.
    func waits(forInput descriptor: CInt) -> Bool {
        while !isRequested {
            var input = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            // The timeout is short because the blocked signals do not interrupt it.
            if poll(&input, 1, 100) != 0 { return true }
        }
        return false
    }

    /// Sleeps until the timeout or a signal.
    func sleep(seconds: Int) { sleep(seconds: Double(seconds)) }

    func sleep(seconds: Double) {
        guard !isRequested else { return }
        var signals = signals
        // A timespec of centuries is as good as one of more.
        let seconds = min(seconds, 1e10)
        let whole = seconds.rounded(.down)
        var time = timespec(tv_sec: Int(whole), tv_nsec: Int((seconds - whole) * 1e9))
        let signal = sigtimedwait(&signals, nil, &time)
        // sigtimedwait consumed it: raise it again for `isRequested`.
        if signal > 0 { raise(signal) }
    }
}
