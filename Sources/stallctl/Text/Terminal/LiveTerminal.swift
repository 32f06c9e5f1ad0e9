// A full-screen terminal with raw key input. Restores the terminal's modes on exit, errors, signals, suspension (^Z)
// and hang-up.

internal import Glibc

/// The event that ended a wait for input.
enum LiveEvent: Equatable {
    case key(Key)
    /// The window was resized.
    case resized
    /// The timeout elapsed.
    case timeout
    /// The terminal hung up, or this signal is to end the process.
    case ended(signal: CInt?)
}

/// Owns the terminal's modes. Signals that end the process or report a resize are blocked and polled with the keys.
///
/// **Source:** termios(3); the alternate screen and the cursor by xterm's control sequences.
struct LiveTerminal: ~Copyable {
    private let original: termios
    private let signals: sigset_t
    private let originalMask: sigset_t
    private var keys = KeyDecoder()

    private static let endingSignals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

    /// Enters raw mode and the alternate screen; nil if standard input or output is not a terminal.
    init?() {
        var original = termios()
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1,
            tcgetattr(STDIN_FILENO, &original) == 0
        else { return nil }
        self.original = original
        var signals = sigset_t()
        var originalMask = sigset_t()
        sigemptyset(&signals)
        for signal in Self.endingSignals + [SIGWINCH, SIGTSTP] { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, &originalMask)
        self.signals = signals
        self.originalMask = originalMask
        take()
    }

    deinit {
        giveBack()
        var mask = originalMask
        pthread_sigmask(SIG_SETMASK, &mask, nil)
    }

    private func take() {
        var modes = original
        modes.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &modes)
        Self.send("\u{1b}[?1049h\u{1b}[?25l")
    }

    private func giveBack() {
        Self.send("\u{1b}[?25h\u{1b}[?1049l")
        var modes = original
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &modes)
    }

    /// Restores the terminal and stops the process (^Z) until the shell continues it.
    private func suspend() {
        giveBack()
        var stop = sigset_t()
        sigemptyset(&stop)
        sigaddset(&stop, SIGTSTP)
        raise(SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &stop, nil)  // stops here
        pthread_sigmask(SIG_BLOCK, &stop, nil)
        take()
    }

    /// Columns and rows of the window.
    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0
        else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Redraws the screen; false if the terminal hung up.
    func draw(_ lines: [String]) -> Bool {
        // Clears each line after its end, then everything below, to avoid flicker.
        let text = lines.map { $0 + "\u{1b}[K" }.joined(separator: "\r\n")
        return Self.send("\u{1b}[H" + text + "\u{1b}[J")
    }

    /// How long after an escape the rest of a sequence may take: longer than any terminal, shorter than a person.
    private static let escapeMilliseconds = 50

    /// Waits for a key, a signal or the timeout.
    mutating func nextEvent(within milliseconds: Int) -> LiveEvent {
        var left = milliseconds
        while true {
            if let key = keys.next(isComplete: false) { return .key(key) }
            var signals = signals
            var none = timespec()
            let signal = sigtimedwait(&signals, nil, &none)
            if signal == SIGWINCH { return .resized }
            if signal == SIGTSTP {
                suspend()
                return .resized  // the window may be another one by now
            }
            if signal > 0 { return .ended(signal: signal) }
            guard left > 0 else { return .timeout }
            // The poll is short because blocked signals do not interrupt it.
            let step = min(left, keys.isEmpty ? 100 : Self.escapeMilliseconds)
            left -= step
            var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            guard poll(&input, 1, CInt(step)) > 0 else {
                if let key = keys.next(isComplete: true) { return .key(key) }
                continue
            }
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = read(STDIN_FILENO, &bytes, bytes.count)
            guard count > 0 else { return .ended(signal: nil) }
            keys.add(bytes.prefix(count))
        }
    }

    /// False if the terminal is closed.
    @discardableResult
    private static func send(_ text: String) -> Bool {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            bytes = bytes.dropFirst(count)
        }
        return true
    }
}
