// How much of each loop was watched and how it did, and what was held back: the end of `status`.

internal import StallModel

enum ExposureView {
    /// A line for each loop that was watched, and one for stalls without reports; nothing where there is nothing to say.
    static func lines(exposure: [LoopExposure], suppressed: [SuppressedStalls]) -> [String] {
        let loops = Dictionary(grouping: exposure, by: \.loop).sorted { $0.key < $1.key }
        return loops.map { line(loop: $0.key, $0.value) } + line(suppressed: suppressed)
    }

    /// One line or none.
    static func line(suppressed: [SuppressedStalls]) -> [String] {
        let count = suppressed.reduce(0) { $0 + $1.count }
        guard count > 0 else { return [] }
        let places = Set(suppressed.map(\.place)).count
        let total = suppressed.reduce(Duration.zero) { $0 + $1.total }
        return [
            "Counted without a report: \(counted(count, "stall")) of \(total.precise) at "
                + "\(counted(places, "place")) (rate limits and debugger policy)."
        ]
    }

    private static func line(loop: String, _ stretches: [LoopExposure]) -> String {
        func sum(_ part: (LoopExposure) -> Duration) -> Duration {
            stretches.reduce(.zero) { $0 + part($1) }
        }
        let (watched, busy) = (sum(\.watched), sum(\.busy))
        var lengths = LengthHistogram()
        for stretch in stretches { lengths.add(stretch.lengths) }
        var text =
            "\(loop.printable): watched for \(watched.decimal(unit: 3_600_000_000_000, digits: 2)) h, "
            + "\(percent(busy, of: watched)) busy, \(counted(lengths.count, "iteration"))"
        if let long = lengths.quantile(0.99) { text += ", 99 % of them below \(long.precise)" }
        let micro = stretches.reduce(0) { $0 + $1.microStallCount }
        if micro > 0 {
            text += ", \(counted(micro, "micro-stall")) of \(sum(\.microStallTime).precise)"
        }
        let delay = sum(\.readyDelay)
        if delay > .milliseconds(1) { text += ", \(delay.precise) ready without a CPU" }
        return text + "."
    }
}
