import CLinux
import Glibc
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: idle work comes one unit a sleep, and the dump tells what is in a loop.
@Suite struct IdleAndDumpTests {
    @Test func `idle units run in order, one a pass, with everything else in between`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            loop.add(LoopSource { _ in }, toMode: .default)
            for number in 1...3 {
                loop.performWhenIdle {
                    log.append("idle\(number)")
                    if number == 3 { loop.stop() }
                    loop.perform { log.append("block\(number)") }
                }
            }
            loop.run()
            #expect(log == ["idle1", "block1", "idle2", "block2", "idle3", "block3"])
        }
    }

    @Test func `idle work of all common modes leaves nothing in them`() {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .common)
            nonisolated(unsafe) var log: [LoopMode?] = []
            for mode in [LoopMode.tracking, .default] {
                loop.performWhenIdle(inMode: .common) { log.append(loop.currentMode) }
                #expect(loop.debugDescription.contains("\n  observer"))
                loop.run(mode: mode, for: .milliseconds(1))
                #expect(!loop.debugDescription.contains("\n  observer"))
            }
            #expect(log == [.tracking, .default])
        }
    }

    @Test func `an idle unit that ran is let go of, although others wait`() {
        onFreshThread {
            final class Token: Sendable {}
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .default)
            weak var first: Token?
            do {
                let token = Token()
                first = token
                loop.performWhenIdle { withExtendedLifetime(token) { loop.stop() } }
            }
            nonisolated(unsafe) var ran = 0
            for _ in 0..<3 { loop.performWhenIdle { ran += 1 } }
            #expect(loop.run(mode: .default, for: .seconds(20)) == .stopped)
            #expect(first == nil)
            #expect(ran == 0)
        }
    }

    @Test func `idle work of the default mode waits while the loop tracks`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            loop.add(LoopSource { _ in }, toMode: .common)
            loop.performWhenIdle {
                log.append("idle")
                loop.stop()
            }
            loop.perform(after: .milliseconds(1), inMode: .common) {
                log.append("timer")
                loop.stop()
            }
            loop.run(mode: .tracking)
            #expect(log == ["timer"])
            loop.run()
            #expect(log == ["timer", "idle"])
        }
    }

    @Test func `the dump names modes, items, signals, due times and what waits`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let source = LoopSource(order: 3) { _ in }
            source.signal()
            loop.add(source, toMode: .default)
            loop.add(
                LoopTimer(after: .seconds(1_000), every: .seconds(2)) { _ in }, toMode: "custom")
            loop.add(
                LoopTimer(after: .seconds(3_000), tolerance: .seconds(1)) { _ in },
                toMode: "custom")
            loop.add(
                LoopObserver(activities: [.entry, .exit], repeats: false) { _, _ in },
                toMode: "custom")
            loop.add(LoopSource { _ in }, toMode: .common)
            for _ in 0..<300 { loop.perform {} }
            loop.perform(inModes: [.default, "other"]) {}
            loop.perform(inMode: .common) {}
            loop.performWhenIdle(inMode: "custom") {}
            #expect(
                Self.withoutNumbersOfTheMoment(loop.debugDescription) == """
                    run loop of thread N: not running
                    wake-ups: dropped, one pending
                    descriptors: wake-up N, no timer, delivery strict
                    common modes: default, tracking
                    common items: 1 sources, 0 descriptors, 0 observers, 0 timers, 1 blocks waiting
                    mode custom
                      observer, order 0, entry|exit, once
                      observer, order 9223372036854775807, beforeWaiting
                      timer, due in 999 s and a bit, every 2000.0 ms
                      timer, due in 2999 s and a bit, tolerance 1000.0 ms
                      wakes for timers in 999 s and a bit
                      idle work: 1 waiting
                    mode default, common
                      source, order 3, signalled
                      source, order 0
                      blocks: 301 waiting
                    mode other, without items
                      blocks: 1 waiting
                    """)
        }
    }

    @Test func `the dump of a running loop tells what runs, how deep, and what it sleeps on`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var dump = ""
            loop.add(LoopSource { _ in }, toMode: "inner")
            loop.add(
                LoopTimer(after: .zero, every: .seconds(5)) { _ in
                    loop.perform(inMode: "inner") {
                        loop.perform(inMode: "inner") {}
                        dump = Self.withoutNumbersOfTheMoment(loop.debugDescription)
                    }
                    loop.stop()
                    loop.run(mode: "inner", for: .zero)
                }, toMode: .default)
            loop.run(mode: .default, for: .seconds(60))
            #expect(
                dump == """
                    run loop of thread N: busy in mode inner, 2 runs deep
                    wake-ups: counted
                    descriptors: wake-up N, no timer, delivery strict
                    common modes: default, tracking
                    common items: 0 sources, 0 descriptors, 0 observers, 0 timers, 0 blocks waiting
                    blocks are being run; those are not counted as waiting
                    mode default, common
                      timer, firing, every 5000.0 ms
                    mode inner, running
                      source, order 0
                      blocks: 1 waiting
                    """)
        }
    }

    @Test func `the dump calls items by their labels`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let number = stall_eventfd_create()
            defer { stall_descriptor_close(number) }
            let timer = LoopTimer(after: .seconds(1_000)) { _ in }
            let source = LoopSource { _ in }
            let observer = LoopObserver(activities: .exit) { _, _ in }
            let descriptor = DescriptorSource(descriptor: number) { _, _ in }
            timer.label = "heartbeat"
            source.label = "inbox"
            observer.label = "autosave"
            descriptor.label = "socket to the server"
            loop.add(timer, toMode: "m")
            loop.add(source, toMode: "m")
            loop.add(observer, toMode: "m")
            try loop.add(descriptor, toMode: "m")
            let dump = loop.debugDescription
            for text in [
                "timer heartbeat, due in ", "source inbox, order 0",
                "observer autosave, order 0, exit",
                "descriptor \(number) socket to the server, readable",
            ] { #expect(dump.contains(text), "\(text)") }
            timer.label = nil
            #expect(timer.label == nil && source.label == "inbox")
            #expect(loop.debugDescription.contains("timer (closure #1 in "))
        }
    }

    /// A line is an item's, and the place where a name comes is not the app's to give.
    @Test func `control characters in labels and modes are shown as such`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let mode = LoopMode("a\0b\nc")
            let first = LoopSource(order: 1) { _ in }
            first.label = "x\0y\r\nz"
            loop.add(first, toMode: mode)
            loop.add(LoopSource(order: 2) { _ in }, toMode: mode)
            let lines = loop.debugDescription.split(separator: "\n")
            #expect(lines.contains("mode a\\0b\\nc"))
            #expect(lines.contains("  source x\\0y\\r\\nz, order 1"))
            #expect(
                lines.contains { $0.hasPrefix("  source (closure #") && $0.hasSuffix(", order 2") })
        }
    }

    /// Another object may get the memory of a labelled one.
    @Test func `a label goes with its item`() {
        for number in 0..<100 {
            let timer = LoopTimer(after: .seconds(1)) { _ in }
            #expect(timer.label == nil)
            timer.label = "\(number)"
            #expect(timer.label == "\(number)")
        }
    }

    /// Stands for a class of an app.
    final class Clock: Sendable {
        func start(_ loop: EventRunLoop) {
            var ticks = 0
            loop.schedule(every: .seconds(1_000), inMode: "m") { _ in ticks += 1 }
            loop.perform(after: .seconds(2_000), inMode: "m") { [self] in tick() }
            loop.add(LoopTimer(after: .seconds(3_000)) { _ in }, toMode: "m")
        }
        func watch(_ loop: EventRunLoop, _ number: CInt) throws {
            loop.add(LoopSource { [self] _ in tick() }, toMode: "m")
            loop.add(LoopObserver(activities: .exit) { _, _ in }, toMode: "m")
            try loop.add(DescriptorSource(descriptor: number) { _, _ in }, toMode: "m")
        }
        func tick() {}
        /// Behind closures of the library.
        func wait(_ loop: EventRunLoop, _ directory: String) throws {
            try loop.add(SignalSource([SIGUSR2]) { [self] _, _ in tick() }, toMode: "m")
            try loop.add(FileSource(path: directory) { [self] _, _ in tick() }, toMode: "m")
            try loop.add(
                ChildProcessSource(pid: getppid()) { [self] _ in tick() }, toMode: "m")
        }
        @MainActor func draw(_ loop: EventRunLoop, _ number: CInt) throws -> [LoopRegistration] {
            let source = LoopSource { @MainActor [self] _ in tick() }
            let observer = LoopObserver(activities: .exit) { @MainActor [self] _, _ in tick() }
            let descriptor = DescriptorSource(descriptor: number) { @MainActor [self] _, _ in
                tick()
            }
            loop.add(source, toMode: "drawn")
            loop.add(observer, toMode: "drawn")
            try loop.add(descriptor, toMode: "drawn")
            let timers = [
                loop.schedule(every: .seconds(1_000), inMode: "drawn") { @MainActor [self] _ in
                    tick()
                },
                loop.perform(after: .seconds(2_000), inMode: "drawn") { @MainActor [self] in
                    tick()
                },
            ]
            return timers.map { LoopRegistration($0) } + [
                LoopRegistration(source), LoopRegistration(observer), LoopRegistration(descriptor),
            ]
        }
    }

    @Test func `the dump calls items without a label by the functions of their handlers`() throws {
        try onFreshThreadThrowing {
            let (loop, clock) = (EventRunLoop.current, Clock())
            let number = stall_eventfd_create()
            defer { stall_descriptor_close(number) }
            clock.start(loop)
            try clock.watch(loop, number)
            let dump = loop.debugDescription
            for text in [
                "timer (closure #1 in IdleAndDumpTests.Clock.start(_:)), due in 999",
                "timer (closure #2 in IdleAndDumpTests.Clock.start(_:)), due in 1999",
                "timer (closure #3 in IdleAndDumpTests.Clock.start(_:)), due in 2999",
                "source (closure #1 in IdleAndDumpTests.Clock.watch(_:_:)), order 0",
                "observer (closure #2 in IdleAndDumpTests.Clock.watch(_:_:)), order 0, exit",
                "descriptor \(number) (closure #3 in IdleAndDumpTests.Clock.watch(_:_:)), readable",
            ] { #expect(dump.contains(text), "\(text) in \(dump)") }
        }
    }

    @Test func `the dump calls an item by the app's function, also behind the library's`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            try Clock().wait(loop, "/tmp")
            let dump = loop.debugDescription
            for number in 1...3 {
                #expect(
                    dump.contains("(closure #\(number) in IdleAndDumpTests.Clock.wait(_:_:)),"),
                    "\(number) in \(dump)")
            }
            #expect(!dump.contains("StallRunLoop"), "\(dump)")
        }
    }

    @Test @MainActor func `the dump calls an item by its function on the main actor`() throws {
        let number = stall_eventfd_create()
        defer { stall_descriptor_close(number) }
        let items = try Clock().draw(EventRunLoop.main, number)
        let dump = EventRunLoop.main.debugDescription
        withExtendedLifetime(items) {}
        for number in 1...5 {
            #expect(
                dump.contains("(closure #\(number) in IdleAndDumpTests.Clock.draw(_:_:)),"),
                "\(number) in \(dump)")
        }
    }

    /// What the demangler makes of closures of a `main.swift` ends with the name of a function that is not there.
    @Test(arguments: [
        ("partial apply for closure #1 in View.start()", "closure #1 in View.start()"),
        ("closure #1 in ", "closure #1 in top-level code"),
        (
            "partial apply for closure #2 in closure #1 in ",
            "closure #2 in closure #1 in top-level code"
        ),
        ("tick(_:)", "tick(_:)"),
    ])
    func `a handler's name in the dump is whole`(demangled: String, name: String) {
        #expect(DumpedHandler.shortened(demangled) == name)
    }

    @Test func `the dump asks for names without the lock, and keeps no handler`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let census = Probe.Census()
            do {
                let probe = Probe(loop, census)
                let timer = LoopTimer(after: .seconds(1)) { _ in _ = probe }
                loop.add(timer, toMode: .default)
                #expect(loop.debugDescription.contains("timer (closure #1 in "))
                timer.invalidate()
            }
            #expect(census.alive == 0 && census.underLock == 0)
        }
    }

    /// Names of handlers, descriptors, the thread and fractions of seconds differ from run to run.
    static func withoutNumbersOfTheMoment(_ dump: String) -> String {
        dump.replacing(/(timer|source|observer) \(.*?\), (order|due|firing)/) {
            "\($0.output.1), \($0.output.2)"
        }
        .replacing(/(thread|wake-up|timer|poller) \d+/) { "\($0.output.1) N" }
        // A loop has one on kernels whose waits take no nanoseconds.
        .replacing(", timer N, ", with: ", no timer, ")
        .replacing(/(\d*999)\d\d\d\.\d+ ms/) { "\($0.output.1) s and a bit" }
    }
}
