import StallModel
import StallQuery
import Testing

@testable import StallFormats

/// Goal: of a profile, exactly what a user asked for is taken, and whatever else is left out is said.
@Suite struct ForeignProfilesTests {
    /// The reports of a text, and its faults.
    private static func read(
        _ text: String, _ change: (inout ReadingOptions) -> Void = { _ in }
    ) -> (reports: [StallReport], faults: [LineFault]) {
        var options = ReadingOptions()
        change(&options)
        return readForeign(text.utf8, options)
    }

    private static let folded = "app;main;decode 3\napp;main;wait 1\n"

    @Test func `counts are durations where the time between two samples is known`() throws {
        let unknown = try #require(Self.read(Self.folded).reports.first)
        #expect(unknown.duration == .zero)
        let known = try #require(
            Self.read(Self.folded) { $0.sampleInterval = .milliseconds(1) }.reports.first)
        #expect(known.duration == .milliseconds(4))
        #expect(known.samples.map(\.weight) == [.milliseconds(3), .milliseconds(1)])
        #expect(known.id == unknown.id)
    }

    @Test func `counts with decimals are as many samples`() throws {
        let report = try #require(
            Self.read("app;decode 1.5\napp;wait 0.25\n") {
                $0.sampleInterval = .milliseconds(4)
            }.reports.first)
        #expect(report.duration == .milliseconds(7))
        #expect(report.samples.map(\.weight) == [.milliseconds(6), .milliseconds(1)])
    }

    @Test func `a thread with more stacks than a report takes is several reports`() {
        let text = (0..<10_000).map { "app;main;f\($0) \($0 + 1)\n" }.joined()
        let reports = Self.read(text) { $0.sampleInterval = .milliseconds(1) }.reports
        #expect(reports.map(\.samples.count) == [4096, 4096, 1808])
        let sum = reports.flatMap(\.samples).reduce(Duration.zero) { $0 + $1.weight }
        #expect(sum == .milliseconds(50_005_000))
        #expect(Set(reports.map(\.id)).count == 3)
    }

    @Test(arguments: [
        "main;app::run::{{closure}};decode",
        "main;run(int)::{lambda(int, char)#1}::operator()(int);decode",
        "{main};App->run;{closure};decode", "<0.1.0>;{gen_server,loop,7};decode",
        "[main tid=1];run;decode", "[unknown];run;decode",
    ]) func `names have braces and brackets`(stack: String) {
        let read = Self.read("\(stack) 42\n\(stack);copy 1\n")
        #expect(read.reports.flatMap(\.samples).count == 2)
        #expect(read.faults.isEmpty)
    }

    @Test(arguments: [
        "int sum = 0; for (;;) { sum += 1; } 1\n", "{\"a;b\": 1,\n\"c;d\": 2\n}\n",
        "[\"a;b 1\n", "first; second 2\n",
    ]) func `code and JSON are no stacks`(text: String) {
        let text = Array(String(repeating: text, count: 3).utf8)
        #expect(ForeignReports.format(of: ByteStream(bytes: text)) == nil)
    }

    @Test func `a function's name may end with a number`() {
        let read = Self.read("app;main 1\napp;closure 2 3\n")
        #expect(Self.functions(read.reports) == ["main", "app", "closure 2", "app"])
        #expect(read.faults.isEmpty)
        #expect(Self.read("app;main 1 2\napp;closure 2 3\n").faults.count == 2)
    }

    @Test func `a profile that has a duration keeps it`() throws {
        let report = try #require(
            Self.read(Self.perf(["cycles", "cycles"])) { $0.sampleInterval = .seconds(1) }
                .reports.first)
        #expect(report.duration < .seconds(1))
    }

    @Test func `so many samples that they last for centuries are a fault`() {
        let read = Self.read("app;wait 9000000000000000\n") { $0.sampleInterval = .seconds(9000) }
        #expect(read.reports.isEmpty)
        #expect(read.faults.map(\.reason) == ["the report has a duration out of range"])
    }

    // MARK: Threads

    private static let threads = "app-1/1;main;a 1\napp-1/2;worker;b 2\n"

    @Test func `samples of other threads than the wanted one are left out`() {
        for (wanted, function) in [("main", "a"), ("1", "a"), ("2", "b")] {
            let read = Self.read(Self.threads) { $0.thread = wanted }
            #expect(read.reports.map { $0.samples[0].frames[0].function } == [function])
            #expect(read.faults.isEmpty)
        }
    }

    @Test func `no samples of the wanted thread are a fault`() {
        let read = Self.read(Self.threads) { $0.thread = "3" }
        #expect(read.reports.isEmpty)
        #expect(read.faults.map(\.reason) == ["no samples are of a thread '3'"])
    }

    // MARK: Events

    /// A sample of each of the events, in functions named after them.
    private static func perf(_ events: [String]) -> String {
        events.enumerated().map { index, event in
            "app 1/1 [000] 1.00\(index): 1 \(event): \n\t7f10 \(event.prefix { $0 != ":" })+0x1 (/usr/bin/app)\n\n"
        }.joined()
    }

    private static func functions(_ reports: [StallReport]) -> [String?] {
        reports.flatMap(\.samples).flatMap(\.frames).map(\.function)
    }

    @Test func `of two events the first is taken, and that the other is not is said once`() {
        let read = Self.read(Self.perf(["cycles:u", "faults", "cycles:u", "faults"]))
        #expect(Self.functions(read.reports) == ["cycles"])
        #expect(read.reports.first?.samples.count == 1)
        #expect(
            read.faults == [
                LineFault(
                    line: 4,
                    reason: "samples of the event faults are left out beside those of cycles:u: "
                        + "--event faults takes them instead")
            ])
    }

    @Test func `the wanted event is taken, with or without its modifiers`() {
        for event in ["cycles", "cycles:u"] {
            let read = Self.read(Self.perf(["faults", "cycles:u"])) { $0.event = event }
            #expect(Self.functions(read.reports) == ["cycles"])
            #expect(read.faults.isEmpty)
        }
    }

    @Test func `no samples of the wanted event are a fault`() {
        let read = Self.read(Self.perf(["sched:sched_switch"])) { $0.event = "sched" }
        #expect(read.reports.isEmpty)
        #expect(read.faults.map(\.reason) == ["no samples are of the event sched"])
    }

    // MARK: pprof

    /// A profile of one stack, whose values are of these types and units.
    private static func pprof(
        _ values: [(type: String, unit: String, value: Int64)], period: Int64 = 0
    ) -> [UInt8] {
        var strings = [""]
        func number(of text: String) -> Int64 {
            strings.append(text)
            return Int64(strings.count - 1)
        }
        func valueType(_ type: String, _ unit: String) -> ProtobufMessage {
            var message = ProtobufMessage()
            message.add(1, number(of: type))
            message.add(2, number(of: unit))
            return message
        }
        var profile = ProtobufMessage()
        for value in values { profile.add(1, valueType(value.type, value.unit)) }
        var sample = ProtobufMessage(packed: 1, [1])
        sample.add(packed: 2, values.map(\.value))
        profile.add(2, sample)
        var line = ProtobufMessage()
        line.add(1, 1)
        var location = line
        location.add(4, line)
        profile.add(4, location)
        var function = line
        function.add(2, number(of: "work"))
        profile.add(5, function)
        if period > 0 { profile.add(11, valueType("cpu", "nanoseconds")) }
        for string in strings { profile.add(6, Array(string.utf8)) }
        profile.add(9, 1_795_166_071_000_000_000)
        // The profile was taken for half a minute.
        profile.add(10, 30_000_000_000)
        profile.add(12, period)
        return profile.bytes
    }

    private static func duration(
        _ bytes: [UInt8], interval: Duration? = nil
    ) throws(LineFault) -> Duration? {
        var options = ReadingOptions()
        options.sampleInterval = interval
        var feed = ForeignReports.feed(
            ByteStream(bytes: bytes), options, modified: UnixTime(microseconds: 0))
        guard case .report(let portable)? = try feed.next() else { return nil }
        return portable.report.duration
    }

    @Test func `a profile lasts as long as its samples, in their unit`() throws {
        let count = (type: "samples", unit: "count", value: Int64(3))
        let time = (type: "cpu", unit: "nanoseconds", value: Int64(30_000_000))
        for values in [[time], [count, time], [time, count]] {
            #expect(
                try Self.duration(Self.pprof(values), interval: .seconds(1)) == .milliseconds(30))
        }
        #expect(try Self.duration(Self.pprof([("wall", "milliseconds", 7)])) == .milliseconds(7))
        #expect(try Self.duration(Self.pprof([count])) == .zero)
        #expect(try Self.duration(Self.pprof([count], period: 10_000_000)) == .milliseconds(30))
        #expect(
            try Self.duration(Self.pprof([count]), interval: .milliseconds(4)) == .milliseconds(12))
    }

    @Test(arguments: [
        ("inuse_space", "bytes"), ("alloc_objects", "count"), ("goroutine", "count"),
        ("exception-samples", "count"), ("cache-misses", "count"),
    ]) func `bytes, objects and events are no time`(type: String, unit: String) {
        #expect(throws: LineFault.self) {
            try Self.duration(Self.pprof([(type, unit, 5)]), interval: .seconds(1))
        }
    }

    /// The values of ddtrace for Python, in its order.
    @Test func `of several times the one that passed is taken, then that of the CPU`() throws {
        let cpu = (type: "cpu-time", unit: "nanoseconds", value: Int64(100_000_000))
        let wall = (type: "wall-time", unit: "nanoseconds", value: Int64(200_000_000))
        let others = [
            (type: "lock-release-hold", unit: "nanoseconds", value: Int64(7_000)),
            (type: "heap-space", unit: "bytes", value: 0),
            (type: "gpu-time", unit: "nanoseconds", value: 0),
        ]
        #expect(try Self.duration(Self.pprof([cpu, wall] + others)) == .milliseconds(200))
        #expect(try Self.duration(Self.pprof([cpu] + others)) == .milliseconds(100))
    }
}
