// Durations for people. Data (JSON, CSV) says milliseconds; see StallModel's `milliseconds`.

internal import StallModel

extension Duration {
    /// Two digits that matter and a unit, for columns: `610 ms`, `1.9 s`, `1m 58s`, `3h 04m`, `2d 03h`.
    var compact: String {
        let nanoseconds = nanoseconds
        guard nanoseconds >= 0 else { return "-" + (Duration.zero - self).compact }
        return switch nanoseconds {
        case ..<9_950_000: decimal(nanoseconds, unit: 1_000_000, digits: 1) + " ms"
        case ..<999_500_000: decimal(nanoseconds, unit: 1_000_000, digits: 0) + " ms"
        case ..<9_950_000_000: decimal(nanoseconds, unit: 1_000_000_000, digits: 1) + " s"
        case ..<59_500_000_000: decimal(nanoseconds, unit: 1_000_000_000, digits: 0) + " s"
        default: inTwoUnits(seconds: rounded(nanoseconds, to: 1_000_000_000))
        }
    }

    /// Enough digits to compare with a log: `412 ms`, `1.84 s`, `1m 58s`.
    var precise: String {
        let nanoseconds = nanoseconds
        guard nanoseconds >= 999_500_000, nanoseconds < 59_995_000_000 else { return compact }
        return decimal(nanoseconds, unit: 1_000_000_000, digits: 2) + " s"
    }
}

/// `value / unit` with 0 to 2 decimals.
private func decimal(_ value: Int64, unit: Int64, digits: Int) -> String {
    let scale = [1, 10, 100][digits] as Int64
    let steps = rounded(value, to: unit / scale)
    guard digits > 0 else { return String(steps) }
    return "\(steps / scale)." + String(steps % scale).padded(with: "0", to: digits)
}

/// How often `step` goes into `value`, half a step counting as one.
private func rounded(_ value: Int64, to step: Int64) -> Int64 {
    value / step + (value % step * 2 >= step ? 1 : 0)
}

private func inTwoUnits(seconds: Int64) -> String {
    let units: [(size: Int64, name: String)] = [(86400, "d"), (3600, "h"), (60, "m"), (1, "s")]
    let index = min(units.firstIndex { seconds >= $0.size } ?? 2, 2)
    let (large, small) = (units[index], units[index + 1])
    let rest = seconds % large.size / small.size
    return "\(seconds / large.size)\(large.name) " + String(rest).padded(with: "0", to: 2)
        + small.name
}

extension String {
    /// The text with `filler` before it, so that it has at least `count` characters.
    func padded(with filler: Character, to count: Int) -> String {
        String(repeating: filler, count: max(0, count - self.count)) + self
    }
}
