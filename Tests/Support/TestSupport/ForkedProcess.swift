package import Glibc

/// Forks, and ends the child with what `body` returns; after 20 seconds by SIGALRM.
package func forkProcess(_ body: () -> CInt) -> pid_t {
    let child = forkProcess(notEnding: ())
    guard child == 0 else { return child }
    _exit(body())
}

/// Forks, and goes on in the child, which is ended by SIGALRM after 20 seconds.
package func forkProcess(notEnding: Void) -> pid_t {
    // Swift's Glibc hides it.
    typealias Fork = @convention(c) () -> pid_t
    let child = unsafeBitCast(dlsym(nil, "fork"), to: Fork.self)()
    guard child == 0 else { return child }
    alarm(20)
    // The body of an exit test runs on a worker of Dispatch, which blocks it.
    var alarm = sigset_t()
    sigemptyset(&alarm)
    sigaddset(&alarm, SIGALRM)
    pthread_sigmask(SIG_UNBLOCK, &alarm, nil)
    return 0
}

/// The child's wait status.
package func wait(for child: pid_t) -> CInt {
    var status: CInt = -1
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    return status
}
