// Rows G1 to G5: the main dispatch queue, and run loops inside of dispatch queues.

internal import Foundation

extension Scenario {
    static let dispatchScenarios = [
        Scenario("G1", "main queue: two blocks and one of a block; returnAfter", isMain: true) {
            stage in
            let observer = stage.watch()
            DispatchQueue.main.async { stage.log("gcd1") }
            DispatchQueue.main.async {
                stage.log("gcd2")
                DispatchQueue.main.async { stage.log("gcd3") }
            }
            stage.run(40)
            stage.log("//")
            DispatchQueue.main.async { stage.log("gcd") }
            stage.run(40, once: true)
            observer.invalidate()
        },
        Scenario("G2", "run inside of a main-queue block", isMain: true) { stage in
            let observer = stage.watch()
            let keep = stage.keep()
            DispatchQueue.main.async {
                stage.log("gcd{")
                DispatchQueue.main.async { stage.log("INNER-GCD@\(stage.now)") }
                stage.loop.perform(["default"]) { stage.log("INNER-BLK") }
                stage.run(50)
                stage.log("}")
            }
            stage.run(100)
            observer.invalidate()
            keep.invalidate()
        },
        Scenario("G3", "a private mode does not drain the main queue", isMain: true) { stage in
            let keep = stage.keep("priv")
            DispatchQueue.main.async { stage.log("gcd") }
            stage.run("priv", 40)
            stage.log("//")
            stage.run(20)
            keep.invalidate()
        },
        Scenario("G4", "serial queue whose block runs a loop: later blocks of the queue starve") {
            stage in
            playQueue(DispatchQueue(label: "serial"), stage)
        },
        Scenario("G5", "concurrent queue, same: they do not") { stage in
            playQueue(DispatchQueue(label: "concurrent", attributes: .concurrent), stage)
        },
    ]

    /// Beyond the golden table, run on both loops and compared: the main queue has a turn before the sleep, unless it
    /// had the last one.
    package static let furtherMainScenarios = [
        Scenario("main queue", "blocks that come in a timer, a block, and a source", isMain: true) {
            stage in
            let observer = stage.watch()
            let keep = stage.keep()
            let timer = stage.timer(10) { _ in
                stage.log("tmr")
                DispatchQueue.main.async {
                    stage.log("gcd1")
                    DispatchQueue.main.async { stage.log("gcd2") }
                }
            }
            stage.loop.add(timer, "default")
            stage.run(40)
            let source = stage.source {
                stage.log("src")
                DispatchQueue.main.async { stage.log("gcd3") }
            }
            stage.loop.add(source, "default")
            source.signal()
            stage.loop.perform(["default"]) { DispatchQueue.main.async { stage.log("gcd4") } }
            stage.run(40)
            for item in [observer, keep, timer, source] as [any PlayedItem] { item.invalidate() }
        }
    ]

    /// A block of `queue` runs a loop for 120 ms. Meanwhile another block goes to the queue, and one to the loop.
    private static func playQueue(_ queue: DispatchQueue, _ stage: Stage) {
        let type = Unchecked(type(of: stage.loop))
        let (started, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let inner = Unchecked(Box<Stage?>(nil))
        queue.async {
            inner.value.value = Stage(type.value.current, scale: stage.seconds(1000))
            let keep = inner.value.value!.keep()
            started.signal()
            inner.value.value!.run(120)
            // The queue's thread lives on, and its loop with it.
            keep.invalidate()
            done.signal()
        }
        started.wait()
        stage.pause(10)
        let before = stage.now
        queue.async {
            stage.log("gcdAsync@\(stage.now - before)")
            done.signal()
        }
        stage.pause(5)
        inner.value.value!.loop.perform(["default"]) {
            stage.log("performBlock@\(stage.now - before)")
        }
        inner.value.value!.loop.wakeUp()
        done.wait()
        done.wait()
    }
}
