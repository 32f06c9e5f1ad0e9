// The state that stallctl changes for itself, restored for a program that replaces it.

internal import Glibc

/// The state of the process as stallctl found it.
struct InheritedProcess: Sendable {
    nonisolated(unsafe) private(set) static var current = InheritedProcess()

    private var ignoresBrokenPipes = false
    private var ignoresFileLimits = false
    private var openFiles = rlimit()
    /// The standard descriptors that were closed.
    private(set) var closed: [CInt] = []

    /// Records the state. First of all, on the only thread.
    static func record() {
        var found = InheritedProcess()
        found.ignoresBrokenPipes = isIgnored(SIGPIPE)
        found.ignoresFileLimits = isIgnored(SIGXFSZ)
        getrlimit(__rlimit_resource_t(7), &found.openFiles)  // RLIMIT_NOFILE
        found.closed = (STDIN_FILENO...STDERR_FILENO).filter { fcntl($0, F_GETFD) < 0 }
        current = found
    }

    /// Restores it. Afterwards nothing can be written to a descriptor that was closed.
    func restore() {
        if !ignoresBrokenPipes { signal(SIGPIPE, SIG_DFL) }
        if !ignoresFileLimits { signal(SIGXFSZ, SIG_DFL) }
        restoreLimits()
        for descriptor in closed { close(descriptor) }
    }

    func restoreLimits() {
        var limit = openFiles
        setrlimit(__rlimit_resource_t(7), &limit)
    }

    /// Those that stallctl ignores and a child is not to.
    var defaultSignals: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        if !ignoresBrokenPipes { sigaddset(&signals, SIGPIPE) }
        if !ignoresFileLimits { sigaddset(&signals, SIGXFSZ) }
        return signals
    }

    private static func isIgnored(_ number: CInt) -> Bool {
        var action = sigaction()
        return sigaction(number, nil, &action) == 0
            && unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1  // SIG_IGN
    }
}
