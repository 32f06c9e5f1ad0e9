// How fast and how small the store is, each measure beside what SQLite alone does with the same rows in the same run.
//
//     StoreBenchmark [DIRECTORY [STORES REPORTS CENTRAL]]     all of it; by default 60 stores of 1,000 reports, and
//                                                             questions to a central store of 1,000,000
//     StoreBenchmark agents DIRECTORY STORES REPORTS          agents' stores alone, to profile with
//     StoreBenchmark ingest CENTRAL PATH...                   ingest alone
//     StoreBenchmark central FILE REPORTS [PART PARTS]        makes a central store of so many reports, of a month or of
//                                                             the part of it with that number, from 0
//     StoreBenchmark questions FILE                           asks it
//     StoreBenchmark stacks FILE tree|inclusive               asks one question that reads every stack: its CPU time,
//                                                             memory, and a hash of the answer
//
// What is there already is not made again. The results are added to .build/bench/results.jsonl.

import BenchmarkSupport
import Foundation
import StallAnalysis
import StallIngest
import StallModel

let rules = DefaultGrouper()

@main struct StoreBenchmark {
    static func main() {
        Ingest.prepareProcess()
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.first {
            case "agents" where arguments.count == 4:
                try FileManager.default.createDirectory(
                    atPath: arguments[1], withIntermediateDirectories: true)
                _ = try Fleet.makeAgentStores(
                    in: arguments[1], count: number(arguments[2]), reports: number(arguments[3]))
            case "ingest" where arguments.count > 2:
                let ingest = try Ingest(into: arguments[1], grouper: rules)
                let effort = try Effort.of { _ = try ingest.run(Array(arguments.dropFirst(2))) }
                try ingest.close()
                print("\(effort.elapsed) elapsed, \(effort.cpu) of CPU")
            case "central" where arguments.count == 3:
                try Fleet.makeStore(arguments[1], reports: number(arguments[2]))
            case "central" where arguments.count == 5:
                let part = Fleet.Part(
                    number: try number(arguments[3], from: 0), count: try number(arguments[4]))
                try Fleet.makeStore(arguments[1], reports: number(arguments[2]), part: part)
            case "questions" where arguments.count == 2: try Questions.ask(arguments[1])
            case "stacks" where arguments.count == 3:
                try StackQuestions.ask(arguments[1], arguments[2])
            case nil: try all(in: nil, stores: 60, reports: 1_000, central: 1_000_000)
            case let directory? where arguments.count == 4:
                try all(
                    in: directory, stores: number(arguments[1]), reports: number(arguments[2]),
                    central: number(arguments[3]))
            default:
                print("usage: StoreBenchmark [DIRECTORY STORES REPORTS CENTRAL]")
                exit(64)
            }
        } catch {
            print(error)
            exit(1)
        }
    }

    /// - Parameter directory: Where files are created and kept; nil is a temporary one.
    private static func all(
        in directory: String?, stores: Int, reports: Int, central: Int
    ) throws {
        let place = directory ?? NSTemporaryDirectory() + "store-benchmark-\(getpid())"
        defer { if directory == nil { try? FileManager.default.removeItem(atPath: place) } }
        try FileManager.default.createDirectory(
            atPath: place + "/agents", withIntermediateDirectories: true)
        try Writing.measure(in: place)
        try Taking.measure(in: place, stores: stores, reports: reports)
        let path = "\(place)/central-\(central).sqlite"
        try Fleet.makeStore(path, reports: central)
        try Questions.ask(path)
    }

    private static func number(_ text: String, from least: Int = 1) throws -> Int {
        guard let number = Int(text), number >= least else {
            throw CocoaError(
                .formatting, userInfo: [NSLocalizedDescriptionKey: "not a count: \(text)"])
        }
        return number
    }

    static func say(
        _ name: String, _ contestant: String = "stallwatch", size: Int = 1, _ values: [Double],
        _ unit: String
    ) throws {
        let result = BenchmarkResult(
            name: name, contestant: contestant, size: size, values: values, unit: unit)
        try [result].append()
        let value =
            result.median >= 100 ? "\(Int(result.median))" : String(format: "%.2f", result.median)
        func padded(_ text: String, _ width: Int) -> String {
            text.padding(toLength: max(width, text.count), withPad: " ", startingAt: 0)
        }
        print(padded(name, 46), padded("\(size)", 9), padded(contestant, 30), value, unit)
    }
}

/// What something has cost.
struct Effort {
    var elapsed: Duration
    /// Of this process.
    var cpu: Duration

    static func of(_ body: () throws -> Void) rethrows -> Effort {
        let before = usedCPU
        let elapsed = try ContinuousClock().measure(body)
        return Effort(elapsed: elapsed, cpu: usedCPU - before)
    }

    private static var usedCPU: Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
