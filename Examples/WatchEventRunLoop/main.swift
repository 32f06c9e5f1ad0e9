// An app that embeds the agent's own run loop.
//
//     WatchEventRunLoop [STORE]

import Foundation
import StallAgent

@inline(never) func indexSlowly() { usleep(600_000) }

let store = CommandLine.arguments.dropFirst().first ?? "stalls.sqlite"
let monitor = try StallMonitor.start(.init(app: "event-run-loop", version: "1.0", store: store))
let loop = EventRunLoop.main
monitor.watch(loop, as: "main")

loop.add(LoopTimer(after: .zero, every: .milliseconds(20)) { _ in usleep(2_000) }, toMode: .common)
loop.add(
    LoopTimer(after: .seconds(3)) { _ in
        let took = ContinuousClock().measure { indexSlowly() }
        print("indexSlowly took \(Int(took / .milliseconds(1))) ms")
        loop.add(LoopTimer(after: .seconds(2)) { _ in loop.stop() }, toMode: .common)
    }, toMode: .common)
loop.run()
monitor.stop()
