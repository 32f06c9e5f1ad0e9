// Rows P1 to P5: version-1 sources. The real loop reads eight bytes from the descriptor, so it needs eventfds.

internal import Foundation

extension Scenario {
    static let descriptorScenarios = [
        Scenario("P1", "descriptor written once") { stage in
            stage.watch()
            let descriptor = stage.eventDescriptor()
            let source = stage.loop.descriptor(descriptor, takes: true) {
                var count: UInt64 = 0
                let isEmpty = read(descriptor, &count, 8) < 0
                stage.log("src1\(isEmpty ? "(empty)" : "")@\(stage.now)")
            }
            stage.loop.add(source, "default")
            let helper = stage.after(30) { stage.write(descriptor) }
            stage.run(100, once: true)
            stage.log("//")
            stage.run(30)
            helper.join()
        },
        Scenario("P2", "three descriptors ready at once: one an iteration") { stage in
            stage.watch()
            for index in 0..<3 {
                let descriptor = stage.eventDescriptor()
                let source = stage.loop.descriptor(descriptor, takes: true) {
                    stage.log("port\(index)")
                }
                stage.loop.add(source, "default")
                stage.write(descriptor)
            }
            stage.run(40)
        },
        Scenario(
            "P3", "a pipe with 12 bytes",
            better: (
                "the Linux CFRunLoop reads eight of the user's bytes from any descriptor",
                "E T S W A pipe(ABCDEFGHIJKL) X =handledSource@0"
            )
        ) { stage in
            stage.watch()
            var ends: [CInt] = [0, 0]
            pipe(&ends)
            let input = ends[0]
            let source = stage.loop.descriptor(input, takes: false) {
                var bytes = [UInt8](repeating: 0, count: 64)
                let count = read(input, &bytes, 64)
                stage.log("pipe(\(String(decoding: bytes[..<max(0, count)], as: UTF8.self)))")
            }
            stage.loop.add(source, "default")
            _ = Foundation.write(ends[1], "ABCDEFGHIJKL", 12)
            stage.run(30, once: true)
            source.invalidate()
            close(ends[0])
            close(ends[1])
        },
        Scenario("P4", "descriptor, due timer, source and block all ready at entry") { stage in
            stage.watch()
            let descriptor = stage.eventDescriptor()
            stage.loop.add(
                stage.loop.descriptor(descriptor, takes: true) { stage.log("port") }, "default")
            stage.loop.add(stage.timer(5) { _ in stage.log("tmr") }, "default")
            let source = stage.source { stage.log("src0") }
            stage.loop.add(source, "default")
            stage.loop.perform(["default"]) { stage.log("blk") }
            source.signal()
            stage.pause(10)
            stage.write(descriptor)
            stage.run(40)
        },
        Scenario("P5", "one descriptor in two modes; signalling it does nothing") { stage in
            stage.watch()
            let descriptor = stage.eventDescriptor()
            let source = stage.loop.descriptor(descriptor, takes: true) { stage.log("port") }
            stage.loop.add(source, "default")
            stage.loop.add(source, "m2")
            stage.write(descriptor)
            stage.run("m2", 20, once: true)
            stage.log("//")
            stage.run(20, once: true)
            stage.log("//")
            source.signal()
            stage.run(20, once: true)
        },
    ]
}
