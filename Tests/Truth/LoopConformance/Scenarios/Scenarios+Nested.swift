// Rows N1 to N6: nested runs.

extension Scenario {
    static let nestedScenarios = [
        Scenario("N1", "nested run in another mode from a source; the current mode") { stage in
            stage.keep()
            stage.keep("inner")
            stage.watch()
            stage.watch("inner")
            let source = stage.source {
                stage.log("src0[\(stage.loop.currentMode ?? "nil")]{")
                stage.run("inner", 20)
                stage.log("}[\(stage.loop.currentMode ?? "nil")]")
            }
            stage.loop.add(source, "default")
            source.signal()
            stage.log("mode=\(stage.loop.currentMode ?? "nil")")
            stage.run(50, once: true)
            stage.log("mode=\(stage.loop.currentMode ?? "nil")")
        },
        Scenario("N2", "nested run in an observer: the firing observer is not re-entered") {
            stage in
            stage.keep()
            var hasNested = false
            let outer = stage.observer(0x0fff_ffff) { _, activity in
                stage.log("o.\(Stage.letter(activity))")
                guard activity == 2, !hasNested else { return }
                hasNested = true
                stage.log("{")
                stage.run(20)
                stage.log("}")
            }
            let plain = stage.observer(0x0fff_ffff, order: 1) { _, activity in
                stage.log("p.\(Stage.letter(activity))")
            }
            stage.loop.add(outer, "default")
            stage.loop.add(plain, "default")
            stage.run(40)
        },
        Scenario("N3", "nested run in a block: the outer pass keeps its blocks") { stage in
            stage.keep()
            stage.loop.perform(["default"]) {
                stage.log("b1{")
                stage.run(0)
                stage.log("}")
            }
            stage.loop.perform(["default"]) { stage.log("b2") }
            stage.loop.perform(["default"]) { stage.log("b3") }
            stage.run(0)
        },
        Scenario("N4", "nested run in a source while a second one is signalled") { stage in
            stage.watch()
            stage.keep()
            let first = stage.source {
                stage.log("s{")
                stage.run(0)
                stage.log("}")
            }
            let second = stage.source(1) { stage.log("s2") }
            for source in [first, second] {
                stage.loop.add(source, "default")
                source.signal()
            }
            stage.run(0)
        },
        Scenario("N5", "nested run in a timer callback while a second one is due") { stage in
            stage.keep()
            let a = stage.timer(10) { _ in
                stage.log("a{")
                stage.run(20)
                stage.log("}")
            }
            let b = stage.timer(12, every: 500) { _ in stage.log("b") }
            stage.loop.add(a, "default")
            stage.loop.add(b, "default")
            stage.pause(20)
            stage.run(40)
        },
        Scenario("N6", "stop from another thread while a nested run is active") { stage in
            stage.keep()
            let helper = stage.after(30) { stage.loop.stop() }
            stage.loop.perform(["default"]) {
                stage.log("outer{")
                stage.run(1000)
                stage.log("}")
            }
            stage.run(80)
            helper.join()
        },
    ]
}
