// A timeline as text: a bar, and a summary of the samples.

internal import StallAnalysis
internal import StallModel

extension Timeline {
    /// A scale, a bar, and a summary of the samples; only the summary if there are no samples. On a narrow terminal the
    /// summary is below the bar.
    func lines(on terminal: Terminal) -> [String] {
        let others = otherSamples.isEmpty ? "" : " " + otherSamples
        guard !samples.isEmpty else {
            return ("No stack was captured." + others).wrapped(to: terminal.columns)
        }
        // A bar has a length.
        guard report.isTimed else {
            return (finding + others).wrapped(to: terminal.columns)
        }
        // The scale's last number ends two columns after the bar.
        let columns = terminal.columns ?? .max
        let quarter = max(6, min(10, (min(columns, 100) - 8) / 4))
        let (scale, bar, summary) = (
            self.scale(quarter), self.bar(quarter), finding + others
        )
        let line = bar + "  " + summary
        if line.displayWidth <= columns { return [scale, line] }
        return [scale, bar] + summary.wrapped(to: terminal.columns)
    }

    /// `0.00      0.46      0.92      1.38      1.84 s`
    private func scale(_ quarterWidth: Int) -> String {
        let inSeconds = report.duration >= .seconds(1)
        let text = (0...4).map { quarter in
            let part = report.duration * quarter / 4
            return part.decimal(
                unit: inSeconds ? 1_000_000_000 : 1_000_000, digits: inSeconds ? 2 : 0)
        }
        return text.map { $0.padded(to: quarterWidth, .leading) }.joined()
            .trimmingTrailingSpaces
            + (inSeconds ? " s" : " ms")
    }

    /// One cell per equal part of the stall, forty on a wide terminal: `=` with the naming function on the stack, `-` without.
    private func bar(_ quarterWidth: Int) -> String {
        let count = 4 * quarterWidth
        var cells: [Character] = Array(repeating: "-", count: count)
        var begin = Duration.zero
        for sample in report.samples where !sample.isLate {
            let end = begin + sample.weight
            for cell in cells.indices where isNamed(sample) {
                let middle = report.duration * (2 * cell + 1) / (2 * count)
                if begin <= middle, middle < end { cells[cell] = "=" }
            }
            begin = end
        }
        let quarters = (0..<4).map {
            String(cells[$0 * quarterWidth + 1..<($0 + 1) * quarterWidth])
        }
        return "|" + quarters.joined(separator: "|") + "|"
    }

    /// `9 samples, waitForWorker() on the stack from 0.12 s to the end (93 %).`
    private var finding: String {
        let count = counted(samples.count, "sample")
        let named = samples.filter(isNamed)
        guard let name = signature.keyFrames.first, let first = named.first, let last = named.last
        else { return "\(count)." }
        let weight = named.reduce(.zero) { $0 + $1.weight }
        guard report.isTimed, totalWeight > .zero else {
            let share =
                totalWeight > .zero && report.verdict != .blocking
                ? " (\(percent(weight, of: totalWeight)))" : ""
            return "\(count), \(name.printable) on the stack of \(named.count)\(share)."
        }
        let end = last.offset == samples.last?.offset ? "the end" : last.offset.precise
        return
            "\(count), \(name.printable) on the stack from \(first.offset.precise) to \(end) "
            + "(\(percent(weight, of: totalWeight)))."
    }

    /// Samples that are not used, and why.
    private var otherSamples: String {
        let late = report.samples.count(where: \.isLate)
        let failures = report.samples.filter { !$0.isLate && $0.frames.isEmpty }.compactMap(
            \.failure)
        let returned = samples.count { $0.method == .lateSignal }
        var parts: [String] = []
        if returned > 0 {
            parts.append("\(returned) captured when the system call returned.")
        }
        if late > 0 {
            parts.append("\(late) late samples discarded (the loop had already resumed).")
        }
        if let reason = failures.first {
            parts.append("\(failures.count) without a stack: \(reason.printable).")
        }
        return parts.joined(separator: " ")
    }

    private func isNamed(_ sample: Sample) -> Bool { sample.frames.contains(where: isNaming) }
}
