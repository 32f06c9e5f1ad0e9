// A program with an agent in it, for tests that need a process of its own: to read its store from outside, to kill it.
//
//     AgentFixture stalls STORE COUNT    stalls COUNT times for 400 ms in plannedStall(), between healthy iterations
//     AgentFixture hang STORE            says "hanging" and never returns from plannedHang()
//     AgentFixture idle STORE SECONDS    says "idle" and waits for nothing; ends after SECONDS
//     AgentFixture leave STORE           stalls once and exits without stopping the agent

import Foundation
import StallAgent

@inline(never) func plannedStall() { usleep(400_000) }

@inline(never) func plannedHang() { while true { sleep(1000) } }

@main
struct AgentFixture {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else { fatalError("usage: AgentFixture MODE STORE [NUMBER]") }
        let (mode, store) = (arguments[1], arguments[2])
        let number = arguments.count > 3 ? Int(arguments[3]) ?? 1 : 1

        let monitor = try StallMonitor.start(.init(app: "fixture", version: "7.1", store: store))
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
