// Data formatting shared by JSON, CSV and every other output.

package import StallModel

/// A hash in data and on the command line: sixteen hexadecimal digits.
package func hexadecimal(_ hash: Int64) -> String {
    String(UInt64(bitPattern: hash), radix: 16).zeroPadded(to: 16)
}

/// Encodes nil as `null`, so that the key is always present.
@propertyWrapper
package struct Nullable<Value: Encodable>: Encodable {
    package var wrappedValue: Value?

    package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue {
            try container.encode(wrappedValue)
        } else {
            try container.encodeNil()
        }
    }
}

extension Nullable: Sendable where Value: Sendable {}

extension UnixTime {
    /// `2026-11-21T14:03:22.417000Z`.
    ///
    /// **Source:** RFC 3339, section 5.6.
    package var rfc3339: String {
        let (quotient, rest) = microseconds.quotientAndRemainder(dividingBy: Self.dayLength)
        let (year, month, date) = Self.date(ofDay: rest < 0 ? quotient - 1 : quotient)
        let time = rest < 0 ? rest + Self.dayLength : rest
        guard (0...9999).contains(year) else {
            return String(year).zeroPadded(to: 4) + Self.text(0, month, date, time).dropFirst(4)
        }
        return Self.text(year, month, date, time)
    }

    private static let dayLength: Int64 = 86_400_000_000

    /// The date in the Gregorian calendar of a day since 1970. Years are counted from March: the day that some have and
    /// others have not is their last.
    private static func date(ofDay day: Int64) -> (year: Int64, month: Int64, date: Int64) {
        let sinceYear0 = day + 719_468
        let era = (sinceYear0 >= 0 ? sinceYear0 : sinceYear0 - 146_096) / 146_097
        let ofEra = sinceYear0 - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * ofYear + 2) / 153
        let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
        return (year, month < 10 ? month + 3 : month - 9, ofYear - (153 * month + 2) / 5 + 1)
    }

    /// As bytes: exports write it a million times.
    private static func text(
        _ year: Int64, _ month: Int64, _ date: Int64, _ microsecond: Int64
    ) -> String {
        String(unsafeUninitializedCapacity: 27) { bytes in
            var end = 0
            func put(_ value: Int64, _ count: Int, _ separator: UInt8) {
                var rest = value
                for place in (0..<count).reversed() {
                    bytes[end + place] = UInt8(ascii: "0") + UInt8(rest % 10)
                    rest /= 10
                }
                bytes[end + count] = separator
                end += count + 1
            }
            let second = microsecond / 1_000_000
            put(year, 4, UInt8(ascii: "-"))
            put(month, 2, UInt8(ascii: "-"))
            put(date, 2, UInt8(ascii: "T"))
            put(second / 3600, 2, UInt8(ascii: ":"))
            put(second / 60 % 60, 2, UInt8(ascii: ":"))
            put(second % 60, 2, UInt8(ascii: "."))
            put(microsecond % 1_000_000, 6, UInt8(ascii: "Z"))
            return end
        }
    }
}

extension String {
    fileprivate func zeroPadded(to count: Int) -> String {
        String(repeating: "0", count: max(0, count - self.count)) + self
    }
}
