// What it costs a loop to be watched: our detector compared with the classic one, which signals a semaphore at every
// activity of the loop. Each measurement has its own process, so that contestants' threads do not disturb each other.
//
//     DetectorBenchmark [--rounds N] [NAME]    NAME: part of a comparison's name
//     DetectorBenchmark --play PLAY            one measurement: prints `name value` lines

import BenchmarkSupport
import Foundation

var arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "--play", let play = arguments.dropFirst().first.flatMap(Play.init) {
    for (name, value) in play.run() { print("\(name) \(value)") }
    exit(0)
}
var rounds = 5
if arguments.first == "--rounds", arguments.count > 1 {
    rounds = Int(arguments[1]) ?? rounds
    arguments.removeFirst(2)
}

var bench = Comparison(rounds: rounds, filter: arguments.first)
for load in [Load.busy, .spinning] {
    bench.compare(
        load.title, [.none, .stallwatch, .classicShort, .classicLong].map { Play(load, $0) },
        columns: [.perIteration, .monitorCPU, .switches])
}
for load in [Load.busyInTurns, .spinningInTurns] {
    bench.compare(
        load.title, [Play(load, .stallwatch)], columns: [.unwatched, .watched, .added])
}
bench.compare(
    Load.publishing.title, [Play(.publishing, .stallwatch)],
    columns: [.pollPath, .sleepPath, .clock])
bench.compare(
    Load.idle.title, [.stallwatch, .classicShort, .classicLong].map { Play(.idle, $0) },
    columns: [.wakeUps, .monitorCPU])
bench.compare(
    Load.stalling.title, [.stallwatch, .classicShort, .classicLong].map { Play(.stalling, $0) },
    columns: [.found, .missed, .error50, .errorMax])
for loops in [1, 8, 64] {
    bench.compare(
        "\(loops) loops, one watchdog", [Play(.many(loops), .stallwatch)],
        columns: [.busyCPU, .found, .missed, .error50, .error99, .errorMax])
}
try bench.results.append()
