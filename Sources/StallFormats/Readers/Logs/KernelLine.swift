// A line of Linux' log, without what dmesg, the journal or syslog put before the message.
//
//     Nov 20 09:14:31 db-7 kernel: [12345.678901] INFO: task ...
//     [12345.678901] INFO: task ...
//     [12345.678901][  T123] INFO: task ...
//     [Fri Nov 20 09:14:31 2026] INFO: task ...
//     2026-11-20T09:14:31,204567+01:00 INFO: task ...
//     <3>[12345.678901] INFO: task ...
//     [Nov20 09:14] INFO: task ...
//     [  +0.000003] INFO: task ...
//     kern  :err   : [12345.678901] INFO: task ...
//     <3>1 2026-11-20T09:14:31Z db-7 kernel - - - INFO: task ...

internal import StallModel

/// A message of the kernel.
struct KernelLine {
    private(set) var message: ArraySlice<UInt8>
    private(set) var time: UnixTime?
    /// The prefix with a time that has no year.
    private var yearless: LogPrefix?
    /// Microseconds since boot.
    private(set) var uptime: Int64?
    private(set) var host = ""
    /// The task or the processor that wrote it, where the kernel says so.
    private(set) var caller: ArraySlice<UInt8> = []
    /// The log says that it is the kernel's.
    private(set) var isNamed = false

    /// It begins as a line of a log.
    var hasPrefix: Bool { isNamed || time != nil || uptime != nil || yearless != nil }

    init(_ line: ArraySlice<UInt8>) {
        var line = line
        if let rest = line.afterCollector {
            time = LogPrefix(line[..<rest.startIndex]).time
            line = rest
        }
        message = line
        if takeSyslog() {
            message = message.trimmed
            return
        }
        let beginning = line.prefix(256)
        if let found = beginning.range(of: "kernel:"),
            found.lowerBound == line.startIndex || line[found.lowerBound - 1].isBlank,
            let prefix = LogPrefix(ofTag: line[..<found.upperBound])
        {
            isNamed = true
            (time, host) = (prefix.time ?? time, prefix.host)
            yearless = prefix
            message = line[found.upperBound...]
        }
        while takeMark() {}
        message = message.trimmed
    }

    /// Passes over a time, a level or a caller.
    private mutating func takeMark() -> Bool {
        let text = message.drop(while: \.isBlank)
        if text.first == UInt8(ascii: "["), let end = text.prefix(48).firstIndex(of: 0x5d) {
            let mark = text[(text.startIndex + 1)..<end].trimmed
            if let found = Self.uptime(mark) {
                uptime = found
            } else if Self.isCaller(mark) {
                caller = mark
            } else if !Self.isDelta(mark) {
                guard let found = LogPrefix(text[...end]).time else { return false }
                time = time ?? found
            }
            message = text[(end + 1)...]
            return true
        }
        if text.first == UInt8(ascii: "<"), let end = text.prefix(5).firstIndex(of: 0x3e),
            text[(text.startIndex + 1)..<end].decimal(UInt8.self) != nil
        {
            message = text[(end + 1)...]
            return true
        }
        guard text.first?.isDigit == true else { return takeLevel(text) }
        var rest = text.prefix(48)
        let word = rest.takeWord()
        guard let found = LogPrefix(word).time else { return false }
        time = time ?? found
        message = text[word.endIndex...]
        return true
    }

    /// `kern  :err   : `
    private mutating func takeLevel(_ text: ArraySlice<UInt8>) -> Bool {
        let levels = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"]
        guard text.first != nil, let colon = text.prefix(12).firstIndex(of: UInt8(ascii: ":")),
            text[..<colon].prefix(while: { 0x61...0x7a ~= $0 }).count > 2,
            let end = text[(colon + 1)...].prefix(12).firstIndex(of: UInt8(ascii: ":"))
        else { return false }
        let level = text[(colon + 1)..<end].trimmed
        guard levels.contains(where: { level.elementsEqual($0.utf8) }) else { return false }
        message = text[(end + 1)...]
        return true
    }

    /// `<3>1 TIME HOST kernel - - - MESSAGE`, of RFC 5424.
    private mutating func takeSyslog() -> Bool {
        var rest = message.prefix(1024)
        let version = rest.takeWord()
        guard version.first == UInt8(ascii: "<"), version.ends(with: ">1"),
            let found = LogPrefix(rest.takeWord()).time
        else { return false }
        let (host, app) = (rest.takeWord(), rest.takeWord())
        guard app.elementsEqual("kernel".utf8) else { return false }
        _ = (rest.takeWord(), rest.takeWord())
        rest = rest.drop(while: \.isBlank)
        guard let end = Self.endOfData(rest) else { return false }
        (time, isNamed) = (found, true)
        self.host = host.elementsEqual("-".utf8) ? "" : host.text
        message = message[end...]
        while takeMark() {}
        return true
    }

    /// The end of `-`, or of `[timeQuality tzKnown="1"][origin ip="10.0.0.1"]`.
    private static func endOfData(_ text: ArraySlice<UInt8>) -> Int? {
        if text.first == UInt8(ascii: "-") { return text.startIndex + 1 }
        var (isQuoted, isEscaped, isOpen) = (false, false, false)
        for place in text.indices {
            let byte = text[place]
            if isEscaped {
                isEscaped = false
            } else if isQuoted {
                isEscaped = byte == UInt8(ascii: "\\")
                isQuoted = byte != UInt8(ascii: "\"")
            } else if isOpen {
                isQuoted = byte == UInt8(ascii: "\"")
                isOpen = byte != UInt8(ascii: "]")
            } else if byte == UInt8(ascii: "[") {
                isOpen = true
            } else {
                return place > text.startIndex ? place : nil
            }
        }
        return nil
    }

    /// Whether it may be of the same report as another line: these come at once.
    func isSoon(after first: KernelLine) -> Bool {
        let limit: Int64 = 10_000_000
        if let time = uptime, let other = first.uptime { return abs(time - other) <= limit }
        guard let time = time ?? yearless?.timeOfYear,
            let other = first.time ?? first.yearless?.timeOfYear
        else { return true }
        let distance = abs(time.microseconds - other.microseconds)
        return distance <= limit || isYearless && Self.leapYear - distance <= limit
    }

    private var isYearless: Bool { time == nil }
    /// The year that times without one are in, in microseconds.
    private static let leapYear: Int64 = 366 * 86_400_000_000

    /// It has the day, if not the year.
    var isDated: Bool { time != nil || yearless?.timeOfYear != nil }

    enum Clock { case time, timeOfYear, uptime }

    /// Its time in microseconds, by the clock of those it has that says most.
    var clock: (clock: Clock, time: Int64)? {
        if let time { return (.time, time.microseconds) }
        if let time = yearless?.timeOfYear { return (.timeOfYear, time.microseconds) }
        return uptime.map { (.uptime, $0) }
    }

    /// Its time, where the log lacks the year, for a text that was written then.
    func likelyTime(before end: UnixTime?) -> UnixTime? { yearless?.likelyTime(before: end) }

    /// Seconds since boot, as microseconds.
    private static func uptime(_ text: ArraySlice<UInt8>) -> Int64? {
        let digits = text.prefix(while: \.isDigit)
        let rest = text[digits.endIndex...]
        guard !digits.isEmpty, rest.first == UInt8(ascii: "."),
            rest.dropFirst().allSatisfy(\.isDigit)
        else { return nil }
        let fraction = rest.dropFirst().prefix(6)
        var part = fraction.decimal(Int64.self) ?? 0
        for _ in fraction.count..<6 { part *= 10 }
        // So long that it cannot be: all the same one.
        let seconds = digits.count <= 11 ? digits.decimal(Int64.self) ?? 0 : 0
        return seconds * 1_000_000 + part
    }

    /// `Nov20 09:14` or `+0.000003`: dmesg -H has the time since the line before.
    private static func isDelta(_ text: ArraySlice<UInt8>) -> Bool {
        if text.first == UInt8(ascii: "+") { return uptime(text.dropFirst().trimmed) != nil }
        let months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
        return text.count == 11 && months.contains(text.prefix(3).text)
            && text.dropFirst(3).enumerated().allSatisfy { place, byte in
                place == 2 ? byte == 0x20 : place == 5 ? byte == 0x3a : byte.isDigit || byte == 0x20
            }
    }

    /// A task or a processor.
    private static func isCaller(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first, first == UInt8(ascii: "T") || first == UInt8(ascii: "C")
        else { return false }
        return text.dropFirst().decimal(Int32.self) != nil
    }
}
