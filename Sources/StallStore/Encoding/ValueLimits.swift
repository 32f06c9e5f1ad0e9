// The values that a store may hold. An agent keeps within them, ingest refuses others, `check` reports them and its
// repair removes them: sums of stored values must not leave the range of a number.

internal import StallModel

/// The ranges of stored values.
package enum ValueLimits {
    /// Ten years and some days, the longest stall that a line may have as well.
    package static let duration_ns: Int64 = 320_000_000_000_000_000
    /// A period of watched time: 400 days. A loop that only waits is not woken, so that its period lasts for weeks.
    package static let watched_ns: Int64 = 400 * 86_400_000_000_000
    /// The end of year 9999.
    package static let time_us: Int64 = 253_402_300_799_999_999
    package static let count: Int64 = 1_000_000_000_000
    /// The times that readers take, 73,000 years before and after 1970: the difference of two times stays in range.
    package static let readableTimes: ClosedRange<Int64> = -(1 << 61)...(1 << 61)
    /// The days of those times.
    package static let readableDays: ClosedRange<Int64> =
        readableTimes.lowerBound / 86_400_000_000...readableTimes.upperBound / 86_400_000_000
    /// Numbers that a store gives out: one each microsecond would take 36,000 years.
    package static let revision: Int64 = 1 << 60

    /// In bytes: names of apps, versions, hosts and loops, and the identifier of a boot.
    package static let nameBytes = 1024
    /// Modes and activities.
    package static let labelBytes = 4096
    package static let pathBytes = 8192
    /// Functions, as the compiler names them.
    package static let functionBytes = 1 << 16
    package static let buildIDBytes = 64

    package static let samplesOfReport = 4096
    package static let threadsOfReport = 1 << 16
    /// The locations of a stack, packed.
    package static let stackBytes = 1 << 20
    package static let entriesOfStack = 1 << 16
    package static let frameCount = 1000
    package static let loadsOfRun = 100_000
    package static let lossesOfSource = 1_000_000
}

extension String {
    /// The longest beginning of at most that many bytes; characters stay whole.
    package func clipped(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: limit)
        while end > utf8.startIndex, end.samePosition(in: unicodeScalars) == nil {
            end = utf8.index(before: end)
        }
        return String(self[..<end])
    }
}
