// Is every stall of a job of a Swift task detected, on threads that come and go, and nothing else reported as one?
//
//     task-truth [--plants N] [--seconds N]    about N plants, or as many as fit into N seconds, in several processes
//
// Dispatch ends a thread that has had no work for 5 s, and the next one takes over its entry in the agent: the pauses
// here are mostly longer than that. The last line is the result:
//
//     truth tasks planted=N missed=N uncounted=N false=N
//
// `missed` are stalls of which no look of the watchdog left a sample, `uncounted` those of them that are in no report
// and not counted either, `false` reports of stalls that were none. With SABOTAGE=1 every 20th report is left out, and the result must show it.

import Foundation

setvbuf(stdout, nil, _IOLBF, 0)
let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "part" {
    try playPart(
        number: Int(arguments[1])!, plants: Int(arguments[2])!, seconds: Double(arguments[3])!)
}

/// Watched processes at a time. Their threads mostly sleep.
let parts = 12
func number(after option: String) -> Double? {
    arguments.firstIndex(of: option).flatMap {
        $0 + 1 < arguments.count ? Double(arguments[$0 + 1]) : nil
    }
}
let seconds = number(after: "--seconds") ?? 3600
let plants = number(after: "--plants").map { Int($0) } ?? (seconds < 3600 ? .max : 1200)

let running = try (0..<parts).map { part in
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    let share = plants == .max ? plants : (plants + parts - 1) / parts
    process.arguments = ["part", "\(part)", "\(share)", "\(seconds)"]
    process.standardOutput = output
    try process.run()
    // Otherwise all of them would plant at the same moments.
    usleep(150_000)
    return (process, output)
}
var total = TaskResult()
for (part, (process, output)) in running.enumerated() {
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        fatalError("part \(part) ended with \(process.terminationStatus)")
    }
    total = total + (try JSONDecoder().decode(TaskResult.self, from: data))
}
for note in total.notes { print("    " + note) }
let (_, load) = (print("healthy jobs \(total.healthy)", terminator: ", "), loadAverage())
print(
    "threads \(total.threads), entries \(total.entries), at the threshold \(total.borderline), "
        + "awaits that did not suspend \(total.joined), "
        + "counted without a report \(total.counted), reports \(total.reports), load \(load)")
if isSabotaged { print("sabotage: every 20th report was left out") }
print(
    "truth tasks planted=\(total.planted) missed=\(total.missed) uncounted=\(total.uncounted) "
        + "false=\(total.isFalse)")
exit(total.missed + total.uncounted + total.isFalse == 0 ? 0 : 1)

func loadAverage() -> String {
    var load = [0.0, 0, 0]
    getloadavg(&load, 3)
    return String(format: "%.1f", load[0])
}
