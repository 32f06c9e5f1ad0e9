// Times given to --since and --until. Pure: takes the current time and the time zone as input.

internal import Foundation
internal import StallModel

/// A point in time, as typed.
enum TimeArgument {
    /// The accepted forms, for the error message.
    static let forms = """
        a time such as 2026-11-21T09:30:00Z, a date such as 2026-11-21, \
        or an age such as 90s, 15m, 2h, 7d or 4w
        """

    /// Parses an RFC 3339 time, a date, a local date and time, `today`, `yesterday`, `now`, or an age.
    static func parse(_ text: String, now: UnixTime, timeZone: TimeZone) throws(TimeArgumentError)
        -> UnixTime
    {
        switch text.lowercased() {
        case "now": return now
        case "today": return try midnight(daysAgo: 0, now: now, timeZone: timeZone, text)
        case "yesterday": return try midnight(daysAgo: 1, now: now, timeZone: timeZone, text)
        default: break
        }
        if let match = text.wholeMatch(of: /(\d{1,6}) ?([smhdw])/.ignoresCase()) {
            let secondsInUnit: [String: Int64] = [
                "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800,
            ]
            let seconds = Int64(match.1)! * secondsInUnit[match.2.lowercased()]!
            return UnixTime(microseconds: now.microseconds - seconds * 1_000_000)
        }
        return try parseDate(text, timeZone: timeZone)
    }

    /// Parses the end of a range: a day is included.
    static func parseEnd(_ text: String, now: UnixTime, timeZone: TimeZone)
        throws(TimeArgumentError) -> UnixTime
    {
        let time = try parse(text, now: now, timeZone: timeZone)
        let isDay =
            text.wholeMatch(of: /\d{4}-\d\d-\d\d/) != nil
            || ["today", "yesterday"].contains(text.lowercased())
        guard isDay else { return time }
        let day = Date(timeIntervalSince1970: Double(time.microseconds) / 1_000_000)
        return calendar(in: timeZone).date(byAdding: .day, value: 1, to: day).map(UnixTime.init)
            ?? time
    }

    private static func midnight(
        daysAgo: Int, now: UnixTime, timeZone: TimeZone, _ text: String
    ) throws(TimeArgumentError) -> UnixTime {
        let calendar = calendar(in: timeZone)
        let present = Date(timeIntervalSince1970: Double(now.microseconds) / 1_000_000)
        guard let day = calendar.date(byAdding: .day, value: -daysAgo, to: present) else {
            throw .unreadable(text)
        }
        return UnixTime(calendar.startOfDay(for: day))
    }

    private static func parseDate(_ text: String, timeZone: TimeZone) throws(TimeArgumentError)
        -> UnixTime
    {
        let pattern =
            /(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?([Zz]|[+-]\d\d:?\d\d)?)?/
        guard let match = text.wholeMatch(of: pattern) else { throw .unreadable(text) }
        var zone = timeZone
        if let offset = match.8 {
            guard let seconds = secondsFromGMT(offset),
                let fixed = TimeZone(secondsFromGMT: seconds)
            else {
                throw .unreadable(text)
            }
            zone = fixed
        }
        let number = { (digits: Substring?) in digits.flatMap { Int($0) } ?? 0 }
        let parts = DateComponents(
            calendar: calendar(in: zone), timeZone: zone,
            year: number(match.1), month: number(match.2), day: number(match.3),
            hour: number(match.4), minute: number(match.5), second: number(match.6))
        guard parts.isValidDate, let date = parts.date else { throw .noSuchDate(text) }
        let fraction = (match.7.map(String.init) ?? "").prefix(6)
        let microseconds = Int64(fraction + String(repeating: "0", count: 6 - fraction.count)) ?? 0
        return UnixTime(microseconds: UnixTime(date).microseconds + microseconds)
    }

    /// A suggestion for a mistyped word or age: `2 hours` is `2h`.
    static func meant(by text: String) -> String? {
        let words =
            /-? ?(\d{1,6}) ?(s(?:ec(?:ond)?)?|m(?:in(?:ute)?)?|h(?:ou)?r?|d(?:ay)?|w(?:ee)?k?)s?(?: ago)?/
        if let age = text.wholeMatch(of: words.ignoresCase()), let unit = age.2.first {
            return "\(age.1)\(unit.lowercased())"
        }
        return Suggestion.closest(to: text, in: ["now", "today", "yesterday"])
    }

    /// Parses `Z`, `+02:00` or `+0200`; nil for a day or more.
    private static func secondsFromGMT(_ offset: Substring) -> Int? {
        guard offset.lowercased() != "z" else { return 0 }
        let digits = offset.dropFirst().filter(\.isNumber)
        guard let hours = Int(digits.prefix(2)), let minutes = Int(digits.suffix(2)), hours < 24,
            minutes < 60
        else { return nil }
        return (hours * 3600 + minutes * 60) * (offset.first == "-" ? -1 : 1)
    }

    private static func calendar(in zone: TimeZone) -> Calendar {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        return calendar
    }
}

/// Why a time was rejected. The message names what is expected.
enum TimeArgumentError: Error, Equatable, CustomStringConvertible {
    /// None of the accepted forms.
    case unreadable(String)
    /// A well-formed date or time that does not exist.
    case noSuchDate(String)
    /// A range that ends before it begins.
    case emptyRange(String)

    var description: String {
        switch self {
        case .unreadable(let text):
            "'\(text.printable)' is not a time; expected \(TimeArgument.forms)."
                + (TimeArgument.meant(by: text).map { " Did you mean '\($0)'?" } ?? "")
        case .emptyRange(let text): "The range '\(text.printable)' ends before it begins."
        case .noSuchDate(let text): "There is no '\(text.printable)' in the calendar."
        }
    }
}

extension UnixTime {
    /// The same time, rounded to seconds.
    fileprivate init(_ date: Date) {
        self.init(microseconds: Int64(date.timeIntervalSince1970.rounded()) * 1_000_000)
    }
}
