import Foundation
import Glibc
import StallFormats
import StallModel
import StallQuery
import Testing

/// Goal: in any JSONL file every valid line is read, every invalid one is reported with its number and the reason, and
/// memory is bounded. Method: small files, valid and hostile.
@Suite struct ReportLinesTests {
    static let good = """
        {"schema":"stallctl.report/1","id":"01a1fdf7dc0f7d0ca814470cafff64ca","app":"demo",\
        "version":"1.0.0","host":"vm","pid":7,"loop":"main","start":"2026-11-21T10:59:30.653001Z",\
        "duration_ms":800.373728,"threshold_ms":250,"state":"ended","samples":[{"offset_ms":125,\
        "weight_ms":800,"thread":7,"stack":[{"function":"inner()","offset":"0x10","inlined":true,\
        "image":"/opt/demo"},{"function":"outer()","offset":"0x10","image":"/opt/demo"},\
        {"offset":"0xffffffffffffffff"}]}],"a_key_of_the_future":{"deep":[1]}}
        """

    /// What the lines are read as: the first words of each fault, or the app of each report.
    func read(_ bytes: [UInt8]) throws -> [String] {
        let path = NSTemporaryDirectory() + "report-lines-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(bytes).write(to: URL(filePath: path))
        var lines = ReportLines(descriptor: open(path, O_RDONLY), closesIt: true)
        var found: [String] = []
        while true {
            do throws(LineFault) {
                guard let row = try lines.next() else { return found }
                switch row {
                case .report(let row): found.append(row.report.run.app)
                case .unknown(let schema): found.append("unknown \(schema)")
                default: found.append("\(row)")
                }
            } catch { found.append(error.description) }
        }
    }

    func report(_ row: PortableRow?) -> PortableReport? {
        if case .report(let report) = row { report } else { nil }
    }

    func read(_ text: String) throws -> [String] { try read(Array(text.utf8)) }

    @Test func `a line without what can be missing is a report`() throws {
        let path = NSTemporaryDirectory() + "report-lines-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Self.good.write(toFile: path, atomically: true, encoding: .utf8)
        var lines = ReportLines(descriptor: open(path, O_RDONLY), closesIt: true)
        let portable = try #require(report(try lines.next()))
        let report = portable.report
        #expect(portable.origin == nil && report.verdict == .stalled && report.cause == nil)
        #expect(report.duration == .nanoseconds(800_373_728))
        #expect(report.start.microseconds == 1_795_258_770_653_001)
        #expect(report.samples[0].locations.map(\.offset) == [0x10, .max])
        #expect(report.samples[0].frames.map(\.function) == ["inner()", "outer()", nil])
        #expect(try lines.next() == nil)
    }

    @Test(arguments: [
        (#""pid":7"#, 0), (#""own_ms":null,"pid":7"#, 0), (#""own_ms":800.373728,"pid":7"#, 0),
        (#""own_ms":300.373728,"pid":7"#, 500), (#""own_ms":0,"pid":7"#, 800.373728),
    ])
    func `what of a stall was not its thread's own is read, and is nothing where none is said`(
        text: String, delayed: Double
    ) throws {
        let path = NSTemporaryDirectory() + "report-lines-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Self.good.replacing(#""pid":7"#, with: text)
            .write(toFile: path, atomically: true, encoding: .utf8)
        var lines = ReportLines(descriptor: open(path, O_RDONLY), closesIt: true)
        let found = try report(lines.next())?.report.delayedTime
        #expect(found == .nanoseconds(Int64((delayed * 1e6).rounded())))
    }

    /// The expected values are Python's.
    @Test(arguments: [
        ("2026-11-21T10:59:30.653001Z", 1_795_258_770_653_001),
        ("2026-11-21t10:59:30z", 1_795_258_770_000_000),
        ("2026-11-21 10:59:30.5+02:00", 1_795_251_570_500_000),
        ("2024-02-29T23:59:59.123456789-09:30", 1_709_285_399_123_456),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
    ]) func `times are read in every form of RFC 3339`(text: String, microseconds: Int64) throws {
        let path = NSTemporaryDirectory() + "report-lines-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Self.good.replacing("2026-11-21T10:59:30.653001Z", with: text)
            .write(toFile: path, atomically: true, encoding: .utf8)
        var lines = ReportLines(descriptor: open(path, O_RDONLY), closesIt: true)
        #expect(try report(lines.next())?.report.start.microseconds == microseconds)
    }

    @Test(arguments: [
        "", "2026-11-21", "2026-11-21T10:59:30", "2026-11-21T10:59:30.Z", "2026-11-21T24:00:00Z",
        "2026-00-21T10:59:30Z", "2026-11-32T10:59:30Z", "2026-11-21T10:60:00Z",
        "2026-11-21T10:59:61Z", "2026-11-21T10:59:60Z", "2026-02-29T10:59:30Z",
        "2100-02-29T10:59:30Z", "2026-04-31T10:59:30Z", "2026-11-21T10:59:30+24:00",
        "2026-11-21T10:59:30-02:60",
        "2026-11-21T10:59:30.0123456789Z", "2026-11-21T10:59:30+0200", "2026-11-21T10:59:30Zulu",
        "2026-1-21T10:59:30Z", "٢٠٢٦-11-21T10:59:30Z", "-026-11-21T10:59:30Z",
    ]) func `what is no time is refused`(text: String) throws {
        let line = Self.good.replacing("2026-11-21T10:59:30.653001Z", with: text)
        #expect(try read(line)[0].contains("has no time such as"))
    }

    @Test(arguments: [
        ("", "is not JSON"), ("[1]", "is not a JSON object"), ("nonsense", "is not a JSON object"),
        (#"{"schema":"other/9"}"#, "has the schema 'other/9'; expected 'stallctl.report/1'"),
        (#"{"id":"x"}"#, "lacks schema"), (good.replacing("demo\"", "demo"), "is not JSON"),
        (good.replacing(#""id":"01a1"#, with: #""id":"01"#), "has no identifier"),
        (good.replacing("800.373728", with: "-1"), "has a duration out of range in duration_ms"),
        (good.replacing("800.373728", with: "1e300"), "has a duration out of range in duration_ms"),
        (good.replacing("800.373728", with: "1e999"), "out of range"),
        (good.replacing(#""pid":7"#, with: #""pid":70000000000"#), "out of range"),
        (
            good.replacing(#""pid":7"#, with: #""pid":"7""#),
            "has a value other than a number in pid"
        ),
        (
            good.replacing("800.373728", with: #""5""#),
            "has a value other than a number in duration_ms"
        ),
        (
            good.replacing(#""pid":7"#, with: #""own_ms":800.4,"pid":7"#),
            "has more than duration_ms in own_ms"
        ),
        (
            good.replacing(#""pid":7"#, with: #""own_ms":-1,"pid":7"#),
            "has a duration out of range in own_ms"
        ),
        (good.replacing("2026-11-21T", with: "2026-13-21T"), "has no time such as"),
        (good.replacing("0x10", with: "10"), "in samples[0].stack[0].offset"),
        (good.replacing("ended", with: "dead"), "has an unknown word 'dead' in state"),
        (good.replacing(#""host":"vm","#, with: ""), "lacks host"),
        (good.replacing(#""loop":"main""#, with: #""loop":null"#), "has null in loop"),
        (good.replacing(#""pid""#, with: #""seq":5,"pid""#), "has a seq and no store"),
    ])
    func `an invalid line is reported, and the next one is read`(line: String, reason: String)
        throws
    {
        let found = try read("\n\(line)\n\(Self.good)\r\n")
        // An empty line is nothing at all.
        guard !line.isEmpty else { return #expect(found == ["demo"]) }
        #expect(found.count == 2 && found.last == "demo")
        #expect(found[0].hasPrefix("line 2: ") && found[0].contains(reason), "\(found)")
    }

    @Test func `bytes that are not text are reported`() throws {
        let bytes = Array(Self.good.utf8)
        let found = try read(bytes.prefix(60) + [0xff, 0xc0] + bytes.dropFirst(60) + [10] + bytes)
        #expect(found == ["line 1: is not UTF-8", "demo"])
    }

    /// A nesting bomb would overflow the stack of a reader that follows it.
    @Test(arguments: ["[", "{\"a\":"])
    func `a line that nests without end is refused`(opening: String) throws {
        let bomb =
            #"{"schema":"stallctl.report/1","x":"# + String(repeating: opening, count: 200_000)
        let found = try read(bomb + "\n" + Self.good)
        #expect(found.count == 2 && found[1] == "demo" && found[0].hasPrefix("line 1: is not JSON"))
    }

    @Test func `a line longer than the limit is skipped, and not held`() throws {
        var bytes = [UInt8](repeating: UInt8(ascii: "x"), count: ReportLines.lineLimit + 100_000)
        bytes += Array("\n\(Self.good)\n".utf8)
        #expect(try read(bytes) == ["line 1: is longer than 16 MB", "demo"])
    }

    @Test func `a descriptor that cannot be read ends the file with its reason`() {
        var lines = ReportLines(descriptor: -1)
        #expect(throws: LineFault(line: 0, reason: "Bad file descriptor")) { try lines.next() }
        #expect(lines.hasFailed)
    }
}

extension String {
    /// Only for the table above: cuts where the word first occurs.
    fileprivate func replacing(_ word: String, _ other: String) -> String {
        guard let range = range(of: word) else { return self }
        return replacingCharacters(in: range, with: other)
    }
}
