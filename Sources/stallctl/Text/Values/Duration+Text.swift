// Durations as text. Data (JSON, CSV) uses milliseconds; see StallModel's `milliseconds`.

internal import StallModel

extension Duration {
    /// Two significant digits and a unit, for columns: `610 ms`, `1.9 s`, `1m 58s`, `2d 03h`.
    var compact: String {
        guard self >= .zero else { return "-" + (Duration.zero - self).compact }
        return switch nanoseconds {
        case ..<9_950_000: decimal(unit: 1_000_000, digits: 1) + " ms"
        case ..<999_500_000: decimal(unit: 1_000_000, digits: 0) + " ms"
        case ..<9_950_000_000: decimal(unit: 1_000_000_000, digits: 1) + " s"
        case ..<59_500_000_000: decimal(unit: 1_000_000_000, digits: 0) + " s"
        default: inTwoUnits
        }
    }

    /// Enough digits to compare with a log: `412 ms`, `1.84 s`, `1m 58s`.
    var precise: String {
        guard (999_500_000..<59_995_000_000).contains(nanoseconds) else { return compact }
        return decimal(unit: 1_000_000_000, digits: 2) + " s"
    }

    /// Whether a stall's duration of zero means that it is not known, as in reports of other programs. Less than a
    /// microsecond, because a histogram's quantile of zeros is not exactly zero.
    var isUnknownLength: Bool { (.zero..<Duration.microseconds(1)).contains(self) }

    /// How long a stall lasted, for columns: ``compact``, or `unknown`.
    var compactLength: String { isUnknownLength ? "unknown" : compact }

    /// How long a stall lasted: ``precise``, or `unknown`.
    var preciseLength: String { isUnknownLength ? "unknown" : precise }

    /// How long a stall lasted, in a sentence: ``precise``, or `an unknown time`.
    var lengthClause: String { isUnknownLength ? "an unknown time" : precise }

    /// A time below a millisecond, as calls may take it: `12 µs`, `<1 µs`; nil for a longer one.
    private var brief: String? {
        switch nanoseconds {
        case ..<1_000: "<1 µs"
        case ..<999_500: "\(rounded(toUnit: 1_000)) µs"
        default: nil
        }
    }

    /// How long a call took, for columns: `12 µs`, or as ``compact``.
    var compactCall: String { brief ?? compact }

    /// How long a call took: `12 µs`, or as ``precise``.
    var preciseCall: String { brief ?? precise }

    /// The duration in units of `unit` nanoseconds, rounded half up.
    func rounded(toUnit unit: Int64) -> Int64 {
        let nanoseconds = nanoseconds
        return nanoseconds / unit + (nanoseconds % unit * 2 >= unit ? 1 : 0)
    }

    /// The duration in units of `unit` nanoseconds, with 0 to 2 decimals.
    func decimal(unit: Int64, digits: Int) -> String {
        let scale = [1, 10, 100][digits] as Int64
        let steps = rounded(toUnit: unit / scale)
        guard digits > 0 else { return String(steps) }
        return "\(steps / scale)." + String(steps % scale).padded(with: "0", to: digits)
    }

    private var inTwoUnits: String {
        let seconds = rounded(toUnit: 1_000_000_000)
        let units: [(size: Int64, name: String)] = [(86400, "d"), (3600, "h"), (60, "m"), (1, "s")]
        let index = min(units.firstIndex { seconds >= $0.size } ?? 2, 2)
        let (large, small) = (units[index], units[index + 1])
        let rest = String(seconds % large.size / small.size).padded(with: "0", to: 2)
        return "\(seconds / large.size)\(large.name) \(rest)\(small.name)"
    }
}

extension String {
    /// The text, padded on the left with `filler` to at least `count` characters.
    func padded(with filler: Character, to count: Int) -> String {
        String(repeating: filler, count: max(0, count - self.count)) + self
    }
}
