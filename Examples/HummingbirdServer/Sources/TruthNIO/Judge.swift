// Compares the reports with the planted stalls. A plant must be reported if its own time reached the threshold.

import Foundation
import StallAgent

func judge(_ plants: [Plant], _ reports: [StallReport]) {
    var unexplained = Set(reports.indices.filter { reports[$0].verdict == .stalled })
    let stalled = unexplained.count
    var (missed, owed, rightFunction, rightLoop, named, requests) = (0, 0, 0, 0, 0, 0)
    for plant in plants where plant.ended - plant.began >= 50 {
        owed += 1
        if plant.request != nil { requests += 1 }
        // All that overlaps by more than the accuracy of two clocks is this plant's; it is judged by the best.
        let found = reports.indices.filter { index in
            let began = Double(reports[index].start.microseconds) / 1000
            let ended = began + reports[index].duration / .milliseconds(1)
            return min(ended, plant.ended) - max(began, plant.began) > 5
        }
        let own = found.filter { reports[$0].loop == plant.loop }
        unexplained.subtract(own)
        guard let report = own.first.map({ reports[$0] }) ?? found.first.map({ reports[$0] }) else {
            missed += 1
            print(
                "missed \(plant.place.rawValue) on \(plant.loop), \(plant.ended - plant.began) ms")
            continue
        }
        if own.isEmpty { missed += 1 }
        if report.loop == plant.loop { rightLoop += 1 }
        let functions = report.samples.filter { !$0.isLate }.flatMap(\.frames)
            .compactMap(\.function)
        if functions.contains(plant.place.function) { rightFunction += 1 }
        if plant.request != nil, report.activity == plant.request { named += 1 }
        if plant.request != nil, report.activity != plant.request {
            print("named \(report.activity ?? "nothing") instead of \(plant.request!)")
        }
    }
    for index in unexplained.sorted() {
        let report = reports[index]
        print("false: \(report.loop) for \(report.duration), \(report.activity ?? "")")
    }
    print("NIO's delegate saw \(delegateSaw.count) of \(delegateSaw.of) blocks in channelRead")
    print(
        "truth nio missed=\(missed) of=\(owed) false=\(unexplained.count) of=\(stalled) "
            + "right_function=\(rightFunction) of=\(owed) right_loop=\(rightLoop) of=\(owed) "
            + "request_named=\(named) of=\(requests)")
}
