// Folded stacks for flame graph tools: `root;caller;leaf weight`, one line per distinct stack.

package import StallModel

package struct FoldedStacks {
    /// The unit of the numbers.
    package enum Weight: String, CaseIterable {
        /// Milliseconds that the samples stand for, whole and at least 1.
        case ms
        /// Number of samples.
        case count
    }

    private let verdicts: Set<StallVerdict>
    private var weights: [String: (duration: Duration, count: Int)] = [:]

    package init(verdicts: Set<StallVerdict> = [.stalled]) { self.verdicts = verdicts }

    /// Adds the samples of a report; late ones and other verdicts do not count.
    package mutating func add(_ report: StallReport) {
        guard verdicts.contains(report.verdict) else { return }
        for sample in report.samples where !sample.isLate && !sample.frames.isEmpty {
            let outer = [report.run.app, report.loop].map(\.foldedElement)
            let path = outer + sample.frames.reversed().map(\.title.foldedElement)
            weights[path.joined(separator: ";"), default: (.zero, 0)].duration += sample.weight
            weights[path.joined(separator: ";")]?.count += 1
        }
    }

    /// The lines, in alphabetical order.
    package func lines(weight: Weight) -> [String] {
        weights.sorted { $0.key < $1.key }.map { path, total in
            let milliseconds = Self.milliseconds(ofNanoseconds: total.duration.nanoseconds)
            return "\(path) \(weight == .ms ? milliseconds : Int64(total.count))"
        }
    }

    /// Whole milliseconds, at least 1.
    static func milliseconds(ofNanoseconds nanoseconds: Int64) -> Int64 {
        let half: Int64 = nanoseconds % 1_000_000 >= 500_000 ? 1 : 0
        return max(1, nanoseconds / 1_000_000 + half)
    }
}

extension String {
    /// The text without element and line separators.
    var foldedElement: String {
        let scalars = unicodeScalars.map { scalar -> Unicode.Scalar in
            if scalar == ";" { return ":" }
            return scalar.steersTerminal ? " " : scalar
        }
        let text = String(String.UnicodeScalarView(scalars))
        return text.isEmpty ? "?" : text
    }
}
