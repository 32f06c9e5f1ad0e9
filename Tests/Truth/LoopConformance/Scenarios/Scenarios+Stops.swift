// Rows X1 to X7: stop.

extension Scenario {
    static let stopScenarios = [
        Scenario("X1", "stop in a timer callback") { stage in
            stage.watch()
            stage.keep()
            let timer = stage.timer(20) { _ in
                stage.log("tmr(stop)")
                stage.loop.stop()
                stage.log("after-stop")
            }
            stage.loop.add(timer, "default")
            stage.run(200)
        },
        Scenario("X2", "stop from another thread") { stage in
            stage.watch()
            stage.keep()
            let helper = stage.after(30) { stage.loop.stop() }
            stage.run(200)
            helper.join()
        },
        Scenario("X3", "stop before the run") { stage in
            stage.watch()
            stage.keep()
            stage.loop.stop()
            stage.run(40)
        },
        Scenario("X4", "stop in a nested run") { stage in
            stage.keep()
            stage.watch()
            stage.loop.perform(["default"]) {
                stage.log("outer{")
                stage.loop.perform(["default"]) {
                    stage.log("stop")
                    stage.loop.stop()
                }
                stage.run(200)
                stage.log("}")
            }
            stage.run(50)
        },
        Scenario(
            "X5", "stop in a block, and in the beforeWaiting, entry and exit observers",
            allowsSpuriousWakeUp: true
        ) { stage in
            stage.keep()
            stage.watch()
            stage.loop.perform(["default"]) {
                stage.loop.stop()
                stage.log("stop-in-block")
            }
            stage.run(200)
            for activity: UInt in [32, 1] {
                stage.log("//")
                let observer = stage.observer(activity, order: 1) { _, _ in stage.loop.stop() }
                stage.loop.add(observer, "default")
                stage.run(200)
                observer.invalidate()
            }
            stage.log("//")
            let observer = stage.observer(128, repeats: false, order: 1) { _, _ in stage.loop.stop()
            }
            stage.loop.add(observer, "default")
            stage.run(20)
            stage.run(20)
        },
        Scenario("X6", "stop in a source with returnAfter; the next run") { stage in
            stage.watch()
            let source = stage.source {
                stage.log("src0(stop)")
                stage.loop.stop()
            }
            stage.loop.add(source, "default")
            source.signal()
            stage.run(100, once: true)
            stage.log("//")
            stage.run(30)
        },
        Scenario("X7", "run() until stop") { stage in
            stage.keep()
            let timer = stage.timer(20, every: 20) { _ in
                stage.log("tmr@\(stage.now)")
                guard stage.now >= 60 else { return }
                stage.log("stop")
                stage.loop.stop()
            }
            stage.loop.add(timer, "default")
            stage.loop.run()
            stage.log("returned@\(stage.now)")
        },
    ]
}
