import Foundation
import StallAnalysis
import StallModel
import StallQuery
import Testing

@testable import stallctl

/// Goal: every documented way to type a time gives the right instant; a wrong one is refused with
/// the forms.
/// Method: a fixed present in a zone with daylight saving; instants counted by hand.
@Suite struct TimeArgumentTests {
    /// 2026-11-21T14:00:00.5Z; 15:00 in Berlin.
    let now = UnixTime(microseconds: 1_795_269_600_500_000)
    let berlin = TimeZone(identifier: "Europe/Berlin")!

    @Test(
        arguments: [
            ("2026-11-21T14:00:00Z", 1_795_269_600_000_000),
            ("2026-11-21t14:00z", 1_795_269_600_000_000),
            ("2026-11-21T15:00:00.25+01:00", 1_795_269_600_250_000),
            ("2026-11-21T08:30:00-0530", 1_795_269_600_000_000),
            ("2026-11-21 15:00", 1_795_269_600_000_000), ("2026-11-21", 1_795_215_600_000_000),
            ("2026-07-01", 1_782_856_800_000_000), ("1969-12-31T23:59:59.5Z", -500_000),
            ("today", 1_795_215_600_000_000), ("yesterday", 1_795_129_200_000_000),
            ("now", 1_795_269_600_500_000), ("90s", 1_795_269_510_500_000),
            ("15m", 1_795_268_700_500_000), ("2h", 1_795_262_400_500_000),
            ("7d", 1_794_664_800_500_000),
            ("1W", 1_794_664_800_500_000),
            ("999999w", 1_795_269_600_500_000 - 999_999 * 604_800_000_000),
        ] as [(String, Int64)])
    func `times are read`(text: String, microseconds: Int64) throws {
        let time = try TimeArgument.parse(text, now: now, timeZone: berlin)
        #expect(time == UnixTime(microseconds: microseconds))
    }

    @Test(arguments: [
        "", "soon", "2 fortnights", "2hh", "h", "-2h", "2026-11", "2026-11-21T", "2026-11-21T14",
        "14:00",
        "2026-11-21T14:00:00+1", "2026-11-21T14:00:00+99:00", "21.11.2026", "1000000d", "\u{1b}[2J",
    ])
    func `anything else is refused with what is expected`(text: String) {
        #expect(throws: TimeArgumentError.unreadable(text)) {
            try TimeArgument.parse(text, now: now, timeZone: berlin)
        }
    }

    @Test(arguments: [
        ("2 hours", "2h"), ("15min", "15m"), ("7 Days ago", "7d"), ("yesterdya", "yesterday"),
        ("-2h", "2h"), ("2 months", nil), ("fortnight", nil), ("14:00", nil),
    ])
    func `a mistyped time is answered with the one that was meant`(text: String, meant: String?) {
        #expect(TimeArgument.meant(by: text) == meant)
        #expect(
            TimeArgumentError.unreadable(text).description.hasSuffix(
                meant.map { "Did you mean '\($0)'?" } ?? "4w."))
    }

    @Test(arguments: [
        "2026-02-29", "2026-13-01", "2026-00-10", "2026-11-21T24:01", "2026-11-21T10:60:00Z",
    ])
    func `a date that no calendar has is refused`(text: String) {
        #expect(throws: TimeArgumentError.noSuchDate(text)) {
            try TimeArgument.parse(text, now: now, timeZone: berlin)
        }
    }
}

/// Goal: text shows local times without redundant parts; data has RFC 3339 in UTC.
/// Method: instants on both sides of midnight, of the epoch and of the year, in a zone an hour east.
@Suite struct TimeTextTests {
    let terminal = Terminal.plain

    @Test(
        arguments: [
            (1_795_269_600_500_001, "2026-11-21T14:00:00.500001Z"),
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (Int64.max, "294247-01-10T04:00:54.775807Z"),
        ] as [(Int64, String)])
    func `data has microseconds in UTC`(microseconds: Int64, shown: String) {
        #expect(UnixTime(microseconds: microseconds).rfc3339 == shown)
    }

    @Test func `people get local times, and the year when it is another one`() {
        let time = UnixTime(microseconds: 1_795_269_600_417_000)
        let yearBefore = UnixTime(microseconds: 1_763_733_600_417_000)
        var terminal = terminal
        terminal.now = time
        #expect(time.shortText(on: terminal) == "21 Nov 15:00")
        #expect(time.exactText(on: terminal) == "21 Nov 15:00:00.417")
        #expect(time.sentenceText(on: terminal) == "21 Nov at 15:00:00.417")
        #expect(yearBefore.shortText(on: terminal) == "21 Nov 2025 15:00")
    }

    @Test(arguments: [
        (0, "21 Nov 15:00"), (59, "21 Nov 15:00"), (3600, "21 Nov 15:00 to 16:00"),
        (10 * 3600, "21 Nov 15:00 to 22 Nov 01:00"),
    ])
    func `a range names its second day only when it is another one`(seconds: Int64, shown: String) {
        let first = SampleReports.noon
        let last = UnixTime(microseconds: first.microseconds + seconds * 1_000_000)
        #expect(UnixTime.rangeText(from: first, to: last, on: terminal) == shown)
    }
}

extension Terminal {
    /// No colour, no width, an hour east of Greenwich, in the year of the sample reports.
    static let plain = Terminal(
        columns: nil, usesColor: false, isInteractive: false,
        timeZone: TimeZone(secondsFromGMT: 3600)!, now: SampleReports.noon)
}
