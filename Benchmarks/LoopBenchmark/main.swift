// EventRunLoop against CFRunLoop, Dispatch and a minimal C loop, side by side.
//
//     LoopBenchmark [--rounds N] [NAME]     NAME: part of a comparison's name
//     LoopBenchmark --endurance             nothing may grow over ten million iterations

import Foundation

var arguments = Array(CommandLine.arguments.dropFirst())
var rounds = 5
if let index = arguments.firstIndex(of: "--rounds"), index + 1 < arguments.count {
    rounds = Int(arguments[index + 1]) ?? rounds
    arguments.removeSubrange(index...index + 1)
}

if arguments.first == "--endurance" { exit(endure() ? 0 : 1) }

var bench = Bench(rounds: rounds, filter: arguments.first)
bench.iterations()
bench.posts()
bench.descriptors()
bench.timers()
let failures = bench.allocations()
try bench.write(to: ".build/bench/results.jsonl")
for failure in failures { print("too many: \(failure)") }
exit(failures.isEmpty ? 0 : 1)
