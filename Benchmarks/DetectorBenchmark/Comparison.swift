// Runs the contestants alternately, each in its own process, and compares the medians.

import BenchmarkSupport
import Foundation

/// What a run measures. The raw values are the names in its output.
enum Column: String {
    case perIteration, monitorCPU, switches, wakeUps, busyCPU, found, missed, error50, error99
    case errorMax, pollPath, sleepPath, clock, unwatched, watched, added

    var heading: String {
        switch self {
        case .perIteration: "CPU ns/iter"
        case .monitorCPU: "monitor CPU %"
        case .switches: "switches/s"
        case .wakeUps: "wake-ups/s"
        case .busyCPU: "watchdog CPU %"
        case .found: "found"
        case .missed: "missed"
        case .error50: "p50 ms late"
        case .error99: "p99 ms late"
        case .errorMax: "max ms late"
        case .pollPath: "poll path ns"
        case .sleepPath: "sleep path ns"
        case .clock: "clock ns"
        case .unwatched: "not watched ns"
        case .watched: "watched ns"
        case .added: "added ns"
        }
    }
}

struct Comparison {
    let rounds: Int
    /// Only comparisons whose name contains it.
    let filter: String?
    private(set) var results: [BenchmarkResult] = []

    init(rounds: Int, filter: String?) {
        self.rounds = rounds
        self.filter = filter
    }

    mutating func compare(_ name: String, _ plays: [Play], columns: [Column]) {
        if let filter, !name.contains(filter) { return }
        var values: [Play: [String: [Double]]] = [:]
        for _ in 0..<rounds {
            for play in plays {
                for (column, value) in measure(play) {
                    values[play, default: [:]][column, default: []].append(value)
                }
            }
        }
        print("\n" + row(name, columns.map(\.heading)))
        for play in plays {
            let cells = columns.map { column -> String in
                guard let measured = values[play]?[column.rawValue] else { return "failed" }
                let measurement = BenchmarkResult(
                    name: "detector: " + name, contestant: play.watcher.rawValue, values: measured,
                    unit: column.heading)
                results.append(measurement)
                return String(format: "%.2f", measurement.median)
            }
            print(row("  " + play.watcher.rawValue, cells))
        }
    }

    private func row(_ first: String, _ cells: [String]) -> String {
        first.padding(toLength: 28, withPad: " ", startingAt: 0)
            + cells.map { String(repeating: " ", count: max(1, 16 - $0.count)) + $0 }.joined()
    }

    private func measure(_ play: Play) -> [(String, Double)] {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--play", play.argument]
        process.standardOutput = output
        guard (try? process.run()) != nil else { return [] }
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 2, let value = Double(words[1]) else { return nil }
            return (String(words[0]), value)
        }
    }
}
