// What the place that output goes to can show. Commands ask once; everything below them is told.

internal import Foundation
internal import Glibc
internal import StallModel

/// The output's width, colours and time zone.
struct Terminal: Sendable {
    /// Columns to fit tables into; nil when the output has no width (a file, a pipe).
    var columns: Int?
    /// Whether to send colours and weights.
    var usesColor: Bool
    /// Whether standard output is a terminal, so that raw control characters would be acted on.
    var isInteractive: Bool
    /// The zone that times are shown in.
    var timeZone: TimeZone
    /// The present, for times that leave out this year.
    var now: UnixTime

    /// Finds out about standard output.
    ///
    /// The width is `COLUMNS` when that is set, else what the terminal says. With
    /// ``ColorChoice/auto`` there is colour on a terminal unless `NO_COLOR` is set and not empty,
    /// or `TERM` is `dumb`.
    static func standardOutput(
        color: ColorChoice, environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> Terminal {
        let isInteractive = isatty(STDOUT_FILENO) == 1
        let allowsColor = (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
        return Terminal(
            columns: environment["COLUMNS"].flatMap(Int.init).flatMap { $0 > 0 ? $0 : nil }
                ?? (isInteractive ? windowColumns(of: STDOUT_FILENO) ?? 80 : nil),
            usesColor: color == .always || color == .auto && isInteractive && allowsColor,
            isInteractive: isInteractive,
            timeZone: .current,
            now: .now)
    }

    /// Text that is kept and read elsewhere: no width, no colour, and times in UTC.
    static var document: Terminal {
        Terminal(
            columns: nil, usesColor: false, isInteractive: false, timeZone: .gmt, now: .now)
    }

    /// The text in the given style, or as it is where there is no colour.
    func paint(_ text: String, _ style: TextStyle?) -> String {
        guard usesColor, let style, !text.isEmpty else { return text }
        return "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m"
    }
}

/// When to use colour (`--color`).
enum ColorChoice: String, CaseIterable, Sendable {
    case auto, always, never
}

/// The few styles in use; all of them read well on light and on dark backgrounds.
enum TextStyle: String, Sendable {
    case strong = "1"
    case faint = "2"
    case alarming = "31"
    case pointing = "36"
}

extension UnixTime {
    /// The wall clock's time.
    static var now: UnixTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UnixTime(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }
}

private func windowColumns(of descriptor: CInt) -> Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
}
