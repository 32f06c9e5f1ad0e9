// Suggests a known word for a mistyped one.

enum Suggestion {
    /// The candidate closest to `word`, or nil if none is close.
    ///
    /// Close means at most one edit per three characters, ignoring case.
    static func closest(to word: String, in candidates: some Sequence<String>) -> String? {
        let typed = word.lowercased()
        let distances = candidates.map {
            (candidate: $0, distance: editDistance(typed, $0.lowercased()))
        }
        guard let best = distances.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= max(1, min(typed.count, best.candidate.count) / 3)
            ? best.candidate : nil
    }

    /// A hint for an unknown name: the closest name, or all names.
    static func hint(for name: String, among known: [String]) -> String {
        let closest = closest(to: name, in: known).map { "did you mean '\($0)'?" }
        let all = known.isEmpty ? "none" : listed(known.prefix(8).map { "'\($0)'" })
        return closest ?? "it has \(all)"
    }

    /// The edit distance of two words: insertions, deletions, replacements and transpositions.
    ///
    /// **Source:** "optimal string alignment" distance; Damerau (1964), restricted.
    static func editDistance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left), Array(right))
        var beforePrevious: [Int] = []
        var previous = Array(0...right.count)
        for i in left.indices {
            var row = [i + 1]
            for j in right.indices {
                var best = min(
                    previous[j] + (left[i] == right[j] ? 0 : 1), previous[j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                    best = min(best, beforePrevious[j - 1] + 1)
                }
                row.append(best)
            }
            (beforePrevious, previous) = (previous, row)
        }
        return previous[right.count]
    }
}
