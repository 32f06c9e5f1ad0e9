import Foundation
import StallAnalysis
import StallModel
import StallQuery
import StallStore
import Testing

@testable import stallctl

/// Goal: a hostile name cannot steer a terminal, and every harmless one stays as it is.
/// Method: characters of each kind, among text that must survive.
@Suite struct PrintableTests {
    @Test(arguments: [
        ("plain() -> é 日本", "plain() -> é 日本"),
        ("\u{1b}[31mred\u{1b}]0;title\u{07}", "\\u{1B}[31mred\\u{1B}]0;title\\u{7}"),
        ("two\nlines\r\n\tand\0nul", "two\\nlines\\r\\n\\tand\\0nul"),
        ("\u{9b}2J\u{7f}", "\\u{9B}2J\\u{7F}"),
        ("gpj.\u{202e}exe\u{2066}\u{200f}", "gpj.\\u{202E}exe\\u{2066}\\u{200F}"),
        ("a\u{2028}b\u{feff}c", "a\\u{2028}b\\u{FEFF}c"),
        ("👩‍💻 and \u{645}\u{200c}\u{646}", "👩‍💻 and \u{645}\u{200c}\u{646}"),
    ])
    func `what steers a terminal is shown as an escape`(text: String, shown: String) {
        #expect(text.printable == shown)
    }
}

/// Goal: tables line up whatever script a name is written in.
/// Method: the widths that Python's unicodedata gives as an oracle; hand-made cases for whole
/// characters.
@Suite struct DisplayWidthTests {
    @Test(arguments: [
        ("abc", 3), ("日本", 4), ("e\u{301}", 1), ("ｱ", 1), ("ｆ", 2), ("한글", 4),
        ("\u{1112}\u{1161}", 2),
        ("👩‍💻", 2), ("❤️", 2), ("🇫🇷", 2), ("…", 1), ("▂▃", 2), ("", 0),
    ])
    func `characters take the columns that terminals give them`(text: String, width: Int) {
        #expect(text.displayWidth == width)
    }

    @Test(.enabled(if: Oracle.hasPython))
    func `no assigned character is wide or narrow against the Unicode tables`() throws {
        let script = """
            import unicodedata as u
            for v in range(0x300, 0x40000):
                c = chr(v)
                if u.category(c) in ('Cn', 'Cs', 'Co', 'Cc', 'Cf', 'Mn', 'Me', 'Mc') or 0x1160 <= v <= 0x11ff: continue
                if 0x1f1e6 <= v <= 0x1f1ff: continue  # half a flag
                print(v, 2 if u.east_asian_width(c) in 'WF' else 1)
            """
        var checked = 0
        for line in try Oracle.python(script, input: "").split(separator: "\n") {
            let parts = line.split(separator: " ").compactMap { UInt32($0) }
            let scalar = try #require(Unicode.Scalar(parts[0]))
            // Unicode 16 made these 80 symbols wide; an older Python says narrow.
            guard !(0x2630...0x2637).contains(parts[0]), !(0x268a...0x268f).contains(parts[0]),
                !(0x4dc0...0x4dff).contains(parts[0]), !(0x1d300...0x1d37f).contains(parts[0])
            else { continue }
            checked += 1
            if String(scalar).displayWidth != parts[1] {
                Issue.record("U+\(String(parts[0], radix: 16)) has width \(parts[1])")
            }
        }
        #expect(checked > 100_000)
    }

    @Test(arguments: [
        ("drawComplexLayout(_:)", 30, "drawComplexLayout(_:)"),
        ("drawComplexLayout(_:)", 21, "drawComplexLayout(_:)"),
        ("drawComplexLayout(_:)", 11, "drawC…t(_:)"),
        ("drawComplexLayout(_:)", 2, "d…"), ("drawComplexLayout(_:)", 1, "…"), ("abc", 0, ""),
        ("日本語日本語", 6, "日…語"), ("日本語日本語", 7, "日本…語"), ("日本語日本語", 8, "日本…語"),
    ])
    func `a long name keeps its ends`(text: String, width: Int, shown: String) {
        #expect(text.truncatedInMiddle(to: width) == shown)
        #expect(shown.displayWidth <= max(width, 0))
    }
}

/// Goal: durations read well at every size, and rounding never shows 1000 ms or 60 s.
/// Method: both sides of every change of unit.
@Suite struct DurationTextTests {
    @Test(arguments: [
        ("one two three", 8, ["one two", "three"]), ("one two", 7, ["one two"]),
        ("elephants eat", 4, ["elephants", "eat"]), ("日本 語", 4, ["日本", "語"]), ("", 3, [""]),
    ])
    func `a sentence is broken between words`(text: String, width: Int, lines: [String]) {
        #expect(text.wrapped(to: width) == lines)
        #expect(text.wrapped(to: nil) == [text])
    }

    @Test(
        arguments: [
            (0, "0.0 ms"), (420_000, "0.4 ms"), (9_949_999, "9.9 ms"), (9_950_000, "10 ms"),
            (610_400_000, "610 ms"), (999_499_999, "999 ms"), (999_500_000, "1.0 s"),
            (1_949_999_999, "1.9 s"), (1_950_000_000, "2.0 s"), (9_949_999_999, "9.9 s"),
            (9_950_000_000, "10 s"), (59_499_999_999, "59 s"), (59_500_000_000, "1m 00s"),
            (118_000_000_000, "1m 58s"), (3_599_499_999_999, "59m 59s"),
            (3_599_500_000_000, "1h 00m"),
            (86_399_000_000_000, "23h 59m"), (86_400_000_000_000, "1d 00h"),
            (-5_000_000, "-5.0 ms"),
            (Int64.max, "106751d 23h"),
        ] as [(Int64, String)])
    func `columns get two digits that matter`(nanoseconds: Int64, shown: String) {
        #expect(Duration.nanoseconds(nanoseconds).compact == shown)
    }

    @Test(
        arguments: [
            (412_300_000, "412 ms"), (999_499_999, "999 ms"), (999_500_000, "1.00 s"),
            (1_844_000_000, "1.84 s"),
            (59_994_999_999, "59.99 s"), (59_995_000_000, "1m 00s"),
        ] as [(Int64, String)])
    func `a report gets enough digits to compare`(nanoseconds: Int64, shown: String) {
        #expect(Duration.nanoseconds(nanoseconds).precise == shown)
    }
}

/// Goal: a mistyped word finds its neighbour, and nothing is suggested out of thin air.
/// Method: distances with known answers, then words and their candidates.
@Suite struct SuggestionTests {
    @Test(arguments: [
        ("", "", 0), ("top", "tpo", 1), ("top", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 1),
    ])
    func `edits are counted`(left: String, right: String, distance: Int) {
        #expect(Suggestion.editDistance(left, right) == distance)
        #expect(Suggestion.editDistance(right, left) == distance)
    }

    @Test(
        arguments: [
            ("tpo", "top"), ("stats", "status"), ("SHOW", "show"), ("exprot", "export"),
            ("banana", nil),
        ] as [(String, String?)])
    func `the closest candidate is offered when it is close`(word: String, expected: String?) {
        let commands = ["top", "list", "show", "export", "ingest", "migrate", "status"]
        #expect(Suggestion.closest(to: word, in: commands) == expected)
    }
}

/// Goal: a short id names one report, also among reports of the same millisecond.
/// Method: ids that part at each digit.
@Suite struct ShortIDsTests {
    func id(_ digits: String) throws -> UniqueID {
        let digits = digits + String(repeating: "0", count: 32 - digits.count)
        let bytes = try #require([UInt8](hexadecimal: digits))
        return try #require(UniqueID(bytes: bytes))
    }

    @Test(arguments: [
        ("1", 12), ("0123456789ab7", 13), ("0123456789a", 12),
        ("0123456789abcdef0123456789abcdee", 32),
    ])
    func `as many digits as it takes, and never fewer than twelve`(other: String, count: Int) throws
    {
        let shown = try id("0123456789abcdef0123456789abcdef")
        let short = ShortIDs(shown: [shown], among: [shown, try id(other)])[shown]
        #expect(short.count == count)
        #expect(!(try id(other)).description.hasPrefix(short))
    }

    @Test func `one slip of a finger is found`() throws {
        let ids = [try id("01aa5f32"), try id("77")]
        for typed in ["01aa5f33", "01a5f32", "01aaf532", "01AA-5F33", "78"] {
            #expect(ShortIDs.nearMiss(of: typed, in: ids) != nil, "\(typed)")
        }
        #expect(ShortIDs.nearMiss(of: "01bb5f99", in: ids) == nil)
    }
}

/// Goal: what `diff` prints of extreme numbers is no longer than of others, and says on which side of them they are.
/// Method: ratios around the limits; sides that lost much in next to no watched time, and nothing.
@Suite struct ExtremeRatioTests {
    @Test(arguments: [
        (0.0, "0.00"), (1e-12, "under 0.001"), (0.001, "0.001"), (0.0049, "0.005"),
        (0.0099, "0.010"), (0.05, "0.05"), (1.474, "1.47"), (26.06, "26.1"), (340.4, "340"),
        (1e6, "1000000"), (1.1e6, "over 1000000"), (.infinity, "over 1000000"), (-2.5, "-2.50"),
    ])
    func `ratios have few digits`(ratio: Double, text: String) {
        #expect(ratio.short == text)
    }

    private func lines(_ durations: [Duration], _ watched: [Duration]) -> [String] {
        let sides = zip(durations, watched).map { duration, watched in
            var totals = StallTotals()
            totals.add(duration)
            return ComparedSide(
                groups: [
                    StallAggregate(
                        ReportGroup(signature: 1, family: 1, title: "a", frames: ["a"]),
                        totals: totals, watched: totals, first: SampleReports.noon,
                        last: SampleReports.noon)
                ], watched: watched, runs: .unknown(reason: "not asked"))
        }
        return DiffView(
            comparison: Comparison(sides[0], sides[1]), names: ["1", "2"], key: .signature,
            limit: 9, terminal: .document
        ).lines
    }

    @Test func `extreme sides are said in words`() {
        let extreme = lines(
            [.nanoseconds(1), .seconds(1_000_000)], [.seconds(3600), .nanoseconds(1)])
        #expect(extreme[1].hasSuffix("(over 1000d/h)"))
        #expect(extreme[2].hasPrefix("B lost over 1000000 times as much as A"))
        #expect(extreme.last!.contains(" over 1000d/h "))
        #expect(
            lines([.zero, .zero], [.seconds(1), .seconds(1)])[2]
                == "No time was lost on either side.")
    }
}
