// Compares the reports with the planted stalls. A plant must be reported if its own time reached the threshold.

import Foundation
import StallAgent

/// What a verdict that turns out to be wrong was based on.
private func evidence(of report: StallReport) -> String {
    let facts = report.cause?.evidence.map { "\($0.name) \($0.value)" } ?? []
    let samples = report.samples.map { "\($0.isLate ? "late " : "")\($0.offset)" }
    return "cpu \(report.cpuTime), noticed \(report.detectionDelay) late, "
        + "samples \(samples), \(facts.joined(separator: "; "))"
}

func judge(_ plants: [Plant], _ reports: [StallReport]) {
    var unexplained = Set(reports.indices.filter { reports[$0].verdict == .stalled })
    let stalled = unexplained.count
    var (missed, owed, rightFunction, rightLoop, named, requests) = (0, 0, 0, 0, 0, 0)
    var (spans, spansNamed) = (0, 0)
    var found: [Place: (owed: Int, found: Int)] = [:]
    for plant in plants where plant.ended - plant.began >= 50 {
        owed += 1
        found[plant.place, default: (0, 0)].owed += 1
        if plant.request != nil { requests += 1 }
        // All that overlaps by more than the accuracy of two clocks is this plant's; it is judged by the best.
        let overlapping = reports.indices.filter { index in
            let began = Double(reports[index].start.microseconds) / 1000
            let ended = began + reports[index].duration / .milliseconds(1)
            return min(ended, plant.ended) - max(began, plant.began) > 5
        }
        let own = overlapping.filter { reports[$0].loop == plant.loop }
        unexplained.subtract(own)
        let stalled = own.first { reports[$0].verdict == .stalled }
        let best = stalled ?? own.first ?? overlapping.first
        guard let report = best.map({ reports[$0] }) else {
            missed += 1
            print(
                "missed \(plant.place.rawValue) on \(plant.loop), \(plant.ended - plant.began) ms")
            continue
        }
        if stalled == nil {
            missed += 1
            print(
                "missed \(plant.place.rawValue) on \(plant.loop), \(plant.ended - plant.began) ms:",
                "only \(report.verdict) on \(report.loop) for \(report.duration),",
                evidence(of: report))
        } else {
            found[plant.place]!.found += 1
        }
        if report.loop == plant.loop { rightLoop += 1 }
        let functions = report.samples.filter { !$0.isLate }.flatMap(\.frames)
            .compactMap(\.function)
        if functions.contains(plant.place.function) {
            rightFunction += 1
        } else {
            print("function \(functions.first ?? "none") instead of \(plant.place.function)")
        }
        if plant.request != nil, report.activity == plant.request { named += 1 }
        if plant.request != nil, report.activity != plant.request {
            print("named \(report.activity ?? "nothing") instead of \(plant.request!)")
        }
        let said = report.cause?.evidence.first { $0.name == "span" }?.value ?? ""
        switch plant.place {
        case .route, .routeOnExecutor:
            spans += 1
            if said.hasPrefix("block, trace ") { spansNamed += 1 }
        case .tracedRoute, .tracedBody:
            // By the ids that the app's own tracer has the span under.
            spans += 1
            let own = ownTracer.finishedSpans.contains {
                said.hasPrefix("\(plant.request!), trace \($0.traceID), span \($0.spanID), for ")
            }
            if own { spansNamed += 1 } else { print("span said as: \(said)") }
        default: break
        }
    }
    for index in unexplained.sorted() {
        let report = reports[index]
        let functions = report.samples.flatMap(\.frames).compactMap(\.function).prefix(12)
        print(
            "false: \(report.loop) for \(report.duration), \(report.activity ?? ""), \(functions),",
            evidence(of: report))
    }
    for (place, count) in found.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
        print("\(place.rawValue): \(count.found) of \(count.owed)")
    }
    print("spans of the stalled task named \(spansNamed) of \(spans)")
    if delegateSaw.of > 0 {
        print(
            "NIO's delegate saw \(delegateSaw.count) of \(delegateSaw.of) blocks in channelRead")
    }
    // Added up over processes by scripts/truth-nio.
    print(
        "counts \(missed) \(owed) \(unexplained.count) \(stalled) \(rightFunction) \(owed) "
            + "\(rightLoop) \(owed) \(named) \(requests)")
}
