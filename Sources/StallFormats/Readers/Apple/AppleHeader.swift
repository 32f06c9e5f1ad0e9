// The values in the headers of Apple's reports.

internal import StallModel

enum AppleHeader {
    /// `Photos [4242]`.
    static func process(_ text: String) -> (name: String, pid: Int32?) {
        guard text.hasSuffix("]"), let bracket = text.lastIndex(of: "[") else { return (text, nil) }
        let pid = Int32(text[text.index(after: bracket)...].dropLast())
        return (text[..<bracket].trimmed, pid)
    }

    /// `marketing (build)`, whatever the order was; `???` is none.
    static func version(_ text: String?, isSwapped: Bool) -> String {
        guard let text, !text.hasPrefix("???") else { return "" }
        guard isSwapped, text.hasSuffix(")"), let bracket = text.lastIndex(of: "(") else {
            return text
        }
        let marketing = text[text.index(after: bracket)...].dropLast().trimmed
        let build = text[..<bracket].trimmed
        return build.isEmpty ? marketing : "\(marketing) (\(build))"
    }

    /// `2026-11-27 09:30:00.1234 +0100`. Without a zone it is taken as UTC.
    static func time(_ text: String) -> UnixTime? {
        let parts = text.split(separator: " ")
        guard parts.count >= 2 else { return nil }
        var zone = parts.count > 2 ? String(parts[2]) : "Z"
        if zone.utf8.count == 5, zone.hasPrefix("+") || zone.hasPrefix("-") {
            zone.insert(":", at: zone.index(zone.startIndex, offsetBy: 3))
        }
        return try? ReportLine.time("\(parts[0])T\(parts[1])\(zone)", "time")
    }

    /// `main stalled for 800.19 ms, ended`, as `show --format apple` writes.
    static func ownDuration(_ text: String) -> Duration? {
        guard let end = text.firstRange(of: " ms, "),
            let start = text[..<end.lowerBound].ranges(of: " for ").last,
            let number = Double(text[start.upperBound..<end.lowerBound]), number > 0
        else { return nil }
        return try? ReportLine.duration(number, "duration")
    }

    /// `... exhausted real (wall clock) time allowance of 10.00 seconds`.
    static func allowance(_ text: String) -> Duration? {
        guard let found = text.firstRange(of: "time allowance of ") else { return nil }
        let number = text[found.upperBound...].prefix { $0.isNumber || $0 == "." }
        return Double(number).flatMap { try? ReportLine.duration($0 * 1000, "allowance") }
    }
}
