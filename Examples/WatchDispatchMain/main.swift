// A server that ends in `dispatchMain()`: the main queue is served by a worker thread while the main thread sleeps for
// ever. The queue is watched, and the report shows the worker.
//
//     WatchDispatchMain [STORE]

import Dispatch
import Foundation
import StallAgent

@inline(never) func answerSlowly() { usleep(600_000) }

let store = CommandLine.arguments.dropFirst().first ?? "stalls.sqlite"
let monitor = try StallMonitor.start(.init(app: "dispatch-main", version: "1.0", store: store))
monitor.watch(DispatchQueue.main, as: "main-queue")

let requests = DispatchSource.makeTimerSource(queue: .main)
requests.schedule(deadline: .now(), repeating: .milliseconds(20))
requests.setEventHandler { usleep(2_000) }
requests.resume()

DispatchQueue.main.asyncAfter(deadline: .now() + 3) {
    let took = ContinuousClock().measure { answerSlowly() }
    DispatchQueue.main.asyncAfter(deadline: .now() + 2) {
        monitor.stop()
        print("answerSlowly took \(Int(took / .milliseconds(1))) ms")
        exit(0)
    }
}
dispatchMain()
