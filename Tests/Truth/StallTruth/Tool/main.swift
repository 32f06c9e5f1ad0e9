// Is every stall detected, and nothing else reported as one? Victims that measure themselves, an agent that watches
// them, and what machines do to processes: CPU hogs, SIGSTOP, debuggers, freezers, quotas, clock changes, forks.
//
//     stall-truth [--seconds N] [PART...]    runs the parts, each in its own process, for about N seconds each
//
// The last line is the result: truth stalls missed=N of=M false=N of=M median_error_ms=X p99_error_ms=X afterwards=N
// It fails if a stall was missed, something else was reported as one, an incident has the wrong verdict, or more than
// one stall in a thousand was detected only afterwards, by the loop's own count. With SABOTAGE=1 every 20th report is
// left out, and the result must show it.

import Foundation
import StallAgent

setvbuf(stdout, nil, _IOLBF, 0)
var arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "helper" { help(Array(arguments.dropFirst())) }
if arguments.first == "ending" {
    WayOut.play(arguments[1], store: arguments[2], milliseconds: UInt32(arguments[3]) ?? 0)
    exit(0)
}
if arguments.first == "part" { try playPart(arguments[1], seconds: Double(arguments[2])!) }

var seconds = 60.0
if arguments.first == "--seconds", arguments.count > 1 {
    seconds = max(1, Double(arguments[1]) ?? seconds)
    arguments.removeFirst(2)
}
let chosen = parts.filter { arguments.isEmpty ? !$0.isExtra : arguments.contains($0.name) }
precondition(!chosen.isEmpty, "the parts are: \(parts.map(\.name).joined(separator: " "))")

var results: [PartResult] = []
for part in chosen {
    print(part.name.padding(toLength: 15, withPad: " ", startingAt: 0), terminator: "")
    fflush(stdout)
    let result = try playInProcess(part)
    results.append(result)
    print(line(result))
    for note in result.notes { print("    \(note)") }
    if part.isExtra {
        print("without a stack \(result.withoutStack) of \(result.stallReports) reports")
    }
}
let noticed = results.flatMap(\.noticed).sorted()
let durations = results.flatMap(\.durations).sorted()
print(
    "durations off by: median \(milliseconds(percentile(durations, 0.5))) ms, "
        + "p99 \(milliseconds(percentile(durations, 0.99))) ms, of \(durations.count)")
let oversleeps = results.flatMap(\.oversleeps).sorted()
if !oversleeps.isEmpty {
    print(
        "beside that, sleeps of a thread that nobody watches ended late by: median "
            + "\(milliseconds(percentile(oversleeps, 0.5))) ms, "
            + "p99 \(milliseconds(percentile(oversleeps, 0.99))) ms, of \(oversleeps.count)")
}
let wrongVerdicts = results.reduce(0) { $0 + $1.wrongVerdicts }
print(
    "verdicts wrong=\(wrongVerdicts) of="
        + "\(results.reduce(0) { $0 + $1.others.values.reduce(0, +) }), "
        + "\(results.reduce(0) { $0 + $1.borderline }) stalls at the threshold not counted")
let stalls = results.reduce(0) { $0 + $1.stalls }
let afterwards = results.reduce(0) { $0 + $1.afterwards }
if isSabotaged { print("sabotage: every 20th report was left out") }
let missed = results.reduce(0) { $0 + $1.missed }
let isFalse = results.reduce(0) { $0 + $1.isFalse }
print(
    "truth stalls missed=\(missed) of=\(stalls) "
        + "false=\(isFalse) of=\(results.reduce(0) { $0 + $1.healthy }) "
        + "median_error_ms=\(milliseconds(percentile(noticed, 0.5))) "
        + "p99_error_ms=\(milliseconds(percentile(noticed, 0.99))) afterwards=\(afterwards)")
let isGood = missed + isFalse + wrongVerdicts == 0 && afterwards * 1000 <= stalls
let status: CInt = isGood ? 0 : 1

func milliseconds(_ value: Double) -> String { String(format: "%.3f", value) }

func line(_ result: PartResult) -> String {
    let others = result.others.sorted { $0.key < $1.key }.map { ", \($0.value) \($0.key)" }.joined()
    return
        "missed \(result.missed) of \(result.stalls), false \(result.isFalse) of \(result.healthy)"
        + others
}

func playInProcess(_ part: Part) throws -> PartResult {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = ["part", part.name, "\(seconds)"]
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        fatalError("part \(part.name) ended with \(process.terminationStatus)")
    }
    return try JSONDecoder().decode(PartResult.self, from: data)
}

/// Runs one part in this process and prints its result.
func playPart(_ name: String, seconds: Double) throws -> Never {
    let part = parts.first { $0.name == name }!
    let directory = FileManager.default.temporaryDirectory.appending(path: "truth-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let store = directory.appending(path: "stalls.sqlite").path
    let stage = Stage(store: store, seconds: seconds)
    part.play(stage)
    stage.monitor.stop()
    var result = try PartResult(
        part, truth: stage.truth, store: store, isPlayed: !stage.isUnplayed)
    for problem in part.problems?(stage) ?? [] { result.count(problem) }
    result.notes += stage.notes
    try FileManager.default.removeItem(at: directory)
    print(String(decoding: try JSONEncoder().encode(result), as: UTF8.self))
    exit(0)
}

exit(status)
