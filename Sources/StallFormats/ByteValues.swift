// Values as bytes, as tables of millions of rows need them: no string is made of a number, an id or a time.

package import StallModel

extension [UInt8] {
    /// Appends a number as digits.
    package mutating func append(decimal number: Int64) {
        if number < 0 { append(0x2d) }
        var rest = number.magnitude
        let start = count
        repeat {
            append(UInt8(0x30 + rest % 10))
            rest /= 10
        } while rest > 0
        self[start...].reverse()
    }

    /// Appends the 32 digits of `UniqueID.description`.
    package mutating func append(_ id: UniqueID) {
        for word in [id.words.high, id.words.low] {
            for place in 0..<16 {
                append(
                    UInt8(truncatingIfNeeded: word >> UInt64(60 - place * 4)).lowHexadecimalDigit)
            }
        }
    }

    /// Appends milliseconds as `description` of a `Double` writes them: `1840.25`, `250.0`.
    package mutating func append(milliseconds duration: Duration) {
        let nanoseconds = duration.nanoseconds
        // Of up to 15 digits, the shortest that are read as this number are these.
        guard nanoseconds == 0 || 100..<1_000_000_000_000_000 ~= nanoseconds else {
            self += "\(duration.milliseconds)".utf8
            return
        }
        append(decimal: nanoseconds / 1_000_000)
        append(0x2e)
        var (rest, unit) = (nanoseconds % 1_000_000, Int64(100_000))
        repeat {
            append(UInt8(0x30 + rest / unit))
            (rest, unit) = (rest % unit, unit / 10)
        } while rest > 0
    }

    /// Appends `2026-11-21T14:03:22.417000Z`, of the years 1970 to 9999.
    ///
    /// - Returns: Whether the time is in those years; nothing is appended otherwise.
    ///
    /// **Source:** RFC 3339, section 5.6; days as in Hinnant, "chrono-Compatible Low-Level Date Algorithms",
    /// civil_from_days.
    package mutating func append(rfc3339 time: UnixTime) -> Bool {
        guard 0...253_402_300_799_999_999 ~= time.microseconds else { return false }
        let (day, microsecond) = time.microseconds.quotientAndRemainder(
            dividingBy: 86_400_000_000)
        // Years begin with March, in eras of 400 years.
        let shifted = day + 719_468
        let (era, dayOfEra) = shifted.quotientAndRemainder(dividingBy: 146_097)
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        append(year, digits: 4, then: 0x2d)
        append(month, digits: 2, then: 0x2d)
        append(dayOfYear - (153 * monthFromMarch + 2) / 5 + 1, digits: 2, then: 0x54)
        append(microsecond / 3_600_000_000, digits: 2, then: 0x3a)
        append(microsecond / 60_000_000 % 60, digits: 2, then: 0x3a)
        append(microsecond / 1_000_000 % 60, digits: 2, then: 0x2e)
        append(microsecond % 1_000_000, digits: 6, then: 0x5a)
        return true
    }

    private mutating func append(_ value: Int64, digits: Int, then end: UInt8) {
        var unit: Int64 = 1
        for _ in 1..<digits { unit *= 10 }
        while unit > 0 {
            append(UInt8(0x30 + value / unit % 10))
            unit /= 10
        }
        append(end)
    }
}
