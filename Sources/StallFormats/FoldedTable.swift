// Folded stacks of any number of stalls: `root;caller;leaf weight`. The lines of a large store would take a hundred
// megabytes, so they are sorted as numbers of names and written one by one.

import StallModel
package import StallQuery

/// The names on folded stacks, each once.
package struct FoldedTitles: Sendable {
    fileprivate private(set) var texts: [String] = []
    private var numbers: [String: Int32] = [:]

    package init() {}

    /// The number of a name. Names that are written alike have one number.
    package mutating func add(_ title: String) -> Int32 {
        let text = title.foldedElement
        if let known = numbers[text] { return known }
        numbers[text] = Int32(texts.count)
        texts.append(text)
        return Int32(texts.count - 1)
    }
}

/// Stacks as numbers of names, with their weights.
package struct FoldedTable: Sendable {
    private var titles: FoldedTitles
    /// The app, the loop, and the functions from the outermost one.
    private var weights: [[Int32]: (time_ns: Int64, count: Int)] = [:]

    package init(_ titles: FoldedTitles) { self.titles = titles }

    /// Adds the time of one stack.
    ///
    /// - Parameter functions: The numbers of its functions, innermost first; a stack of none does not count.
    package mutating func add(_ time: StackTime, _ functions: ArraySlice<Int32>) {
        guard !functions.isEmpty else { return }
        var path = [titles.add(time.app), titles.add(time.loop)]
        path.reserveCapacity(functions.count + 2)
        path.append(contentsOf: functions.reversed())
        let sum = weights[path] ?? (0, 0)
        weights[path] = (
            sum.time_ns.addingSaturated(time.time_ns), sum.count + time.sampleCount
        )
    }

    /// Calls `body` with each line and its line end, in alphabetical order.
    package func forEachLine(
        weight: FoldedStacks.Weight, _ body: (String) throws -> Void
    ) rethrows {
        for (path, sum) in weights.sorted(by: { isBefore($0.key, $1.key) }) {
            var line = ""
            for name in path {
                if !line.isEmpty { line += ";" }
                line += titles.texts[Int(name)]
            }
            let number =
                weight == .ms
                ? FoldedStacks.milliseconds(ofNanoseconds: sum.time_ns) : Int64(sum.count)
            line += " \(number)\n"
            try body(line)
        }
    }

    /// Compares the lines by the first name that differs, and where one name begins the other, by the text behind it.
    private func isBefore(_ left: [Int32], _ right: [Int32]) -> Bool {
        let end = min(left.count, right.count)
        guard let index = (0..<end).first(where: { left[$0] != right[$0] }) else {
            return left.count < right.count
        }
        let (one, other) = (titles.texts[Int(left[index])], titles.texts[Int(right[index])])
        guard one.utf8.starts(with: other.utf8) || other.utf8.starts(with: one.utf8) else {
            return one < other
        }
        func tail(_ name: String, _ path: [Int32]) -> String {
            index + 1 < path.count ? name + ";" : name
        }
        return tail(one, left) < tail(other, right)
    }
}
