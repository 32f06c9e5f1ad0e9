// A program that `run` waits for, as if it ran alone.

internal import Glibc
internal import StallInspection

enum ChildProgram {
    /// How the program ended.
    enum End: Equatable {
        case exited(CInt)
        case signalled(CInt)

        /// Ends this process in the same way, so that a shell sees what it would have seen.
        func endLikewise() -> Never {
            switch self {
            case .exited(let status): exit(status)
            case .signalled(let number):
                // The program has dumped its core if it was to.
                var none = rlimit(rlim_cur: 0, rlim_max: 0)
                setrlimit(__rlimit_resource_t(4), &none)  // RLIMIT_CORE
                signal(number, SIG_DFL)
                var set = sigset_t()
                sigemptyset(&set)
                sigaddset(&set, number)
                sigprocmask(SIG_UNBLOCK, &set, nil)
                kill(getpid(), number)
                exit(128 + number)
            }
        }
    }

    /// The program could not be started.
    struct Failure: Error {
        let errno: CInt
    }

    /// All that end or inform a process. Those of the terminal reach the program without help: it is in this process's
    /// group.
    private static let forwarded = [
        SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCONT,
    ]

    /// - Parameters:
    ///   - interval: How often `look` is called while the program runs; nil: never.
    static func run(
        _ program: ProgramFile, _ command: [String], _ environment: RunEnvironment,
        every interval: Duration? = nil, _ look: () -> Void = {}
    ) throws(Failure) -> End {
        var signals = sigset_t()
        var before = sigset_t()
        sigemptyset(&signals)
        for number in forwarded + [SIGCHLD] { sigaddset(&signals, number) }
        sigprocmask(SIG_BLOCK, &signals, &before)
        // Ignored, it would be reaped before it can be waited for.
        signal(SIGCHLD, SIG_DFL)
        let child = try start(program, command, environment, mask: before)
        var next = ContinuousClock.now + (interval ?? .zero)
        while true {
            var status: CInt = 0
            // Any child: with PR_SET_CHILD_SUBREAPER also an orphan, whose status no other process takes.
            let ended = waitpid(-1, &status, WNOHANG | WUNTRACED)
            if ended == child {
                if status & 0xFF == 0x7F {
                    follow(child, stoppedBy: status >> 8 & 0xFF)
                    continue
                }
                return status & 0x7F == 0
                    ? .exited(status >> 8 & 0xFF) : .signalled(status & 0x7F)
            }
            if ended > 0 {
                if status & 0xFF == 0x7F { ProcessTree.release(ended) }
                continue
            }
            var info = siginfo_t()
            let rest = interval.map { _ in max(.zero, next - .now) }
            let number = wait(for: signals, &info, atMost: rest)
            // SI_KERNEL: the terminal's.
            if number > 0, number != SIGCHLD, info.si_code <= 0 { kill(child, number) }
            if let interval, ContinuousClock.now >= next {
                look()
                next = .now + interval
            }
        }
    }

    private static func wait(
        for signals: sigset_t, _ info: inout siginfo_t, atMost limit: Duration?
    ) -> CInt {
        var signals = signals
        guard let limit else { return sigwaitinfo(&signals, &info) }
        let (seconds, attoseconds) = limit.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        return sigtimedwait(&signals, &info, &time)
    }

    /// Stops as the program did, and lets it continue when this process does. A job of a shell stops as a whole.
    private static func follow(_ child: pid_t, stoppedBy number: CInt) {
        kill(getpid(), SIGSTOP)
        kill(child, SIGCONT)
    }

    private static func start(
        _ program: ProgramFile, _ command: [String], _ environment: RunEnvironment, mask: sigset_t
    ) throws(Failure) -> pid_t {
        var attributes = posix_spawnattr_t()
        guard posix_spawnattr_init(&attributes) == 0 else { throw Failure(errno: ENOMEM) }
        defer { posix_spawnattr_destroy(&attributes) }
        var actions = posix_spawn_file_actions_t()
        guard posix_spawn_file_actions_init(&actions) == 0 else { throw Failure(errno: ENOMEM) }
        defer { posix_spawn_file_actions_destroy(&actions) }
        var (mask, defaults) = (mask, InheritedProcess.current.defaultSignals)
        posix_spawnattr_setsigmask(&attributes, &mask)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        for descriptor in InheritedProcess.current.closed {
            posix_spawn_file_actions_addclose(&actions, descriptor)
        }
        InheritedProcess.current.restoreLimits()
        var child: pid_t = 0
        func spawn(_ path: String, _ command: [String]) -> CInt {
            program.withWords(command, environment) {
                posix_spawn(&child, path, &actions, &attributes, $0, $1)
            }
        }
        var error = spawn(program.path, command)
        if error == ENOEXEC {
            error = spawn("/bin/sh", ["/bin/sh", program.path] + command.dropFirst())
        }
        guard error == 0 else { throw Failure(errno: error) }
        return child
    }
}
