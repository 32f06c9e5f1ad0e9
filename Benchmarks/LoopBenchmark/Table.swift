// All results of `make bench` in one table: what every benchmark program has added to the file.

import Foundation

/// A line of the file.
private struct Result: Decodable {
    var name, contestant, unit: String
    var size, runs: Int
    var median, min, max: Double?
}

/// Prints the file's results, those of one comparison together, each beside the EventRunLoop of its own rounds.
func printTable(of path: String) throws {
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    let results = try lines.map { try JSONDecoder().decode(Result.self, from: Data($0.utf8)) }
    print(row("comparison", "size", "contestant", ["median", "min", "max"], "unit", "to ours"))
    for name in unique(results.map(\.name)) {
        let comparison = results.filter { $0.name == name }
        for size in unique(comparison.map(\.size)) {
            for (result, ours) in withOurs(comparison.filter { $0.size == size }) {
                let ratio = ours.map { String(format: "%.2f x", (result.median ?? .nan) / $0) }
                print(
                    row(
                        name, String(size), result.contestant,
                        [result.median, result.min, result.max].map(text), result.unit, ratio ?? "")
                )
            }
        }
    }
}

/// Each result with the median of the EventRunLoop that alternated with it: the nearest one, since every program adds
/// its contestants one after the other.
private func withOurs(_ results: [Result]) -> [(Result, Double?)] {
    let ours = results.indices.filter { results[$0].contestant.hasPrefix("EventRunLoop") }
    return results.indices.map { index in
        let nearest = ours.min { abs($0 - index) < abs($1 - index) }
        return (results[index], nearest.flatMap { results[$0].median })
    }
}

private func unique<Value: Hashable>(_ values: [Value]) -> [Value] {
    var seen: Set<Value> = []
    return values.filter { seen.insert($0).inserted }
}

private func text(_ value: Double?) -> String { value.map { String(format: "%.2f", $0) } ?? "-" }

private func row(
    _ name: String, _ size: String, _ contestant: String, _ numbers: [String], _ unit: String,
    _ ratio: String
) -> String {
    func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: Swift.max(0, width - text.count))
    }
    func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: Swift.max(0, width - text.count)) + text
    }
    let cells =
        [left(name, 34), right(size, 8), " " + left(contestant, 28)] + numbers.map { right($0, 13) }
    return (cells + [" " + left(unit, 18), right(ratio, 10)]).joined()
}
