// Rows B1 to B10: performed blocks.

extension Scenario {
    static let blockScenarios = [
        Scenario("B1", "block performed from another thread, without wake-up") { stage in
            stage.watch()
            stage.keep()
            let helper = stage.after(40) {
                stage.loop.perform(["default"]) { stage.log("blk@\(stage.now)") }
                stage.log("posted")
            }
            stage.run(120)
            helper.join()
        },
        Scenario("B2", "block performed from another thread, with wake-up") { stage in
            stage.watch()
            stage.keep()
            let helper = stage.after(40) {
                stage.loop.perform(["default"]) { stage.log("blk@\(stage.now)") }
                stage.loop.wakeUp()
            }
            stage.run(120)
            helper.join()
        },
        Scenario(
            "B3", "block performed before the run, no source: it keeps the mode from being empty"
        ) { stage in
            stage.watch()
            stage.loop.perform(["default"]) { stage.log("blk") }
            stage.run(50)
            stage.log("//")
            stage.loop.perform(["default"]) { stage.log("blk") }
            stage.run(50, once: true)
            stage.log("//")
            stage.loop.perform(["default"]) { stage.log("blk") }
            stage.run(0, once: true)
        },
        Scenario("B4", "block performed by a block, without and with wake-up") { stage in
            stage.watch()
            stage.keep()
            stage.loop.perform(["default"]) {
                stage.log("b1")
                stage.loop.perform(["default"]) { stage.log("b2@\(stage.now)") }
            }
            stage.run(50)
            stage.log("//")
            stage.loop.perform(["default"]) {
                stage.log("b1")
                stage.loop.perform(["default"]) { stage.log("b2") }
                stage.loop.wakeUp()
            }
            stage.run(50)
        },
        Scenario("B5", "blocks for several modes: filtering, and the order of what is left") {
            stage in
            stage.keep()
            stage.keep("m")
            let blocks: [([String], String)] = [
                (["m"], "m1"), (["default"], "d1"), (["common"], "c1"), (["m"], "m2"),
                (["m", "default"], "md"), (["m"], "m3"),
            ]
            for (modes, name) in blocks { stage.loop.perform(modes) { stage.log(name) } }
            stage.run(0)
            stage.loop.perform(["m"]) { stage.log("m4") }
            stage.log("//")
            stage.run("m", 0)
        },
        Scenario("B6", "block, and a source that performs a block, returnAfter") { stage in
            stage.watch()
            let source = stage.source {
                stage.log("src0")
                stage.loop.perform(["default"]) { stage.log("blkFromSrc") }
            }
            stage.loop.add(source, "default")
            source.signal()
            stage.loop.perform(["default"]) { stage.log("blk1") }
            stage.run(30, once: true)
        },
        Scenario("B7", "block performed by a timer callback") { stage in
            stage.watch()
            stage.keep()
            let timer = stage.timer(20) { _ in
                stage.log("tmr")
                stage.loop.perform(["default"]) { stage.log("blkFromTmr") }
            }
            stage.loop.add(timer, "default")
            stage.run(50)
        },
        Scenario("B8", "block performed in beforeWaiting; idle work with wake-up") { stage in
            stage.keep()
            let first = stage.observer(32) { _, _ in
                stage.log("W(post)")
                stage.loop.perform(["default"]) { stage.log("blkFromW@\(stage.now)") }
            }
            stage.loop.add(first, "default")
            stage.run(40)
            first.invalidate()
            stage.log("//")
            var count = 0
            let second = stage.observer(32) { _, _ in
                guard count < 3 else { return stage.log("idle-done") }
                count += 1
                stage.log("idle\(count)")
                stage.loop.wakeUp()
            }
            stage.loop.add(second, "default")
            stage.watch()
            stage.run(40)
        },
        Scenario("B9", "block that performs itself again, with wake-up") { stage in
            stage.keep()
            var count = 0
            func again() {
                stage.log("r\(count)")
                count += 1
                guard count < 4 else { return }
                stage.loop.perform(["default"]) { again() }
                stage.loop.wakeUp()
            }
            stage.watch()
            stage.loop.perform(["default"]) { again() }
            stage.run(30)
        },
        Scenario("B10", "block performed in each activity") { stage in
            stage.watch()
            stage.keep()
            let observer = stage.observer(1 | 2 | 4 | 64 | 128, order: 1) { _, activity in
                stage.loop.perform(["default"]) { stage.log("blk(\(Stage.letter(activity)))") }
            }
            stage.loop.add(observer, "default")
            stage.run(20)
            stage.log("//")
            observer.invalidate()
            stage.run(20)
        },
    ]
}
