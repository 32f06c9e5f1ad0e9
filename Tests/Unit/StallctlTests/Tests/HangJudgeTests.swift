import Foundation
import StallModel
import Testing

@testable import stallctl

/// Goal: a run counts as hung exactly when nothing has started or ended for the limit, is reported once, and is ended
/// only while it is still hung. Method: the test owns the clock and plays the stream.
@Suite struct HangJudgeTests {
    let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    func at(_ seconds: Double) -> MonotonicInstant { start + .seconds(seconds) }

    /// Looks every second until `end`; the verdicts that are not `goesOn`, by the second.
    func verdicts(
        _ limits: HangJudge.Limits, until end: Int, changes: [Int: Int] = [:], tests: Bool = true,
        asleep: ClosedRange<Int>? = nil
    ) -> [Int: HangJudge.Verdict] {
        var judge = HangJudge(limits, at: start)
        var found: [Int: HangJudge.Verdict] = [:]
        var change = 0
        for second in 1...end where asleep?.contains(second) != true {
            if changes[second] != nil { change = second }
            let verdict = judge.verdict(
                lastChange: tests ? at(Double(change)) : nil, at: at(Double(second)))
            if verdict != .goesOn { found[second] = verdict }
        }
        return found
    }

    @Test func `a hang is reported at the limit, once`() {
        let found = verdicts(.init(test: .seconds(60)), until: 500)
        #expect(found == [60: .hangs(.noProgress(.seconds(60)))])
    }

    @Test func `progress starts the limit again, also after a report`() {
        let found = verdicts(.init(test: .seconds(60)), until: 200, changes: [59: 1, 130: 1])
        #expect(
            found == [
                119: .hangs(.noProgress(.seconds(60))), 190: .hangs(.noProgress(.seconds(60))),
            ])
    }

    @Test func `the processes are ended after the report, unless the tests continue`() {
        let limits = HangJudge.Limits(test: .seconds(60), kill: .seconds(30))
        #expect(verdicts(limits, until: 90)[90] == .kill)
        #expect(verdicts(limits, until: 89).count == 1)
        #expect(verdicts(limits, until: 120, changes: [80: 1]).values.contains(.kill) == false)
        #expect(verdicts(.init(test: .seconds(60)), until: 500).values.contains(.kill) == false)
    }

    @Test func `while no tests run only the deadline counts`() {
        #expect(verdicts(.init(test: .seconds(60)), until: 500, tests: false).isEmpty)
        let found = verdicts(
            .init(test: .seconds(60), deadline: .seconds(100), kill: .seconds(5)), until: 105,
            tests: false)
        #expect(found == [100: .hangs(.deadline(.seconds(100))), 105: .kill])
    }

    @Test func `progress after the deadline does not save the processes`() {
        let found = verdicts(
            .init(test: .seconds(60), deadline: .seconds(100), kill: .seconds(10)), until: 110,
            changes: [50: 1, 105: 1])
        #expect(found == [100: .hangs(.deadline(.seconds(100))), 110: .kill])
    }

    @Test func `a hang that was reported is not reported at the deadline again`() {
        let found = verdicts(.init(test: .seconds(60), deadline: .seconds(100)), until: 300)
        #expect(found.count == 1)
    }

    @Test func `a long time between two looks does not count`() {
        let found = verdicts(
            .init(test: .seconds(60), kill: .seconds(30)), until: 240, asleep: 30...129)
        // 100 seconds asleep, and the second after which it would have looked.
        #expect(found[161] == .hangs(.noProgress(.seconds(60))))
        #expect(found.filter { $0.value == .kill }.keys.min() == 191)
    }

    @Test func `the unfinished tests are those without an end, with their cases`() {
        var progress = TestProgress(at: start)
        let suite = TestDescription(id: "M.S", name: "S", isSuite: true)
        let test = TestDescription(id: "M.S/f()", name: "f()", line: 3)
        let events: [TestEvent] = [
            .described(suite), .described(test), .runStarted, .started(id: "M.S", at: nil),
            .started(id: "M.S/f()", at: nil), .caseStarted(id: "M.S/f()", name: "1", at: nil),
            .caseStarted(id: "M.S/f()", name: "2", at: nil), .started(id: "M.g()", at: nil),
            .caseEnded(id: "M.S/f()", name: "1"), .ended(id: "M.g()"), .ended(id: "unknown"),
            .caseEnded(id: "M.S/f()", name: "7"), .caseEnded(id: "no", name: ""), .other,
        ]
        for event in events { progress.note(event, at: at(1)) }
        #expect(progress.unfinished == [.init(test: test, started: nil, cases: ["2"])])
        #expect(progress.startedCount == 2 && progress.endedCount == 1)
        #expect(progress.lastChange == at(1))
        progress.note(.other, at: at(2))
        #expect(progress.lastChange == at(1))
        progress.note(.runStarted, at: at(3))
        #expect(progress.unfinished.isEmpty && progress.lastChange == at(3))
    }

    @Test(arguments: [
        ("plain", "plain", "plain"), ("a%b", "a%25b", "a%25b"),
        ("a\r\nb\nc\rd", "a%0D%0Ab%0Ac%0Dd", "a%0D%0Ab%0Ac%0Dd"),
        ("f(a:b,c)", "f(a:b,c)", "f(a%3Ab%2Cc)"),
        ("::error::x", "::error::x", "%3A%3Aerror%3A%3Ax"),
        ("%0A", "%250A", "%250A"),
    ])
    func `GitHub's commands are escaped`(text: String, message: String, property: String) {
        #expect(GitHubCommand.escapedMessage(text) == message)
        #expect(GitHubCommand.escapedProperty(text) == property)
    }

    @Test func `a hostile name makes neither a command nor a line of its own`() throws {
        var progress = TestProgress(at: start)
        let name = "x\n::error::y\u{1B}[2J\u{202E}"
        progress.note(
            .described(TestDescription(id: "i", name: name, path: "a,b:c\nd", line: 1)), at: start)
        progress.note(.started(id: "i", at: nil), at: start)
        let report = HangReport(reason: .noProgress(.seconds(60)), progress: progress, now: Date())
        for lines in [report.textLines, report.gitHubLines, report.jsonLines] {
            #expect(lines.allSatisfy { !$0.contains("\n") && !$0.contains("\u{1B}") })
            #expect(lines.allSatisfy { !$0.hasPrefix("::error::") })
        }
        #expect(report.gitHubLines.first?.hasPrefix("::error file=a%2Cb%3Ac%0Ad,line=1,") == true)
        #expect(report.jsonLines.count == 2)
    }
}
