// A program with an agent in it, for tests that need a process of its own: to read its store from outside, to kill it.
//
//     AgentFixture stalls STORE COUNT    stalls COUNT times for 400 ms in plannedStall(), between healthy iterations
//     AgentFixture hang STORE            says "hanging" and never returns from plannedHang()
//     AgentFixture idle STORE SECONDS    says "idle" and waits for nothing; ends after SECONDS
//     AgentFixture leave STORE           stalls once and exits without stopping the agent
//     AgentFixture threads STORE         stalls once beside threads that wait and one that computes; all are asked for
//     AgentFixture end STORE HOW         stalls once, says for how many milliseconds, and ends: see Endings.swift
//     AgentFixture refused STORE WHAT    stalls where the system refuses something: see Refusals.swift

import Foundation
import StallAgent
import Synchronization

@inline(never) func plannedStall() { usleep(400_000) }

@inline(never) func plannedHang() { while true { sleep(1000) } }

@inline(never) func parkedWork() { while true { sleep(1000) } }

@inline(never) func busyWork() { while !isOver.load(ordering: .relaxed) {} }

private let isOver = Atomic<Bool>(false)

/// Starts a thread under a name that the kernel knows.
func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) {
    let thread = Thread(block: body)
    thread.name = name
    thread.start()
}

@main
struct AgentFixture {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else { fatalError("usage: AgentFixture MODE STORE [NUMBER]") }
        let (mode, store) = (arguments[1], arguments[2])
        if mode == "refused" { return try stall(store: store, refused: arguments[3]) }
        if mode == "end" { return try stall(store: store, endingBy: arguments[3]) }
        let number = arguments.count > 3 ? Int(arguments[3]) ?? 1 : 1

        var configuration = StallMonitor.Configuration(
            app: "fixture", version: "7.1", store: store)
        if mode == "threads" { configuration.threads = .all }
        let monitor = try StallMonitor.start(configuration)
        let loop = EventRunLoop.main
        monitor.watch(loop, as: "main", threshold: .milliseconds(200))
        monitor.onStall { report in
            say(
                "stall \(report.id) \(report.samples.first?.frames.compactMap(\.function).first ?? "?")"
            )
        }

        switch mode {
        case "stalls":
            var left = number
            let timer = LoopTimer(after: .milliseconds(50), every: .milliseconds(100)) { timer in
                monitor.withActivity("planned") { plannedStall() }
                left -= 1
                guard left == 0 else { return }
                timer.invalidate()
                // Once more around, so that the last stall has ended when the loop stops.
                loop.add(LoopTimer(after: .milliseconds(50)) { _ in loop.stop() }, toMode: .common)
            }
            loop.add(timer, toMode: .common)
            loop.run()
            monitor.stop()
        case "hang":
            loop.add(
                LoopTimer(after: .milliseconds(20)) { _ in
                    say("hanging")
                    plannedHang()
                }, toMode: .common)
            loop.run()
        case "leave":
            loop.add(
                LoopTimer(after: .milliseconds(20)) { _ in
                    plannedStall()
                    exit(0)
                }, toMode: .common)
            loop.run()
        case "threads":
            for number in 0..<3 { startThread("parked-\(number)") { parkedWork() } }
            startThread("busy") { busyWork() }
            loop.add(
                LoopTimer(after: .milliseconds(200)) { _ in
                    usleep(1_500_000)
                    isOver.store(true, ordering: .relaxed)
                    loop.stop()
                }, toMode: .common)
            loop.run()
            monitor.stop()
        case "idle":
            say("idle")
            _ = loop.run(mode: .default, for: .seconds(number))
            monitor.stop()
        default:
            fatalError("unknown mode \(mode)")
        }
        say("done")
    }
}

/// Unbuffered, so that a test reads it at once.
func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(1, bytes, bytes.count)
}
