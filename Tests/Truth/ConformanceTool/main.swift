// Runs the golden table, and random sequences, on EventRunLoop and on the real CFRunLoop; prints the differences.
//
//     conformance                          the table and 100,000 sequences, with new seeds each time
//     conformance ID | main                one row, or those that need the main thread
//     conformance further                  comparisons beyond the table
//     conformance --table [ROUNDS]         only the table, several times; retries by row
//     conformance --random [COUNT [SEED]]  only sequences
//     conformance --stress                 four threads on one loop, for ThreadSanitizer
//     conformance --fork                   another thread forks wherever the main loop may be
//     conformance --fairness               each kind of event gets its share when several are always ready
//     conformance --descriptors            loops of a process with 0 to 12 descriptors left
//     OLD_WAITS=1 conformance              with a timer descriptor, as on a kernel without epoll_pwait2
//     SABOTAGE=1 conformance               lets go of objects under the loop's lock, and keeps some: must fail
//     conformance --record                 records the table from the real loop

internal import Foundation
internal import LoopConformance
internal import StallRunLoop

EventRunLoop.hasOldWaits = ProcessInfo.processInfo.environment["OLD_WAITS"] == "1"
let arguments = CommandLine.arguments.dropFirst()
if arguments.first == "--stress" {
    let isComplete = stress(rounds: 5_000)
    print("stress: \(isComplete ? "every block ran" : "blocks were lost")")
    exit(isComplete ? 0 : 1)
}

if arguments.first == "--fork" { exit(checkForks() ? 0 : 1) }
if arguments.first == "--fairness" { exit(checkFairness() ? 0 : 1) }
if arguments.first == "--descriptors" { exit(checkDescriptorLimits() ? 0 : 1) }

PlayedEventRunLoop.isSabotaged = ProcessInfo.processInfo.environment["SABOTAGE"] == "1"
let known = arguments.first == "further" ? Scenario.furtherMainScenarios : Scenario.all
let rows = known.filter { scenario in
    switch arguments.first {
    case nil, "--record", "--table", "further": true
    case "--random": false
    case "main": scenario.isMain
    case let id: scenario.id == id
    }
}

if arguments.first == "--record" {
    for scenario in rows {
        let trace = scenario.trace(
            on: PlayedCFRunLoop.self, scale: 1, perform: scenario.isMain ? { $0() } : onFreshThread)
        print("        \"\(scenario.id)\": \"\(trace.joined(separator: " "))\",")
    }
    exit(0)
}

var (agree, better, differ, retries) = (0, 0, 0, 0)
let rounds =
    arguments.first == "--table" ? arguments.dropFirst().first.flatMap { Int($0) } ?? 50 : 1
var retriesByRow: [String: (retries: Int, disturbed: Int)] = [:]
for _ in 0..<rounds {
    for scenario in rows {
        let play = scenario.compare(perform: scenario.isMain ? { $0() } : onFreshThread)
        retries += play.retries
        if play.retries > 0 {
            retriesByRow[scenario.id, default: (0, 0)].retries += play.retries
            retriesByRow[scenario.id]?.disturbed += play.disturbed
        }
        switch play.verdict {
        case .agrees:
            agree += 1
        case .better(let reason):
            better += 1
            if rounds == 1 { print("\(scenario.id) better: \(reason)") }
        case .differs(let ours, let real):
            differ += 1
            print("\(scenario.id) differs: \(scenario.title)")
            print("  ours \(ours.joined(separator: " "))")
            print("  real \(real.joined(separator: " "))")
        }
    }
}
for (row, count) in retriesByRow.sorted(by: { $0.value.retries > $1.value.retries }) {
    print(
        "\(row) was played again \(count.retries) times, \(count.disturbed) of them because its threads had queued for a CPU"
    )
}
/// A play that differs although its threads had a CPU is not the machine's doing: one in 50 rounds is let pass.
let mostUndisturbed = max(1, rounds / 50)
let isUnsteady = retriesByRow.contains { row, count in
    let undisturbed = count.retries - count.disturbed
    guard undisturbed > mostUndisturbed else { return false }
    print(
        "\(row) differed \(undisturbed) times while its threads had a CPU; at most \(mostUndisturbed) may"
    )
    return true
}
/// Objects that handlers and blocks held: how many were let go of under the loop's lock, and how many never were; beside
/// the latter those of the real loop.
func census() -> String {
    let (ours, real) = (Probe.ours, Probe.real)
    return " deinit_under_lock=\(ours.underLock) alive=\(ours.alive) alive_real=\(real.alive)"
}
let isLettingGo = { Probe.ours.underLock == 0 && Probe.ours.alive == 0 }
guard arguments.first == nil || arguments.first == "--random" else {
    print(
        "conformance agree=\(agree) better=\(better) of=\(rows.count * rounds) retries=\(retries)"
            + census())
    exit(differ == 0 && !isUnsteady && isLettingGo() ? 0 : 1)
}

let count = arguments.dropFirst().first.flatMap { UInt64($0) } ?? 100_000
let firstSeed =
    arguments.dropFirst(2).first.flatMap { UInt64($0) }
    ?? .random(in: 1_000_000...1_000_000_000_000)
print("random sequences from seed \(firstSeed)")
var differences = 0
for seed in firstSeed..<firstSeed + count
where RandomSequence(seed: seed).difference(retries: &retries) != nil {
    differences += 1
    guard differences <= 3 else { continue }
    let shortest = RandomSequence(seed: seed).shrunk()
    print("random sequence \(seed) differs; shortened to\n\(shortest)")
    if let (ours, real) = shortest.difference() {
        print("  ours \(ours.joined(separator: " "))")
        print("  real \(real.joined(separator: " "))")
    }
}
print(
    "conformance agree=\(agree) better=\(better) of=\(rows.count) random=\(count) differences=\(differences) retries=\(retries)"
        + census())
exit(differ == 0 && differences == 0 && !isUnsteady && isLettingGo() ? 0 : 1)
