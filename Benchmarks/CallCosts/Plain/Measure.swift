// The lines that scripts/bench-calls reads: MODE, nanoseconds and the call's name, with tabs.

import CCallCosts

/// Measures each call that does not block.
func measureCalls(_ mode: String, _ run: (_ index: Int32, _ body: () -> Void) -> Void) {
    var index: Int32 = 0
    while let name = cost_name(index) {
        run(index) { print("\(mode)\t\(cost_of(index))\t" + String(cString: name)) }
        index += 1
    }
}

/// Measures each call that may block; of so many the median, since a report takes some microseconds more or less.
func measureBlocking(_ mode: String, _ run: (_ body: () -> Void) -> Void) {
    var index: Int32 = 0
    var costs: [Int32: [Double]] = [:]
    for _ in 0..<100 {
        index = 0
        while cost_blocking_name(index) != nil {
            run { costs[index, default: []].append(cost_of_blocking(index)) }
            index += 1
        }
    }
    for index in 0..<index {
        guard let name = cost_blocking_name(index), let all = costs[index]?.sorted() else {
            continue
        }
        print("\(mode) blocking\t\(all[all.count / 2])\t" + String(cString: name))
    }
}
