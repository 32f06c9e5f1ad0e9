import Foundation
import Logging
import StallArchive
import StallCapture
import StallCause
import StallDetection
import StallModel
import StallQuery
import StallStore
import StallSymbols
import TestSupport
import Testing

@testable import StallAgent

/// Goal: a stall is meant if what the app did not declare of it is shorter than the threshold, and only then.
/// Method: the test owns the clock, notes scopes, and makes the recorder's pending reports.
@Suite struct ExpectedStallTests {
    let scopes = ExpectedScopes()
    static let thread = ThreadID(rawValue: 7)
    static let task: UInt64 = 0x7000

    func at(_ milliseconds: Int) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: 1_000_000_000) + .milliseconds(milliseconds)
    }

    /// A stall with a threshold of 250 ms.
    func stall(
        _ span: Range<Int>, on thread: ThreadID = Self.thread, task: UInt64 = 0,
        _ verdict: StallVerdict = .stalled, hasEnded: Bool = true, delayed: Duration = .zero
    ) -> PendingReport {
        let incident = StallIncident(
            began: at(span.lowerBound), duration: .milliseconds(span.count),
            threshold: .milliseconds(250), cpuTime: .zero, delayedTime: delayed,
            detectionDelay: .zero, verdict: verdict, hasEnded: hasEnded)
        return PendingReport(
            id: UniqueID(bytes: Array(repeating: 3, count: 16))!,
            start: UnixTime(microseconds: 0), loop: "main", mode: "", incident: incident,
            samples: [], members: [], others: ThreadRound(), othersCost: .zero,
            evidenceLog: EvidenceLog(
                observations: [], last: Counters(), lastPoll: at(span.upperBound)),
            thread: thread, task: task, openWork: [], context: [])
    }

    func scope(_ pending: PendingReport) -> String? { pending.expectedScope(in: scopes) }

    /// Notes a scope of the thread.
    func note(_ span: Range<Int>, _ name: String = "migration", atMost limit: Duration) {
        let number = scopes.begin(
            name, .thread(Self.thread), atMost: limit, at: at(span.lowerBound))
        #expect(number != 0)
        scopes.end(number, at: at(span.upperBound))
    }

    @Test(arguments: [
        (0..<1000, true),  // wholly inside
        (-249..<1000, true), (0..<1249, true),  // the rest is below the threshold
        (-250..<1000, false), (0..<1250, false), (-125..<1125, false),
        (500..<2000, false),  // half inside
        (-400..<0, false), (1000..<1400, false),
    ])
    func `a stall is meant if the rest of it is shorter than the threshold`(
        span: Range<Int>, isMeant: Bool
    ) {
        note(0..<1000, atMost: .seconds(10))
        #expect((scope(stall(span)) != nil) == isMeant)
    }

    @Test func `a scope that lasts longer than its limit is one of the limit's length`() {
        note(0..<5000, atMost: .seconds(2))
        #expect(scope(stall(10..<2249)) == "migration")
        #expect(scope(stall(10..<2250)) == nil)
        #expect(scope(stall(2000..<2400)) == nil)
        note(10_000..<11_000, atMost: .seconds(-1))
        #expect(scope(stall(10_000..<11_000)) == nil)
    }

    @Test func `an open stall is one again when the limit has passed`() {
        _ = scopes.begin("dialog", .thread(Self.thread), atMost: .seconds(1), at: at(0))
        #expect(scope(stall(0..<300, hasEnded: false)) == "dialog")
        #expect(scope(stall(0..<1249, hasEnded: false)) == "dialog")
        #expect(scope(stall(0..<1250, hasEnded: false)) == nil)
    }

    @Test func `the outermost scope counts, with its name and limit`() {
        let outer = scopes.begin("outer", .thread(Self.thread), atMost: .seconds(1), at: at(0))
        for (limit, began) in [(Duration.milliseconds(1), 100), (.seconds(100), 200)] {
            let inner = scopes.begin(
                "inner", .thread(Self.thread), atMost: limit, at: at(began))
            #expect(inner == 0)
            scopes.end(inner, at: at(began + 50))
        }
        #expect(scope(stall(0..<1000)) == "outer")
        #expect(scope(stall(0..<1300)) == nil)
        scopes.end(outer, at: at(1300))
        note(1400..<2000, "later", atMost: .seconds(1))
        #expect(scope(stall(1350..<2000)) == "later")
    }

    @Test func `a scope of a thread in one of its task is an inner one`() {
        let outer = scopes.begin("outer", .task(Self.task), atMost: .seconds(1), at: at(0))
        let inner = scopes.begin(
            "inner", .thread(Self.thread), in: Self.task, atMost: .seconds(9), at: at(0))
        #expect(outer != 0 && inner == 0)
        #expect(
            scopes.begin("another", .thread(Self.thread), atMost: .seconds(1), at: at(0)) != 0)
    }

    @Test func `several scopes in one stall add up, and none counts twice`() {
        note(0..<400, "first", atMost: .seconds(1))
        note(500..<1000, "second", atMost: .seconds(1))
        #expect(scope(stall(0..<1100)) == "second")
        let task = scopes.begin("task", .task(Self.task), atMost: .seconds(1), at: at(0))
        scopes.end(task, at: at(400))
        #expect(scope(stall(0..<1149, task: Self.task)) == "second")
        #expect(scope(stall(0..<1150, task: Self.task)) == nil)
    }

    @Test func `scopes of other threads and tasks do not count`() {
        note(0..<1000, atMost: .seconds(10))
        #expect(scope(stall(0..<1000, on: ThreadID(rawValue: 8))) == nil)
        let number = scopes.begin(
            "import", .task(Self.task), atMost: .seconds(10), at: at(2000))
        scopes.end(number, at: at(3000))
        #expect(scope(stall(2000..<3000, task: Self.task)) == "import")
        #expect(scope(stall(2000..<3000, on: ThreadID(rawValue: 8), task: Self.task)) == "import")
        #expect(scope(stall(2000..<3000, task: 0x7010)) == nil)
        #expect(scope(stall(2000..<3000)) == nil)
    }

    @Test(arguments: [StallVerdict.starved, .stopped, .throttled, .debugger, .saturated])
    func `a delay that is not the app's own keeps its verdict`(verdict: StallVerdict) {
        note(0..<1000, atMost: .seconds(10))
        #expect(scope(stall(0..<1000, verdict)) == nil)
    }

    @Test func `open and ended scopes are bounded, and the oldest ended ones give way`() {
        let open = (0..<ExpectedScopes.openLimit).map {
            scopes.begin("open", .task(UInt64($0 + 1)), atMost: .seconds(1), at: at(0))
        }
        #expect(!open.contains(0))
        #expect(scopes.begin("one more", .thread(Self.thread), atMost: .seconds(1), at: at(0)) == 0)
        for number in open { scopes.end(number, at: at(0)) }
        for number in 0...ExpectedScopes.endedLimit {
            note(number * 1000..<number * 1000 + 900, "\(number)", atMost: .seconds(1))
        }
        #expect(scope(stall(0..<900)) == nil)
        #expect(scope(stall(1000..<1900)) == "1")
        #expect(scope(stall(256_000..<256_900)) == "256")
    }

    @Test func `a scope of less than a millisecond is forgotten`() {
        let number = scopes.begin("short", .thread(Self.thread), atMost: .seconds(1), at: at(0))
        scopes.end(number, at: at(0) + .microseconds(999))
        #expect(scopes.overlap(of: Self.thread, task: 0, from: at(-1), to: at(9)) == nil)
        note(10..<11, "long enough", atMost: .seconds(1))
        #expect(
            scopes.overlap(of: Self.thread, task: 0, from: at(0), to: at(20))
                == .init(name: "long enough", time: .milliseconds(1)))
    }

    @Test func `a meant stall is stored as that, and as a stall once its limit has passed`() throws
    {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "stalls.sqlite").path
            let run = ProcessRun.current(app: "photos", version: "1", buildID: nil)
            var connection = StoreConnection(
                path: path, run: run, logger: Logger(label: "test"))
            let images = ImageTable(images: [])
            _ = scopes.begin("dialog", .thread(Self.thread), atMost: .seconds(1), at: at(0))
            var stored: [StallReport] = []
            for (end, hasEnded) in [(900, false), (2000, true)] {
                var pending = stall(
                    0..<end, hasEnded: hasEnded, delayed: .milliseconds(100))
                var report = StallReport(pending, run: run, images: images, naming: .zero)
                pending.declare(&report, in: scopes)
                pending.explain(&report, images: images) { _ in [] }
                connection.record(report, images: images)
                stored += try ReportStore.open(path: path).reports(ReportFilter(), limit: nil)
            }
            connection.close()
            #expect(stored.map(\.verdict) == [.expected, .stalled])
            #expect(stored.map(\.activity) == ["dialog", nil])
            #expect(stored.map { $0.cause?.evidence(.expected) } == ["dialog", nil])
            #expect(stored.map(\.delayedTime) == [.zero, .milliseconds(100)])
        }
    }
}
