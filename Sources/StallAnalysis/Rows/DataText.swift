// Data formatting shared by JSON, CSV and every other output.

internal import Glibc
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
        let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let microsecond = remainder < 0 ? remainder + 1_000_000 : remainder
        var seconds = time_t(remainder < 0 ? quotient - 1 : quotient)
        var fields = tm()
        gmtime_r(&seconds, &fields)
        func digits(_ value: CInt, _ count: Int) -> String { String(value).zeroPadded(to: count) }
        let date = [
            digits(fields.tm_year + 1900, 4), digits(fields.tm_mon + 1, 2),
            digits(fields.tm_mday, 2),
        ]
        let time = [
            digits(fields.tm_hour, 2), digits(fields.tm_min, 2), digits(fields.tm_sec, 2),
        ]
        return date.joined(separator: "-") + "T" + time.joined(separator: ":") + "."
            + String(microsecond).zeroPadded(to: 6) + "Z"
    }
}

extension String {
    fileprivate func zeroPadded(to count: Int) -> String {
        String(repeating: "0", count: max(0, count - self.count)) + self
    }
}
