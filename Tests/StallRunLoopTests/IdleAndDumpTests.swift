import CLinux
import LoopConformance
import StallModel
import StallRunLoop
import Testing

/// Goal: idle work comes one unit a sleep, and the dump tells what is in a loop.
@Suite struct IdleAndDumpTests {
    @Test func `idle units run in order, one a pass, with everything else in between`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            loop.add(LoopSource { _ in }, toMode: .default)
            for number in 1...3 {
                loop.performWhenIdle {
                    log.append("idle\(number)")
                    if number == 3 { loop.stop() }
                    loop.perform { log.append("block\(number)") }
                }
            }
            loop.run()
            #expect(log == ["idle1", "block1", "idle2", "block2", "idle3", "block3"])
        }
    }

    @Test func `idle work of the default mode waits while the loop tracks`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            loop.add(LoopSource { _ in }, toMode: .common)
            loop.performWhenIdle {
                log.append("idle")
                loop.stop()
            }
            loop.perform(after: .milliseconds(1), inMode: .common) {
                log.append("timer")
                loop.stop()
            }
            loop.run(mode: .tracking)
            #expect(log == ["timer"])
            loop.run()
            #expect(log == ["timer", "idle"])
        }
    }

    @Test func `the dump names modes, items, signals and due times`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let source = LoopSource(order: 3) { _ in }
            source.signal()
            loop.add(source, toMode: .default)
            loop.add(
                LoopTimer(after: .seconds(1_000), every: .seconds(2)) { _ in }, toMode: "custom")
            loop.add(
                LoopObserver(activities: [.entry, .exit], repeats: false) { _, _ in },
                toMode: "custom")
            let lines = loop.debugDescription.split(separator: "\n")
            #expect(lines[0] == "run loop of thread \(loop.thread.rawValue): not running")
            #expect(lines[1] == "common modes: default, tracking")
            #expect(lines[2] == "mode custom")
            #expect(lines[3] == "  observer, order 0, entry|exit, once")
            #expect(lines[4].hasPrefix("  timer, due in 999"))
            #expect(lines[4].hasSuffix("every 2000.0 ms"))
            #expect(lines[5...] == ["mode default", "  source, order 3, signalled"])
        }
    }
}
