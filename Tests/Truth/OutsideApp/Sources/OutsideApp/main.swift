// Uses the agent's whole API with one import. It stalls once, so that the report can be checked:
//
//     OutsideApp STORE

import Dispatch
import Foundation
import StallAgent

let store = CommandLine.arguments.dropFirst().first ?? "stalls.sqlite"
var configuration = StallMonitor.Configuration(app: "outside", version: "1.0", store: store)
configuration.threshold = .milliseconds(250)
configuration.policies["decoder"] = .consecutive(5, of: .milliseconds(50))
configuration.limits = RateLimits(perPlace: 30, perHour: 600)
configuration.debuggerPolicy = .record
configuration.threads = .stalled
configuration.callbackDeadline = .seconds(2)
configuration.storeLimits = StallMonitor.StorageLimits()
configuration.logger.logLevel = .error

let monitor = try StallMonitor.start(configuration)
let loop = EventRunLoop.main
monitor.watch(loop, as: "main", threshold: .milliseconds(200))
monitor.watchMainRunLoop()
monitor.watch(RunLoop.main, as: "foundation", threshold: .seconds(1))
monitor.watch(DispatchQueue.main, as: "main-queue")
monitor.watch(DispatchQueue(label: "work"), as: "work", threshold: .milliseconds(300))
monitor.watchMainActor()
monitor.watchCooperativePool()
monitor.setThreshold(.milliseconds(220), for: "main")
var policy = StallPolicy(threshold: .milliseconds(250))
policy.modes[LoopMode("tracking")] = .milliseconds(100)
policy.grace = .milliseconds(10)
monitor.setPolicy(policy, for: "main")

let thread = monitor.watchCurrentThread(as: "decoder", threshold: .milliseconds(400))
do {
    thread.begin()
    defer { thread.end() }
    thread.activity = "decode"
}
monitor.onStall { report in
    print("\(report.loop) stalled for \(report.duration): \(report.activity ?? "")")
}
monitor.onStall(at: .open) { report in
    print("since \(report.start), \(report.samples.count) samples, \(report.verdict)")
}

let worker = try LoopThread(name: "worker")
worker.loop.post(inMode: .common) {}
loop.add(LoopObserver { _, _ in }, toMode: .common)
loop.add(LoopSource { _ in }, toMode: .default)
loop.add(
    LoopTimer(after: .milliseconds(50)) { _ in
        monitor.withActivity("open album") { usleep(500_000) }
        loop.stop()
    }, toMode: .default)
loop.run()
monitor.stop()
print("done")
