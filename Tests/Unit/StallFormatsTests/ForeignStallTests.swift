import StallModel
import StallQuery
import Testing

@testable import StallFormats

/// Goal: whatever a reader found, a report that a store takes is made of it, or a reason why not.
@Suite struct ForeignStallTests {
    private static func report(
        _ kind: ForeignReport.Kind, duration: Duration? = nil, counts: [Int64] = [1]
    ) -> ForeignReport {
        var report = ForeignReport(kind: kind, line: 1)
        report.duration = duration
        let samples = counts.map { count in
            ForeignSample(frames: [ForeignFrame(function: "wait()")], count: count)
        }
        report.threads = [ForeignThread(number: 7, isMain: true, samples: samples)]
        return report
    }

    private static func stall(
        _ report: ForeignReport, _ change: (inout ReadingOptions) -> Void = { _ in }
    ) throws -> StallReport {
        var options = ReadingOptions()
        change(&options)
        return try report.stall(
            options, format: .gdbBacktrace, modified: UnixTime(microseconds: 5)
        ).report
    }

    @Test func `the kind decides the verdict`() throws {
        #expect(try Self.stall(Self.report(.hang)).verdict == .stalled)
        #expect(try Self.stall(Self.report(.snapshot)).verdict == .stalled)
        #expect(try Self.stall(Self.report(.samples)).verdict == .sampled)
        #expect(throws: NoStall.self) { try Self.stall(Self.report(.crash)) }
        #expect(throws: NoStall.self) { try Self.stall(Self.report(.other("a jetsam report"))) }
        for kind in [ForeignReport.Kind.samples, .crash] {
            let report = try Self.stall(Self.report(kind)) { $0.takesAllAsStalls = true }
            #expect(report.verdict == .stalled)
        }
    }

    @Test(arguments: [
        [1, 1], [1, 2, 3], [.max, .max], [0, 0], [-1, 5], Array(repeating: 3, count: 4096),
    ]) func `weights are the duration, whatever the counts`(counts: [Int64]) throws {
        for duration in [Duration.zero, .nanoseconds(7), .seconds(320_000_000)] {
            let report = try Self.stall(
                Self.report(.hang, duration: duration, counts: counts))
            #expect(report.samples.count == min(counts.count, 4096))
            #expect(report.samples.allSatisfy { $0.weight >= .zero })
            let sum = report.samples.reduce(Duration.zero) { $0 + $1.weight }
            #expect(sum == (counts.contains { $0 > 0 } ? duration : .zero))
        }
    }

    @Test func `time of samples that there is no room for is no other one's`() throws {
        let report = try Self.stall(
            Self.report(
                .hang, duration: .seconds(1), counts: Array(repeating: 3, count: 8192)))
        #expect(report.samples.count == 4096)
        #expect(report.samples.reduce(Duration.zero) { $0 + $1.weight } == .milliseconds(500))
    }

    @Test(arguments: [Duration.nanoseconds(Int64.max), .seconds(Int64.max), .seconds(-1)])
    func `a duration out of range is a fault`(duration: Duration) {
        #expect(throws: NoStall.self) { try Self.stall(Self.report(.hang, duration: duration)) }
    }

    @Test func `a report is the same whatever the options and the file's time are`() throws {
        let one = try Self.stall(Self.report(.hang))
        let other = try Self.stall(Self.report(.hang)) {
            ($0.app, $0.version, $0.duration) = ("a", "2", .seconds(1))
        }
        #expect(one.id == other.id && one.run.id != other.run.id)
        #expect(one.start == UnixTime(microseconds: 5) && other.duration == .seconds(1))
        #expect(try Self.stall(Self.report(.hang, counts: [2])).id != one.id)
    }

    @Test func `functions at one address are inlined, and the same one again is a recursion`()
        throws
    {
        var report = Self.report(.hang)
        report.threads[0].samples[0].frames = zip("abcab", [16, 16, 16, 16, 16]).map {
            ForeignFrame(function: "\($0)()", image: "app", offset: $1)
        }
        report.threads[0].samples[0].frames[0].kind = .interrupted
        let sample = try Self.stall(report).samples[0]
        #expect(sample.frames.map(\.isInlined) == [true, true, false, true, false])
        #expect(
            sample.frames.map(\.kind) == [.interrupted, .interrupted, .interrupted] + [
                .returnAddress, .returnAddress,
            ])
        #expect(sample.locations.count == 2)
    }

    @Test func `a call stack of MetricKit may be a thousand calls deep`() throws {
        let call =
            #"{"binaryName":"app","binaryUUID":"00000000-0000-0000-0000-000000000001","address":7,"#
        var tree = call + #""sampleCount":1}"#
        for _ in 1..<1000 { tree = call + #""sampleCount":1,"subFrames":["# + tree + "]}" }
        let text =
            #"{"hangDiagnostics":[{"diagnosticMetaData":{"hangDuration":"2 sec"},"callStackTree":{"callStacks":"#
            + #"[{"callStackRootFrames":["# + tree + "]}]}}]}"
        var feed = ForeignReports.feed(
            ByteStream(bytes: Array(text.utf8)), ReadingOptions(),
            modified: UnixTime(microseconds: 0))
        guard case .report(let read) = try feed.next() else {
            Issue.record("no report")
            return
        }
        #expect(read.report.samples.first?.frames.count == 1000)
        #expect(read.report.duration == .seconds(2))
    }
}
