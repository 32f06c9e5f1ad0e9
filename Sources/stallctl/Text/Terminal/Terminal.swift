// The capabilities of the output. Commands query them once and pass them on.

internal import Foundation
internal import Glibc
internal import StallModel

/// The output's width, colors and time zone.
struct Terminal: Sendable {
    /// Columns to fit tables into; nil if the output has no width (a file, a pipe).
    var columns: Int?
    /// Whether to emit colors and bold text.
    var usesColor: Bool
    /// Whether standard output is a terminal, which would act on raw control characters.
    var isInteractive: Bool
    /// Whether the terminal shows hyperlinks.
    var usesLinks = false
    /// The zone in which times are shown.
    var timeZone: TimeZone
    /// The current time; times of this year omit the year.
    var now: UnixTime

    /// The capabilities of standard output.
    ///
    /// The width is `COLUMNS` if set, else the terminal's. ``ColorChoice/auto`` uses color on a terminal unless
    /// `NO_COLOR` is set and not empty, or `TERM` is `dumb`.
    static func standardOutput(
        color: ColorChoice, environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> Terminal {
        let isInteractive = isatty(STDOUT_FILENO) == 1
        let allowsColor = (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
        return Terminal(
            columns: environment["COLUMNS"].flatMap(Int.init).flatMap { $0 > 0 ? $0 : nil }
                ?? (isInteractive ? windowSize?.columns ?? 80 : nil),
            usesColor: color == .always || color == .auto && isInteractive && allowsColor,
            isInteractive: isInteractive,
            usesLinks: isInteractive && Hyperlink.isShown(in: environment),
            timeZone: .current,
            now: .now)
    }

    /// For documents: no width, no color, times in UTC.
    static var document: Terminal {
        Terminal(
            columns: nil, usesColor: false, isInteractive: false, timeZone: .gmt, now: .now)
    }

    /// The text in the given style, or unchanged without color.
    func paint(_ text: String, _ style: TextStyle?) -> String {
        guard usesColor, let style, !text.isEmpty else { return text }
        return "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m"
    }

    /// The text as a hyperlink, or unchanged on a terminal without links.
    func link(_ text: String, to target: String?) -> String {
        guard usesLinks, let target, !text.isEmpty else { return text }
        return Hyperlink.text(text, target: target)
    }
}

/// When to use color (`--color`).
enum ColorChoice: String, CaseIterable, Sendable {
    case auto, always, never
}

/// The styles in use; all are readable on light and dark backgrounds.
enum TextStyle: String, Sendable {
    case strong = "1"
    case faint = "2"
    case alarming = "31"
    case pointing = "36"
    case selected = "7"
}

extension UnixTime {
    /// The wall clock's time.
    static var now: UnixTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UnixTime(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }
}

extension Terminal {
    /// The window of standard output; nil if it is no terminal, or one without a width.
    static var windowSize: (columns: Int, rows: Int)? {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
            return nil
        }
        return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : .max)
    }
}
