// Is every stall of a loop detected, whatever keeps its thread and the watchdog from their CPUs?
//
//     simulation-truth [--hours N] [--seed N]    N hours of simulated time (10), from this seed on (a random one)
//
// The watchdog, its loops and the kernel run on one thread, whose time is made up (Tests/Support/StallSimulation). The
// last line is the result:
//
//     truth simulation hours=N spans=N planted=N missed=N uncounted=N false=N wrong=N
//
// `wrong` are reports whose length is not the span's, or that ended twice or never. With SABOTAGE=1 every 20th report is
// left out, and the result must show it.

import Foundation
import StallModel
import StallSimulation

setvbuf(stdout, nil, _IOLBF, 0)
let arguments = CommandLine.arguments
func number(after option: String) -> Double? {
    arguments.firstIndex(of: option).flatMap {
        $0 + 1 < arguments.count ? Double(arguments[$0 + 1]) : nil
    }
}
let hours = number(after: "--hours") ?? 10
let first = number(after: "--seed").map { UInt64($0) } ?? UInt64.random(in: 0..<1_000_000_000)
let isSabotaged = ProcessInfo.processInfo.environment["SABOTAGE"] == "1"
/// An hour in every weather, in parts of ten minutes.
let runs = max(1, Int(hours * 6 / Double(Weather.all.count)))

var total = Findings()
for weather in Weather.all {
    var found = Findings()
    for run in 0..<runs {
        let machine = SimulatedMachine(
            seed: first + UInt64(run), weather: weather, lasting: .seconds(600))
        let result = machine.run(
            thresholds: SimulatedMachine.thresholds, isSabotaged: isSabotaged)
        found += result
        for note in result.notes.prefix(2) { print("    seed \(first + UInt64(run)) \(note)") }
    }
    let verdicts = found.verdicts.sorted { $0.key.rawValue < $1.key.rawValue }.map {
        "\($0.value) \($0.key)"
    }.joined(separator: ", ")
    print("\(weather.name): \(found.spans) spans, reports: \(verdicts)")
    total += found
}
print("seeds \(first) to \(first + UInt64(runs) - 1)")
print(
    "truth simulation hours=\(runs * Weather.all.count / 6) spans=\(total.spans) "
        + "planted=\(total.planted) missed=\(total.missed) uncounted=\(total.uncounted) "
        + "false=\(total.isFalse) wrong=\(total.wrong)")
exit(total.isRight ? 0 : 1)
