// What benchmarks have in common: a measurement, and the file that all of them add theirs to.

import Foundation

/// What one contestant did at one size.
package struct BenchmarkResult {
    package var name: String
    package var contestant: String
    package var size: Int
    package var values: [Double]
    package var unit: String

    package init(
        name: String, contestant: String, size: Int = 1, values: [Double], unit: String
    ) {
        self.name = name
        self.contestant = contestant
        self.size = size
        self.values = values
        self.unit = unit
    }

    package var median: Double {
        let sorted = values.sorted()
        return sorted[sorted.count / 2]
    }
    package var min: Double { values.min() ?? 0 }
    package var max: Double { values.max() ?? 0 }

    /// One line of the results file. A value that is not a number (nothing was late) is null.
    var json: String {
        let numbers = [median, min, max].map { $0.isFinite ? "\($0)" : "null" }
        return #"{"name":"\#(name)","contestant":"\#(contestant)","size":\#(size),"#
            + #""median":\#(numbers[0]),"min":\#(numbers[1]),"max":\#(numbers[2]),"#
            + #""unit":"\#(unit)","runs":\#(values.count)}"#
    }
}

/// The results file of all benchmark programs, relative to the package's directory.
package let resultsPath = ".build/bench/results.jsonl"

extension [BenchmarkResult] {
    /// Appends the measurements to the file, one JSON object a line; makes it when it is missing.
    package func append(to path: String = resultsPath) throws {
        let url = URL(fileURLWithPath: path)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        if !FileManager.default.fileExists(atPath: path) { try Data().write(to: url) }
        let handle = try FileHandle(forWritingTo: url)
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(map { $0.json + "\n" }.joined().utf8))
        try handle.close()
    }
}
