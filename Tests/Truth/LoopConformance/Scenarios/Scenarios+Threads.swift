// Rows K1 and K2 (threads that live and end with their loop) and C1 to C4 (combinations).

internal import Dispatch

extension Scenario {
    static let threadScenarios = [
        Scenario("K1", "thread kept alive by a source; job; stop") { stage in
            let type = Unchecked(type(of: stage.loop))
            let inner = Unchecked(Box<Stage?>(nil))
            let descriptor = stage.eventDescriptor()
            let started = DispatchSemaphore(value: 0)
            let helper = stage.after(0) {
                let own = Stage(type.value.current, scale: stage.seconds(1000))
                own.run(1000)
                stage.log(own.trace.joined(separator: " "))
                own.loop.add(own.loop.descriptor(descriptor, takes: true) {}, "default")
                inner.value.value = own
                started.signal()
                own.loop.run()
                stage.log("thread-exit@\(stage.now)")
            }
            stage.pause(50)
            started.wait()
            let loop = inner.value.value!.loop
            loop.perform(["default"]) { stage.log("job@\(stage.now)") }
            loop.wakeUp()
            stage.pause(30)
            loop.stop()
            helper.join()
        },
        Scenario("K2", "thread ends with a live source and a queued block") { stage in
            let type = Unchecked(type(of: stage.loop))
            let helper = stage.after(0) {
                let own = type.value.current
                let source = own.source(
                    order: 0, scheduling: { stage.log("\($0 ? "schedule" : "cancel")(\($1))") }, {})
                own.add(source, "default")
                own.perform(["default"]) { stage.log("never-run") }
                stage.log("thread-ends")
            }
            helper.join()
            stage.pause(20)
            stage.log("joined")
        },
    ]

    static let combinedScenarios = [
        Scenario("C1", "source invalidates itself, the last one") { stage in
            stage.watch()
            var source: (any PlayedSource)!
            source = stage.source {
                stage.log("src0(invalidates_itself)")
                source.invalidate()
            }
            stage.loop.add(source, "default")
            source.signal()
            stage.run(50)
        },
        Scenario("C2", "timer adds and signals a source, returnAfter") { stage in
            stage.watch()
            let timer = stage.timer(20) { _ in
                stage.log("tmr(adds_source)")
                let source = stage.source { stage.log("src0") }
                stage.loop.add(source, "default")
                source.signal()
            }
            stage.loop.add(timer, "default")
            stage.run(60, once: true)
        },
        Scenario("C3", "precedence of handledSource, timedOut, stopped") { stage in
            let slow = stage.source {
                stage.log("src0")
                stage.pause(25)
            }
            stage.loop.add(slow, "default")
            slow.signal()
            stage.run(10, once: true)
            let stopping = stage.source {
                stage.loop.stop()
                stage.pause(25)
            }
            stage.loop.add(stopping, "default")
            stopping.signal()
            stage.log("//")
            stage.run(10)
            stage.run(20)
        },
        Scenario("C4", "returnAfter with a due timer and a signalled source") { stage in
            stage.watch()
            let source = stage.source { stage.log("src0") }
            stage.loop.add(source, "default")
            stage.loop.add(stage.source(9), "default")
            source.signal()
            stage.loop.add(stage.timer(-1000) { _ in stage.log("tmr") }, "default")
            stage.run(50, once: true)
            stage.log("//")
            stage.run(50, once: true)
        },
    ]
}
