// Rows E1 to E3 (what an empty mode is) and S1 to S12 (version-0 sources).

extension Scenario {
    static let entryScenarios = [
        Scenario(
            "E1", "run in an unknown mode, in a mode with only an observer, in the common modes"
        ) { stage in
            stage.run("nomode", 1000, once: true)
            stage.watch("m")
            stage.run("m", 1000)
            stage.run("common", 1000)
        },
        Scenario("E2", "secondary thread, default mode, observer only") { stage in
            stage.watch()
            stage.run(50)
        },
        Scenario("E3", "main thread, default mode, nothing added", isMain: true) { stage in
            let observer = stage.watch()
            stage.run(50)
            observer.invalidate()
        },
    ]

    static let sourceScenarios = [
        Scenario("S1", "signalled source, returnAfterSourceHandled") { stage in
            stage.watch()
            let source = stage.source { stage.log("src0") }
            stage.loop.add(source, "default")
            source.signal()
            stage.run(50, once: true)
        },
        Scenario("S2", "signalled source, not returnAfter") { stage in
            stage.watch()
            let source = stage.source { stage.log("src0") }
            stage.loop.add(source, "default")
            source.signal()
            stage.run(50)
        },
        Scenario("S3", "timeout 0 and negative timeout, idle source") { stage in
            stage.watch()
            stage.keep()
            stage.run(0)
            stage.run(-5000, once: true)
        },
        Scenario("S4", "timeout 0 with a signalled source, returnAfter no and yes") { stage in
            stage.watch()
            let source = stage.source { stage.log("src0") }
            stage.loop.add(source, "default")
            source.signal()
            stage.run(0)
            source.signal()
            stage.run(0, once: true)
        },
        Scenario("S5", "source signalled from another thread, without wake-up") { stage in
            stage.watch()
            let source = stage.source { stage.log("src0@\(stage.now)") }
            stage.loop.add(source, "default")
            let helper = stage.after(40) {
                stage.log("signal")
                source.signal()
            }
            stage.run(150)
            helper.join()
            stage.log("//")
            stage.run(50, once: true)
        },
        Scenario("S6", "source signalled from another thread, with wake-up") { stage in
            stage.watch()
            let source = stage.source { stage.log("src0@\(stage.now)") }
            stage.loop.add(source, "default")
            let helper = stage.after(40) {
                source.signal()
                stage.loop.wakeUp()
            }
            stage.run(150, once: true)
            helper.join()
        },
        Scenario("S7", "four sources: by order, then by time of signal; with returnAfter one a run")
        { stage in
            stage.watch()
            let a = stage.source(5) { stage.log("order5") }
            let b = stage.source(-5) { stage.log("order-5") }
            let c = stage.source { stage.log("c0") }
            let d = stage.source { stage.log("d0") }
            for source in [a, b, c, d] { stage.loop.add(source, "default") }
            for source in [a, d, c, b] {
                source.signal()
                stage.pause(1)
            }
            stage.run(0)
            stage.log("//")
            for source in [a, b, c] {
                source.signal()
                stage.pause(1)
            }
            for _ in 0..<3 { stage.run(50, once: true) }
        },
        Scenario("S8", "source signals itself again; two signals count as one") { stage in
            stage.watch()
            var count = 0
            var source: (any PlayedSource)!
            source = stage.source {
                stage.log("src0")
                count += 1
                if count < 3 { source.signal() }
            }
            stage.loop.add(source, "default")
            source.signal()
            source.signal()
            stage.run(50)
            // Its handler holds it.
            source.invalidate()
        },
        Scenario("S9", "schedule and cancel: twice, remove, common, new common mode, invalidate") {
            stage in
            let source = stage.tracedSource()
            stage.loop.add(source, "default")
            stage.loop.add(source, "default")
            stage.loop.addCommonMode("c2")
            stage.loop.remove(source, "default")
            stage.log("//")
            stage.logSorted { stage.loop.add(source, "common") }
            stage.log("//")
            stage.loop.addCommonMode("c3")
            stage.log("//")
            stage.logSorted { source.invalidate() }
            stage.log("valid=\(source.isValid)")
        },
        Scenario("S10", "signal, remove, add again: the signal is kept") { stage in
            stage.watch()
            let source = stage.source { stage.log("src0") }
            stage.loop.add(source, "default")
            source.signal()
            stage.loop.remove(source, "default")
            stage.log("signalled=\(source.isSignalled)")
            stage.loop.add(source, "default")
            stage.run(0)
        },
        Scenario("S11", "source removes, or invalidates, a later signalled one of the same pass") {
            stage in
            stage.watch()
            let keep = stage.source(9)
            let b = stage.source(1) { stage.log("b") }
            let a = stage.source {
                stage.log("a(removes_b)")
                stage.loop.remove(b, "default")
            }
            for source in [keep, a, b] { stage.loop.add(source, "default") }
            a.signal()
            b.signal()
            stage.run(0)
            stage.log("//")
            let d = stage.source(3) { stage.log("d") }
            let c = stage.source(2) {
                stage.log("c(invalidates_d)")
                d.invalidate()
            }
            for source in [c, d] { stage.loop.add(source, "default") }
            c.signal()
            d.signal()
            stage.run(0)
        },
        Scenario("S12", "source signalled in a mode that does not run") { stage in
            stage.watch()
            let a = stage.source { stage.log("a") }
            let b = stage.source(1) { stage.log("b") }
            stage.loop.add(a, "default")
            stage.loop.add(b, "other")
            b.signal()
            stage.run(0)
            stage.log("signalled=\(b.isSignalled)")
            stage.run("other", 0)
        },
    ]
}
