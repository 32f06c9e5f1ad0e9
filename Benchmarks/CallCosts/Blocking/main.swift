// The cost of a call that passes through the functions which StallBlocking interposes.
//
//     CallCostsBlocking linked | unwatched | watched     nothing is forbidden; it is, elsewhere; here, where calls are noted

import CCallCosts
import Foundation
import StallAgent
import StallBlocking

let mode = CommandLine.arguments.dropFirst().first ?? "linked"
guard mode != "linked" else {
    measureCalls(mode) { _, body in body() }
    measureBlocking(mode) { body in body() }
    exit(0)
}
let store = "/tmp/stallwatch-call-costs-\(getpid()).sqlite"
var configuration = StallMonitor.Configuration(app: "call-costs", version: "1", store: store)
configuration.threshold = .seconds(60)
configuration.limits = .none
let monitor = try StallMonitor.start(configuration)
guard monitor.forbidBlocking().isInForce else { fatalError("blocking is not forbidden") }
if mode == "watched" {
    let marks = monitor.watchCurrentThread(as: "calls")
    measureCalls(mode) { _, body in
        marks.begin()
        body()
        marks.end()
    }
    measureBlocking(mode) { body in
        marks.begin()
        body()
        marks.end()
        // So that the agent keeps up.
        usleep(2_000)
    }
} else {
    measureCalls(mode) { _, body in body() }
    measureBlocking(mode) { body in body() }
}
monitor.stop()
for suffix in ["", "-wal", "-shm"] { unlink(store + suffix) }
