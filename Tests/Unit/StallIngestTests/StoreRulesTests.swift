import StallArchive
import StallIngest
import StallModel
import StallQuery
import StallStore
import StoreTestSupport
import TestSupport
import Testing

/// Goal: the rules that a store is grouped by are its own: nothing but regroup changes its groups, whatever rules a job brings.
/// Method: two sets of rules, one of which cuts names, and the groups that the store then has.
@Suite struct StoreRulesTests {
    let directory = try! TemporaryDirectory()
    var central: String { directory("central.sqlite") }
    let plain = PlainGrouper(rulesHash: 1)
    let cutting = PlainGrouper(rulesHash: 2, cutsNames: true)

    private func write(_ name: String, seed: UInt64, _ count: Int = 5) throws {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: directory(name), run: generator.run)
        for _ in 0..<count {
            let report = generator.report(state: .ended)
            try store.record(report, images: generator.images)
            try store.symbolize(generator.names(of: report))
        }
        try store.close()
    }

    private func ingest(_ names: String..., grouper: PlainGrouper) throws -> IngestSummary {
        let ingest = try Ingest(into: central, grouper: grouper)
        defer { try? ingest.close() }
        return try ingest.run(names.map { directory($0) })
    }

    private func state() throws -> [String?] {
        try RawDatabase(central).query("select rules_hash, rules_text from grouping")[0]
    }

    private func groups() throws -> [[String?]] {
        try RawDatabase(central).query(
            "select source, seq, title from report join signature on signature.id = report.signature order by 1, 2"
        )
    }

    /// The groups of the same files in a store that had these rules from the beginning.
    private func groups(of names: String..., by grouper: PlainGrouper) throws -> [[String?]] {
        let path = directory("expected.sqlite")
        let ingest = try Ingest(into: path, grouper: grouper)
        for name in names { _ = try ingest.run([directory(name)]) }
        try ingest.close()
        return try RawDatabase(path).query(
            "select source, seq, title from report join signature on signature.id = report.signature order by 1, 2"
        )
    }

    @Test func `jobs with rules of their own follow the store's in any turn`() throws {
        try write("a.sqlite", seed: 1)
        try write("b.sqlite", seed: 2)
        try write("c.sqlite", seed: 3)
        _ = try ingest("a.sqlite", grouper: cutting)
        _ = try ingest("b.sqlite", grouper: plain)
        _ = try ingest("c.sqlite", grouper: cutting)
        _ = try ingest("a.sqlite", "b.sqlite", grouper: plain)
        #expect(try state() == ["2", "cut"])
        #expect(
            try groups() == groups(of: "a.sqlite", "b.sqlite", "c.sqlite", by: cutting))
        #expect(try checkStore(path: central).isEmpty)
    }

    @Test func `prune, repair and new names keep the store's rules`() throws {
        try write("a.sqlite", seed: 1)
        _ = try ingest("a.sqlite", grouper: cutting)
        let before = try groups()
        try repairStore(path: central, grouper: plain)
        #expect(try state() == ["2", "cut"] && groups() == before)
        _ = try pruneStore(path: central, keeping: Retention(bytes: 1 << 40), grouper: plain)
        #expect(try state() == ["2", "cut"] && groups() == before)
    }

    /// A collector has its store open for months.
    @Test func `an import that is open takes the rules that regroup brings`() throws {
        try write("a.sqlite", seed: 1)
        try write("b.sqlite", seed: 2)
        let ingest = try Ingest(into: central, grouper: plain)
        _ = try ingest.run([directory("a.sqlite")])
        _ = try regroupStore(path: central, grouper: cutting)
        _ = try ingest.run([directory("b.sqlite")])
        try ingest.close()
        #expect(try state() == ["2", "cut"])
        #expect(try groups() == groups(of: "a.sqlite", "b.sqlite", by: cutting))
    }

    /// Another version has other built-in rules, and cannot group by those of the store.
    @Test func `after an upgrade only regroup changes the groups that there are`() throws {
        try write("a.sqlite", seed: 1)
        try write("b.sqlite", seed: 2)
        _ = try ingest("a.sqlite", grouper: cutting)
        let before = try groups()
        let newer = PlainGrouper(rulesHash: 101)
        _ = try ingest("a.sqlite", "b.sqlite", grouper: newer)
        #expect(try state() == ["2", "cut"])
        #expect(try Array(groups().prefix(before.count)) == before)
        _ = try regroupStore(
            path: central, grouper: newer.following(StoredRules(hash: 2, text: "cut")))
        #expect(try state() == ["101", "cut"])
        #expect(try checkStore(path: central).isEmpty)
    }

    @Test func `a store that kept no text takes that of the first job`() throws {
        try write("a.sqlite", seed: 1)
        _ = try ingest("a.sqlite", grouper: plain)
        try RawDatabase(central).query("update grouping set rules_text = null")
        let before = try groups()
        _ = try ingest("a.sqlite", grouper: cutting)
        #expect(try state() == ["1", "cut"] && groups() == before)
        // The hash says that these are the rules, and that those were not.
        _ = try ingest("a.sqlite", grouper: plain)
        #expect(try state() == ["1", ""] && groups() == before)
        _ = try ingest("a.sqlite", grouper: cutting)
        #expect(try state() == ["1", ""] && groups() == before)
    }

    @Test func `a text that is too long to be read is not replaced`() throws {
        try write("a.sqlite", seed: 1)
        _ = try ingest("a.sqlite", grouper: plain)
        try RawDatabase(central).query(
            "update grouping set rules_text = replace(hex(zeroblob(600000)), '00', '# ')")
        let before = try state()
        #expect(before[1]?.utf8.count == 1_200_000)
        _ = try ingest("a.sqlite", grouper: cutting)
        #expect(try state() == before)
        // Its beginning is enough to refuse it.
        #expect(
            try storedRules(ofFile: central)?.text?.utf8.count == StoredRules.longestText + 1)
    }

    /// A job says what it does with a store before it migrates it.
    @Test func `the rules of a store of an older schema are known by their hash`() throws {
        try write("a.sqlite", seed: 1)
        _ = try ingest("a.sqlite", grouper: cutting)
        #expect(try storedRules(ofFile: central) == StoredRules(hash: 2, text: "cut"))
        try RawDatabase(central).query("alter table grouping drop column rules_text")
        try RawDatabase(central).query("pragma user_version = 19")
        #expect(try storedRules(ofFile: central) == StoredRules(hash: 2, text: nil))
        #expect(try storedRules(ofFile: directory("a.sqlite")) == nil)
    }
}
