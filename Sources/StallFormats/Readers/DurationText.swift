// Durations as reports print them for people: "20 secs.", "3.2 sec", "20000 ms", "7.23s".

internal import StallModel

enum DurationText {
    /// A number and its unit, at the beginning of a text. Nil if either is unknown, or the number can be read in two
    /// ways.
    static func duration(_ text: String) -> Duration? {
        let text = text.drop(while: \.isWhitespace)
        let digits = text.prefix { ($0.isASCII && $0.isNumber) || $0 == "." || $0 == "," }
        let unit = text.dropFirst(digits.count).drop(while: \.isWhitespace).prefix(
            while: \.isLetter)
        guard let seconds = seconds(of: unit.lowercased()),
            let number = number(digits, isWhole: seconds < 1)
        else { return nil }
        return duration(seconds: number * seconds)
    }

    static func duration(seconds: Double) -> Duration? {
        try? ReportLine.duration(seconds * 1000, "duration")
    }

    static func seconds(of unit: String) -> Double? {
        switch unit {
        case "s", "sec", "secs", "second", "seconds": 1
        case "ms", "msec", "msecs", "millisecond", "milliseconds": 1e-3
        case "us", "µs", "μs", "microsecond", "microseconds": 1e-6
        case "ns", "nanosecond", "nanoseconds": 1e-9
        case "m", "min", "mins", "minute", "minutes": 60
        case "h", "hr", "hour", "hours": 3600
        default: nil
        }
    }

    /// - Parameter isWhole: Of a small unit, so that a comma before three digits separates thousands. Of seconds such a
    ///   comma has either meaning, by the language of the device.
    private static func number(_ text: Substring, isWhole: Bool) -> Double? {
        guard let comma = text.lastIndex(of: ",") else { return Double(text) }
        if let point = text.lastIndex(of: ".") {
            // The last of the two is the decimal separator.
            let thousands: Character = point < comma ? "." : ","
            return Double(String(text.filter { $0 != thousands }.map { $0 == "," ? "." : $0 }))
        }
        if text[comma...].utf8.count == 4 {
            return isWhole ? Double(text.filter { $0 != "," }) : nil
        }
        return Double(String(text.map { $0 == "," ? "." : $0 }))
    }
}
