// Times as text: local and short. Data uses RFC 3339 (StallAnalysis). TimeArgument.swift parses.

internal import Foundation
internal import Glibc
internal import StallModel

extension UnixTime {
    /// `21 Nov 09:00`, with the year if it is not the current one.
    func shortText(on terminal: Terminal) -> String {
        let (date, _) = civil(in: terminal.timeZone)
        let isThisYear = date.year == terminal.now.civil(in: terminal.timeZone).date.year
        let year = isThisYear ? "" : " " + date.year
        return "\(date.dayText)\(year) \(date.hour):\(date.minute)"
    }

    /// `21 Nov 14:03:22.417`, with the year if it is not the current one.
    func exactText(on terminal: Terminal) -> String {
        shortText(on: terminal) + ":" + clockTail(in: terminal.timeZone)
    }

    /// `14:03:22`
    func clockText(on terminal: Terminal) -> String {
        let (date, _) = civil(in: terminal.timeZone)
        return "\(date.hour):\(date.minute):\(date.second)"
    }

    /// `21 Nov at 14:03:22.417`, for sentences.
    func sentenceText(on terminal: Terminal) -> String {
        let parts = exactText(on: terminal).split(separator: " ")
        return parts.dropLast().joined(separator: " ") + " at " + parts[parts.count - 1]
    }

    /// `21 Nov 09:00 to 17:40`: the second day is shown only if it differs.
    static func rangeText(from first: UnixTime, to last: UnixTime, on terminal: Terminal) -> String
    {
        let (start, _) = first.civil(in: terminal.timeZone)
        let (end, _) = last.civil(in: terminal.timeZone)
        let begins = first.shortText(on: terminal)
        guard start.year == end.year, start.dayText == end.dayText else {
            return begins + " to " + last.shortText(on: terminal)
        }
        let isOneMinute = start.hour == end.hour && start.minute == end.minute
        return isOneMinute ? begins : begins + " to \(end.hour):\(end.minute)"
    }

    private func clockTail(in zone: TimeZone) -> String {
        let (date, microsecond) = civil(in: zone)
        return date.second + "." + String(microsecond / 1000).padded(with: "0", to: 3)
    }

    private func civil(in zone: TimeZone) -> (date: CivilDate, microsecond: Int64) {
        let seconds = Double(microseconds / 1_000_000)
        return civil(secondsFromGMT: zone.secondsFromGMT(for: Date(timeIntervalSince1970: seconds)))
    }

    private func civil(secondsFromGMT: Int) -> (date: CivilDate, microsecond: Int64) {
        let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let microsecond = remainder < 0 ? remainder + 1_000_000 : remainder
        var seconds = time_t(remainder < 0 ? quotient - 1 : quotient) + secondsFromGMT
        var fields = tm()
        gmtime_r(&seconds, &fields)
        return (CivilDate(fields), microsecond)
    }
}

/// The parts of a date, as text.
private struct CivilDate {
    let year, month, day, hour, minute, second: String
    /// `21 Nov`
    let dayText: String

    init(_ fields: tm) {
        func digits(_ value: CInt, _ count: Int) -> String {
            String(value).padded(with: "0", to: count)
        }
        let names = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        year = digits(fields.tm_year + 1900, 4)
        month = digits(fields.tm_mon + 1, 2)
        day = digits(fields.tm_mday, 2)
        hour = digits(fields.tm_hour, 2)
        minute = digits(fields.tm_min, 2)
        second = digits(fields.tm_sec, 2)
        dayText = "\(fields.tm_mday) \(names[Int(fields.tm_mon)])"
    }
}
