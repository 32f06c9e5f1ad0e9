// Rows T1 to T13: timers.

extension Scenario {
    static let timerScenarios = [
        Scenario("T1", "one-shot timer only, returnAfter") { stage in
            stage.watch()
            let timer = stage.timer(40) { _ in stage.log("tmr@\(stage.now)") }
            stage.loop.add(timer, "default")
            stage.run(150, once: true)
            stage.log("valid=\(timer.isValid)")
        },
        Scenario("T2", "one-shot timer and idle source, returnAfter: a timer is not a source") {
            stage in
            stage.watch()
            stage.keep()
            stage.loop.add(stage.timer(40) { _ in stage.log("tmr@\(stage.now)") }, "default")
            stage.run(100, once: true)
        },
        Scenario("T3", "default-mode and common-mode timer while private and common modes run") {
            stage in
            stage.watch("m")
            stage.keep("m")
            stage.loop.addCommonMode("c")
            stage.keep("c")
            let a = stage.timer(30, every: 30) { _ in stage.log("defT") }
            let b = stage.timer(40, every: 30) { _ in stage.log("comT") }
            stage.loop.add(a, "default")
            stage.loop.add(b, "common")
            stage.log("//")
            stage.run("m", 80)
            stage.log("//")
            stage.run("c", 55)
            b.invalidate()
            stage.log("//")
            stage.run(20)
            a.invalidate()
        },
        Scenario("T4", "repeating timer whose first callback blocks: skips, keeps its phase") {
            stage in
            var count = 0
            let timer = stage.timer(20, every: 20) { timer in
                stage.log("f@\(stage.now)")
                count += 1
                if count == 1 { stage.pause(70) }
                if count == 4 { timer.invalidate() }
            }
            stage.loop.add(timer, "default")
            stage.run(400)
        },
        // The original row uses equal dates, whose order CFRunLoop decides by sub-microsecond rounding.
        Scenario("T5", "due timers fire by date; one added by a callback waits for the next pass") {
            stage in
            stage.watch()
            let late = stage.timer(22) { _ in stage.log("late") }
            let first = stage.timer(18) { _ in stage.log("first") }
            let second = stage.timer(20) { _ in
                stage.log("second")
                stage.loop.add(stage.timer(-1000) { _ in stage.log("added-in-cb") }, "default")
            }
            for timer in [late, first, second] { stage.loop.add(timer, "default") }
            stage.pause(40)
            stage.run(150)
        },
        Scenario("T6", "timer callback invalidates b and removes c, both due") { stage in
            stage.watch()
            stage.keep()
            let b = stage.timer(11) { _ in stage.log("b") }
            let c = stage.timer(12) { _ in stage.log("c") }
            let a = stage.timer(10) { _ in
                stage.log("a(invalidates_b,_removes_c)")
                b.invalidate()
                stage.loop.remove(c, "default")
            }
            for timer in [a, b, c] { stage.loop.add(timer, "default") }
            stage.pause(30)
            stage.run(50)
            stage.log("b.valid=\(b.isValid) c.valid=\(c.isValid)")
        }
        .allowingSpuriousWakeUps(),
        Scenario("T7", "next fire date set in the callback: later is honoured, earlier ignored") {
            stage in
            var count = 0
            let timer = stage.timer(20, every: 50) { timer in
                count += 1
                stage.log("f@\(stage.now)")
                if count == 1 { stage.redate(timer, 100) }
                if count == 2 { stage.redate(timer, -1000) }
                if count == 4 { timer.invalidate() }
            }
            stage.loop.add(timer, "default")
            stage.run(500)
        },
        Scenario(
            "T8", "tolerance of 100 ms on a 40 ms timer; clamping",
            better: (
                "the Linux CFRunLoop ignores tolerances; documented are coalescing and half the interval",
                "tol100@80 tol0@80 =finished@80 // half=true negative=0.0"
            )
        ) { stage in
            let a = stage.timer(40) { _ in stage.log("tol100@\(stage.now)") }
            let b = stage.timer(80) { _ in stage.log("tol0@\(stage.now)") }
            a.tolerance = stage.seconds(100)
            stage.loop.add(a, "default")
            stage.loop.add(b, "default")
            stage.run(300)
            let repeating = stage.timer(1000, every: 100) { _ in }
            repeating.tolerance = 10
            stage.log("//")
            stage.log("half=\(abs(repeating.tolerance - stage.seconds(50)) < 1e-6)")
            repeating.tolerance = -1
            stage.log("negative=\(repeating.tolerance)")
        },
        Scenario("T9", "timer added from another thread, without wake-up") { stage in
            stage.watch()
            stage.keep()
            let helper = stage.after(30) {
                let timer = stage.timer(30) { _ in stage.log("tmr@\(stage.now)") }
                stage.log("add")
                stage.loop.add(timer, "default")
            }
            stage.run(120)
            helper.join()
        },
        Scenario("T10", "next fire date set from another thread") { stage in
            stage.keep()
            let timer = stage.timer(1_000_000) { _ in stage.log("tmr@\(stage.now)") }
            stage.loop.add(timer, "default")
            let helper = stage.after(30) { stage.redate(timer, 20) }
            stage.watch()
            stage.run(100)
            helper.join()
        },
        Scenario("T11", "nested run in a repeating timer's callback") { stage in
            stage.watch()
            stage.keep()
            var count = 0
            let timer = stage.timer(20, every: 20) { timer in
                count += 1
                stage.log("outer\(count){")
                if count == 1 {
                    stage.run(70)
                    timer.invalidate()
                }
                stage.log("}")
            }
            stage.loop.add(timer, "default")
            stage.run(120)
        },
        Scenario("T12", "repeating timer while the loop does not run for 100 ms") { stage in
            stage.keep()
            let timer = stage.timer(20, every: 20) { _ in stage.log("f@\(stage.now)") }
            stage.loop.add(timer, "default")
            stage.run(50)
            stage.log("//")
            stage.pause(100)
            stage.log("//")
            stage.run(60)
            timer.invalidate()
        },
        Scenario("T13", "negative interval; adding twice") { stage in
            let timer = stage.timer(20, every: -3000) { _ in stage.log("f") }
            stage.log("interval=\(timer.interval)")
            stage.loop.add(timer, "default")
            stage.loop.add(timer, "default")
            stage.run(100)
            let tiny = stage.loop.timer(in: 0.01, every: 1e-9) { _ in }
            stage.log("tiny=\(tiny.interval)")
        },
    ]
}

extension Scenario {
    func allowingSpuriousWakeUps() -> Scenario {
        var copy = self
        copy.allowsSpuriousWakeUp = true
        return copy
    }
}
