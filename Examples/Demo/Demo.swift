// An app whose main loop stalls in the five ways that the literature describes, between healthy work. At its end it
// prints its own measurements, to compare with the agent's reports.
//
//     Demo [STORE]        the store to write; stalls.sqlite by default

import Foundation
import StallAgent

@main
struct Demo {
    static func main() throws {
        let store = CommandLine.arguments.dropFirst().first ?? "stalls.sqlite"
        let monitor = try StallMonitor.start(.init(app: "demo", version: "1.0.0", store: store))
        let loop = EventRunLoop.main
        monitor.watch(loop, as: "main", threshold: .milliseconds(250))

        let life = try HealthyLife(loop)
        let script = Script(loop, monitor)
        script.start()
        loop.run()

        life.stop()
        monitor.stop()
        script.log.print()
        life.print()
    }
}

/// Causes the stalls one after the other, with time in between in which the loop does its healthy work.
///
/// Unchecked: after `init` it is used only on the loop's thread.
final class Script: @unchecked Sendable {
    let log = StallLog()
    private let loop: EventRunLoop
    private let monitor: StallMonitor
    private let server = SlowServer(delay: 1.0)
    private let album = (0..<600).map {
        Photo(title: "photo \($0 * 7919 % 1009)", aspect: 0.5 + Double($0 % 13) / 10)
    }
    private var rounds = 3

    init(_ loop: EventRunLoop, _ monitor: StallMonitor) {
        self.loop = loop
        self.monitor = monitor
    }

    func start() { sleepingTimer() }

    /// A repeating timer whose callback sleeps: the classic.
    private func sleepingTimer() {
        nonisolated(unsafe) var firings = 0
        let timer = LoopTimer(after: .milliseconds(300), every: .milliseconds(500)) {
            [self] timer in
            firings += 1
            log.measure("sleepInTimer") { sleepInTimer() }
            guard firings == 3 else { return }
            timer.invalidate()
            nextRound()
        }
        loop.add(timer, toMode: .common)
    }

    /// One of each of the others.
    private func nextRound() {
        guard rounds > 0 else { return later { self.loop.stop() } }
        rounds -= 1
        later { [self] in
            monitor.withActivity("lay out album") {
                log.measure("drawComplexLayout") { drawComplexLayout(album) }
            }
            later { [self] in
                monitor.withActivity("refresh") {
                    log.measure("fetchSynchronously") { fetchSynchronously(port: server.port) }
                }
                later { [self] in
                    log.measure("saveEverything") { saveEverything() }
                    meetWorker()
                }
            }
        }
    }

    /// A worker takes the lock and signals; then the main thread tries to take it.
    private func meetWorker() {
        let signal = LoopSource { [self] source in
            source.invalidate()
            log.measure("waitForWorker") { waitForWorker() }
            nextRound()
        }
        loop.add(signal, toMode: .common)
        let loop = loop
        let thread = Thread {
            // Set on the thread itself: then the kernel knows the name too, and reports show it.
            Thread.current.name = "compactor"
            compactDatabase {
                signal.signal()
                loop.wakeUp()
            }
        }
        thread.start()
    }

    private func later(_ body: @escaping @Sendable () -> Void) {
        loop.add(LoopTimer(after: .milliseconds(200)) { _ in body() }, toMode: .common)
    }
}

/// What the app itself measured of its stalls.
final class StallLog {
    private var durations: [(function: String, duration: Duration)] = []

    func measure(_ function: String, _ body: () -> Void) {
        let duration = ContinuousClock().measure(body)
        durations.append((function, duration))
    }

    /// One line a function: its name, how often it was called, and the milliseconds of every call.
    func print() {
        Swift.print("measured by the demo itself (ms):")
        for function in Set(durations.map(\.function)).sorted() {
            let calls = durations.filter { $0.function == function }.map {
                String(format: "%.0f", $0.duration / .milliseconds(1))
            }
            Swift.print("  \(function) \(calls.count) \(calls.joined(separator: " "))")
        }
    }
}
