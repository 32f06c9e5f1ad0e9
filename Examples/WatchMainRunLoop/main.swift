// An app on Foundation's main run loop, as it is: one line watches it.
//
//     WatchMainRunLoop [STORE]

import Foundation
import StallAgent

@inline(never) func layOutSlowly() { usleep(600_000) }

let store = CommandLine.arguments.dropFirst().first ?? "stalls.sqlite"
let monitor = try StallMonitor.start(.init(app: "main-run-loop", version: "1.0", store: store))
monitor.watchMainRunLoop()

let work = Timer(timeInterval: 0.02, repeats: true) { _ in usleep(2_000) }
let stall = Timer(fire: .now + 3, interval: 0, repeats: false) { _ in
    let took = ContinuousClock().measure { layOutSlowly() }
    print("layOutSlowly took \(Int(took / .milliseconds(1))) ms")
}
let end = Timer(fire: .now + 5.6, interval: 0, repeats: false) { _ in
    monitor.stop()
    exit(0)
}
for timer in [work, stall, end] { RunLoop.main.add(timer, forMode: .common) }
RunLoop.main.run()
