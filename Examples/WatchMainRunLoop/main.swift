// An app on Foundation's main run loop, as it is: one line watches it.
//
//     WatchMainRunLoop [STORE]

import Foundation
import StallAgent

@inline(never) func layOutSlowly() { usleep(600_000) }

let store = CommandLine.arguments.dropFirst().first ?? "stalls.sqlite"
let monitor = try StallMonitor.start(.init(app: "main-run-loop", version: "1.0", store: store))
monitor.watchMainRunLoop()

Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in usleep(2_000) }
Timer.scheduledTimer(withTimeInterval: 3, repeats: false) { _ in
    let took = ContinuousClock().measure { layOutSlowly() }
    Timer.scheduledTimer(withTimeInterval: 2, repeats: false) { _ in
        monitor.stop()
        print("layOutSlowly took \(Int(took / .milliseconds(1))) ms")
        exit(0)
    }
}
RunLoop.main.run()
