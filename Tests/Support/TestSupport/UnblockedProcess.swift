package import Foundation

extension Process {
    /// Starts the program with no signal blocked. A child inherits the mask of the thread that starts it, and tests run on threads of
    /// Dispatch, which block nearly all: it would survive SIGTERM, and an alarm that is to end one that hangs.
    package func start() throws {
        var (none, before) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try run()
    }
}
