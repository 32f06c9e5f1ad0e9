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
        let year = Int(fields.tm_year) + 1900
        guard (0...9999).contains(year) else {
            return "\(String(year).zeroPadded(to: 4))" + fields.text(microsecond).dropFirst(4)
        }
        return fields.text(microsecond)
    }
}

extension tm {
    /// With the last four digits of the year. As bytes: exports write it a million times.
    fileprivate func text(_ microsecond: Int64) -> String {
        String(unsafeUninitializedCapacity: 27) { bytes in
            var end = 0
            func put(_ value: Int, _ count: Int, _ separator: UInt8) {
                var rest = value
                for place in (0..<count).reversed() {
                    bytes[end + place] = UInt8(ascii: "0") + UInt8(rest % 10)
                    rest /= 10
                }
                bytes[end + count] = separator
                end += count + 1
            }
            put(abs(Int(tm_year) + 1900) % 10_000, 4, UInt8(ascii: "-"))
            put(Int(tm_mon) + 1, 2, UInt8(ascii: "-"))
            put(Int(tm_mday), 2, UInt8(ascii: "T"))
            put(Int(tm_hour), 2, UInt8(ascii: ":"))
            put(Int(tm_min), 2, UInt8(ascii: ":"))
            put(Int(tm_sec), 2, UInt8(ascii: "."))
            put(Int(microsecond), 6, UInt8(ascii: "Z"))
            return end
        }
    }
}

extension String {
    fileprivate func zeroPadded(to count: Int) -> String {
        String(repeating: "0", count: max(0, count - self.count)) + self
    }
}
