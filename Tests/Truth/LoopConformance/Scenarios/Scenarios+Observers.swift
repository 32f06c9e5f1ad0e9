// Rows O1 to O5: observers.

extension Scenario {
    static let observerScenarios = [
        Scenario("O1", "observers by order, then as added") { stage in
            stage.keep()
            for (index, order) in [0, 5, -5, 0, 2_000_000].enumerated() {
                let observer = stage.observer(2, order: order) { _, _ in
                    stage.log("#\(index)(\(order))")
                }
                stage.loop.add(observer, "default")
            }
            stage.run(0)
        },
        Scenario("O2", "an observer that does not repeat") { stage in
            stage.keep()
            let observer = stage.observer(0x0fff_ffff, repeats: false) { observer, activity in
                stage.log("once:\(Stage.letter(activity)) valid=\(observer.isValid)")
            }
            stage.loop.add(observer, "default")
            stage.run(0)
            stage.log("valid=\(observer.isValid)")
            stage.run(0)
        },
        Scenario("O3", "observer removes b, invalidates c, adds d") { stage in
            stage.keep()
            func logging(_ name: String, _ order: Int) -> any PlayedItem {
                stage.observer(2 | 4, order: order) { _, activity in
                    stage.log("\(name).\(Stage.letter(activity))")
                }
            }
            let (b, c, d) = (logging("b", 1), logging("c", 2), logging("d", 3))
            let a = stage.observer(2 | 4) { _, activity in
                stage.log("a.\(Stage.letter(activity))")
                guard activity == 2 else { return }
                stage.loop.remove(b, "default")
                c.invalidate()
                stage.loop.add(d, "default")
            }
            for observer in [a, b, c] { stage.loop.add(observer, "default") }
            stage.run(0)
        },
        Scenario("O4", "common observer and a later common mode; one observer, two loops") {
            stage in
            stage.keep()
            let observer = stage.observer(1 | 128) { _, activity in
                stage.log(Stage.letter(activity))
            }
            stage.loop.add(observer, "common")
            stage.loop.addCommonMode("later")
            stage.keep("later")
            stage.run("later", 0)
            stage.loop.remove(observer, "common")
            stage.run("later", 0)
            stage.log("//")
            stage.loop.add(observer, "default")
            let type = type(of: stage.loop)
            let helper = stage.after(0) {
                let other = type.current
                other.add(observer, "default")
                stage.log("added-to-other=\(other.contains(observer, "default"))")
            }
            helper.join()
        },
        Scenario("O5", "timer added in the entry observer") { stage in
            stage.keep()
            let exit = stage.observer(128, repeats: false) { _, _ in stage.log("X(once)") }
            let entry = stage.observer(1, repeats: false) { _, _ in
                stage.log("E{")
                stage.loop.add(stage.timer(0) { _ in stage.log("tmr-added-in-E") }, "default")
                stage.log("}")
            }
            stage.loop.add(exit, "default")
            stage.loop.add(entry, "default")
            stage.watch()
            stage.run(30)
        },
    ]
}
