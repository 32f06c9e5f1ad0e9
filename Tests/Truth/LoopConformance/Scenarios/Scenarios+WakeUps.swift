// Rows W1 to W6: wakeUp.

import Dispatch

extension Scenario {
    static let wakeUpScenarios = [
        Scenario("W1", "wake-up with nothing to do; five wake-ups coalesce") { stage in
            stage.watch()
            stage.keep()
            let areMade = DispatchSemaphore(value: 0)
            // Both loops rightly wake again for one that comes after the next iteration has begun. On a busy machine
            // the kernel lets the loop run before the helper has made the second of the five.
            var wakeUps = 0
            let hold = stage.observer(64, order: 1) { _, _ in
                wakeUps += 1
                if wakeUps == 2 { _ = areMade.wait(timeout: .now() + 1) }
            }
            stage.loop.add(hold, "default")
            let helper = stage.after(20) {
                stage.loop.wakeUp()
                stage.pause(20)
                for _ in 0..<5 { stage.loop.wakeUp() }
                areMade.signal()
            }
            stage.run(70)
            helper.join()
        },
        Scenario("W2", "wake-up before the run") { stage in
            stage.watch()
            stage.keep()
            stage.loop.wakeUp()
            stage.run(40)
        },
        Scenario("W3", "last source invalidated from another thread during the sleep") { stage in
            stage.watch()
            let source = stage.keep()
            let helper = stage.after(20) {
                source.invalidate()
                stage.log("invalidated")
                stage.pause(30)
                stage.log("wakeup")
                stage.loop.wakeUp()
            }
            stage.run(200)
            helper.join()
        },
        Scenario("W4", "isWaiting") { stage in
            stage.keep()
            var (asleep, inCallout) = (false, true)
            let helper = stage.after(20) { asleep = stage.loop.isWaiting }
            stage.loop.perform(["default"]) { inCallout = stage.loop.isWaiting }
            stage.run(40)
            helper.join()
            stage.log("asleep=\(asleep) callout=\(inCallout) after=\(stage.loop.isWaiting)")
        },
        Scenario("W5", "wake-up between runs, and from the exit observer") { stage in
            stage.watch()
            stage.keep()
            stage.run(10)
            stage.log("//")
            stage.loop.wakeUp()
            stage.run(30)
            stage.log("//")
            let observer = stage.observer(128, repeats: false, order: 1) { _, _ in
                stage.loop.wakeUp()
            }
            stage.loop.add(observer, "default")
            stage.run(10)
            stage.run(30)
        },
        Scenario("W6", "wake-up from a timer callback, afterWaiting and beforeTimers") { stage in
            stage.keep()
            let timer = stage.timer(20) { _ in
                stage.log("tmr(wake)")
                stage.loop.wakeUp()
            }
            stage.loop.add(timer, "default")
            stage.watch()
            stage.run(50)
            stage.log("//")
            var count = 0
            let after = stage.observer(64, order: 1) { _, _ in
                if count < 2 { stage.loop.wakeUp() }
                count += 1
            }
            stage.loop.add(after, "default")
            stage.run(30)
            stage.log("//")
            let before = stage.observer(2, repeats: false, order: 1) { _, _ in stage.loop.wakeUp() }
            stage.loop.add(before, "default")
            stage.run(30)
        },
    ]
}
