// EventRunLoop against CFRunLoop, Dispatch and a minimal C loop, side by side.
//
//     LoopBenchmark [--rounds N] [--only CONTESTANT] [NAME]    NAME: part of a comparison's name and size
//     LoopBenchmark --endurance                                nothing may grow over ten million iterations
//     LoopBenchmark --table                                    what all benchmarks have measured so far

internal import BenchmarkSupport
import Foundation

var arguments = Array(CommandLine.arguments.dropFirst())
/// Removes an option and its value from the arguments.
@MainActor func option(_ name: String) -> String? {
    guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else {
        return nil
    }
    defer { arguments.removeSubrange(index...index + 1) }
    return arguments[index + 1]
}
let rounds = option("--rounds").flatMap { Int($0) } ?? 5
let contestant = option("--only")

if arguments.first == "--endurance" { exit(endure() ? 0 : 1) }

if arguments.first == "--table" {
    try printTable(of: resultsPath)
    exit(0)
}

var bench = Bench(rounds: rounds, filter: arguments.first, contestant: contestant)
bench.iterations()
bench.posts()
bench.descriptors()
bench.timers()
let failures = bench.allocations()
try bench.results.append()
for failure in failures { print("too many: \(failure)") }
exit(failures.isEmpty ? 0 : 1)
