// Numbers as a line of small bars.

enum Sparkline {
    /// One character per number, `▁` to `█` by its share of the largest; a space for zero.
    static func text(_ values: [Double]) -> String {
        let bars = Array("▁▂▃▄▅▆▇█")
        guard let largest = values.max(), largest > 0 else { return "" }
        return String(
            values.map { value in
                guard value > 0 else { return " " }
                return bars[min(bars.count - 1, Int(value / largest * Double(bars.count)))]
            })
    }

    /// A bar of at most `columns` columns, in eighths of a column; never empty unless zero.
    static func bar(_ share: Double, columns: Int) -> String {
        guard share > 0, columns > 0 else { return "" }
        let eighths = max(1, Int((min(share, 1) * Double(columns * 8)).rounded()))
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
        return String(repeating: "█", count: eighths / 8) + rest
    }
}
