// Plays the golden table, and random sequences, on EventRunLoop and on the real CFRunLoop; says where they differ.

internal import Foundation
internal import LoopConformance

let arguments = CommandLine.arguments.dropFirst()
let rows = Scenario.all.filter { scenario in
    switch arguments.first {
    case nil, "--record": true
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

var (agree, better, differ) = (0, 0, 0)
for scenario in rows {
    switch scenario.compare(perform: scenario.isMain ? { $0() } : onFreshThread) {
    case .agrees:
        agree += 1
    case .better(let reason):
        better += 1
        print("\(scenario.id) better: \(reason)")
    case .differs(let ours, let real):
        differ += 1
        print("\(scenario.id) differs: \(scenario.title)")
        print("  ours \(ours.joined(separator: " "))")
        print("  real \(real.joined(separator: " "))")
    }
}
print("conformance agree=\(agree) better=\(better) of=\(rows.count)")
exit(differ == 0 ? 0 : 1)
