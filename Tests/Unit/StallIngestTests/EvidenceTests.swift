import Foundation
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: the evidence that a central store keeps once for many reports is, with each report's numbers, the text that
/// the agent wrote, whatever that says; and SQL can ask for it. Method: random texts of what formats are made of;
/// seeded reports in two stores; the demo's store a hundred times.
@Suite struct EvidenceTests {
    let directory = try! TemporaryDirectory()
    var central: String { directory("central.sqlite") }

    func detail(_ evidence: [CauseEvidence]) -> [UInt8] {
        StoredCause(
            StallCause(
                .lock, confidence: 1, shares: [CauseShare(.lock, 0.75), CauseShare(.cpu, 0.25)],
                evidence: evidence,
                holder: LockHolder(thread: ThreadID(rawValue: 7), name: "7 of 9", isDeadlock: false)
            )
        ).detail
    }

    func split(_ detail: [UInt8]) -> SplitEvidence? {
        detail.withUnsafeBytes { SplitEvidence(detail: $0, of: .lock) }
    }

    /// The detail again from its parts.
    func joined(_ detail: [UInt8]) -> [UInt8]? {
        split(detail).flatMap { split in
            (split.remainder ?? []).withUnsafeBytes { remainder in
                split.numbers.withUnsafeBytes { numbers in
                    [UInt8](
                        of: .lock, formats: split.formats, numbers: numbers, remainder: remainder)
                }
            }
        }
    }

    func facts(_ evidence: [CauseEvidence]) -> [EvidenceFact] {
        split(detail(evidence)).flatMap { [EvidenceFact](packed: $0.formats) } ?? []
    }

    func formats(of values: [String]) -> [String] {
        facts(values.map { CauseEvidence("cpu", $0) }).map(\.format)
    }

    @Test func `numbers become formats, and what only looks like one stays`() {
        let cases = [
            "2 ms of 502 ms": "%d ms of %d ms", "futex(0x55d0c8a01f40)": "futex(0x%x)",
            "read(7: 10.0.0.1:443)": "read(%d: %d.%d.%d.%d:%d)", "p9_client_rpc": "p9_client_rpc",
            "007": "007", "0": "%d", "0x0": "0x0", "0xABC": "0xABC", "50 %": "%d %%", "%d": "%%d",
            "1234567890123456789": "1234567890123456789", "3x": "3x", "größe2": "größe2", "": "",
            "999999999999999999": "%d", "0xfffffffffffffff": "0x%x",
            "0x1fffffffffffffff": "0x1fffffffffffffff",
        ]
        for (value, format) in cases {
            #expect(formats(of: [value]) == [format])
            let detail = detail([CauseEvidence("state", value)])
            #expect(joined(detail) == detail)
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `whatever the evidence says comes back`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let parts = [
            "0", "00", "1", "42", "18446744073709551615", "9223372036854775807", "0x", "0x1",
            "0xff",
            "0x0", "x", "%", "%d", "%%", "%x", " ", ": ", "_", "/var/lib/", "ü", ".", "-1", "\u{0}",
            "a1", "1a",
        ]
        for _ in 0..<200 {
            let evidence = (0..<Int.random(in: 1...8, using: &random)).map { _ in
                let value = (0..<Int.random(in: 0...9, using: &random)).map { _ in
                    parts.randomElement(using: &random)!
                }
                let names = [
                    "cpu", "system call", "of a later version", "", "span", "open request",
                ]
                return CauseEvidence(names.randomElement(using: &random)!, value.joined())
            }
            let detail = detail(evidence)
            #expect(joined(detail) == detail, "\(evidence)")
        }
    }

    /// Each trace would be a row of its own.
    @Test func `requests and spans stay with their report`() {
        let evidence = [
            CauseEvidence("cpu", "2 ms of 502 ms"),
            CauseEvidence("request", "GET /a, trace 4bf92f3577b34da6, for 0.5 s"),
            CauseEvidence("state", "S 7"),
        ]
        let facts = facts(evidence)
        #expect(facts.map(\.format) == ["%d ms of %d ms", "%s", "S %d"])
        #expect(facts.map(\.firstNumber) == [0, 2, 2])
        #expect(joined(detail(evidence)) == detail(evidence))
    }

    @Test func `nothing is left of a detail that says no more than the cause`() {
        let evidence = [CauseEvidence("state", "S")]
        func remainder(_ cause: StallCause) -> [UInt8]? {
            split(StoredCause(cause).detail).flatMap(\.remainder)
        }
        let whole = [CauseShare(.lock, 1)]
        #expect(
            remainder(StallCause(.lock, confidence: 1, shares: whole, evidence: evidence)) == nil)
        let detail = StoredCause(
            StallCause(.lock, confidence: 1, shares: whole, evidence: evidence)
        ).detail
        #expect(joined(detail) == detail)
        for other in [[CauseShare(.disk, 1)], [CauseShare(.lock, 0.5)], []] {
            #expect(
                remainder(StallCause(.lock, confidence: 1, shares: other, evidence: evidence))
                    != nil)
        }
    }

    @Test func `evidence that is longer than any agent's stays as it is`() {
        let many = detail((0...64).map { CauseEvidence("cpu", "\($0)") })
        #expect(split(many) == nil)
        let long = detail([CauseEvidence("cpu", String(repeating: "x", count: 9000))])
        #expect(split(long) == nil)
        #expect(split(detail([])) == nil)
    }

    /// Writes an agent's store, and imports it.
    func makeCentral(seed: UInt64, count: Int = 60) throws -> [StallReport] {
        var generator = ReportGenerator(seed: seed)
        let agent = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        for _ in 0..<count {
            try agent.record(generator.report(state: .ended), images: generator.images)
        }
        try agent.close()
        try ingest(directory("agent.sqlite"), into: central)
        return try ReportStore.open(path: directory("agent.sqlite")).reports(ReportFilter())
    }

    func ingest(_ path: String, into central: String) throws {
        let ingest = try Ingest(into: central)
        #expect(try ingest.run([path]).skippedCount == 0)
        try ingest.close()
    }

    @Test func `SQL finds evidence by its name, format and text`() throws {
        let reports = try makeCentral(seed: 1)
        let database = try RawDatabase(central)
        let rows = try database.query(
            """
            select id, name, value from stall_evidence where format = 'fsync(%d: /größe %d)'
            """)
        let expected = reports.flatMap { report in
            (report.cause?.evidence ?? []).map { fact -> [String?] in
                [report.id.description, fact.name, fact.value]
            }
        }
        #expect(Set(rows) == Set(expected) && !rows.isEmpty)
        #expect(rows.count == expected.count)
        #expect(try database.number("select count(*) from evidence") <= 4)
        #expect(try checkStore(path: central).isEmpty)
        try expectSound(central)
    }

    /// As an older program has left them.
    @Test func `rows that have their evidence as text are read, imported and compared`() throws {
        let reports = try makeCentral(seed: 2)
        let database = try RawDatabase(central)
        try database.query(
            """
            attach '\(directory("agent.sqlite"))' as agent;
            update report set evidence = null, evidence_numbers = null, cause_permille = null,
                checksum = null, (cause_confidence, cause_detail) =
                    (select cause_confidence, cause_detail from agent.report as r where r.seq = report.seq)
            where seq % 2 = 0;
            detach agent
            """)
        let text = "select count(*) from report where cause is not null and evidence is null"
        #expect(try database.number(text) > 5)
        #expect(try ReportStore.open(path: central).reports(ReportFilter()) == reports)
        #expect(try checkStore(path: central).isEmpty)
        let above = directory("above.sqlite")
        try ingest(central, into: above)
        #expect(try ReportStore.open(path: above).reports(ReportFilter()) == reports)
        // The same reports under the name of another store count once.
        try RawDatabase(directory("agent.sqlite")).query("update source set store = randomblob(16)")
        let again = try Ingest(into: central)
        #expect(try again.run([directory("agent.sqlite")]).addedCount == 0)
        try again.close()
    }

    @Test(arguments: [
        "update report set evidence = evidence + 1 where evidence = 1",
        "update report set evidence_numbers = x'00' where evidence is not null",
        "update evidence_fact set format = 'x' where evidence = 1",
        "delete from evidence_fact where evidence = 1",
        "update evidence_fact set format = '%d %s' where evidence = 1",
    ])
    func `shared evidence that was changed is found, and the store refused`(change: String) throws {
        _ = try makeCentral(seed: 3)
        try RawDatabase(central).query(change)
        #expect(try !checkStore(path: central).isEmpty)
        let above = try Ingest(into: directory("above.sqlite"))
        let outcome = try above.run([central]).files[0].outcome
        guard case .skipped(.damaged) = outcome else { Issue.record("\(outcome)"); return }
    }

    @Test func `evidence that no report has goes with the reports`() throws {
        _ = try makeCentral(seed: 4)
        _ = try pruneStore(path: central, startedBefore: UnixTime(microseconds: .max))
        let database = try RawDatabase(central)
        for table in ["evidence", "evidence_fact"] {
            #expect(try database.number("select count(*) from \(table)") == 0, "\(table)")
        }
    }

    @Test func `new evidence stays text where very much is stored`() throws {
        try Ingest(into: central).close()
        let database = try RawDatabase(central)
        try database.query(
            """
            with recursive n (i) as (select 1 union all select i + 1 from n where i < 20000)
            insert into evidence (hash) select i from n
            """)
        let reports = try makeCentral(seed: 7)
        #expect(try database.number("select count(*) from evidence") == 20_000)
        #expect(try database.number("select count(evidence) from report") == 0)
        let stored = try ReportStore.open(path: central).reports(ReportFilter())
        #expect(Set(stored) == Set(reports))
    }

    @Test func `every reader puts evidence together`() throws {
        let reports = try makeCentral(seed: 5)
        let causes = Dictionary(uniqueKeysWithValues: reports.map { ($0.id, $0.cause) })
        let store = try ReportStore.open(path: central)
        var outlined: [UniqueID: StallCause?] = [:]
        try store.forEachOutline(ReportFilter(), limit: nil, withThreads: false) { outline, _ in
            outlined[outline.report.id] = .some(outline.report.cause)
        }
        #expect(outlined == causes)
        var filter = ReportFilter()
        filter.verdicts = Set(StallVerdict.all)
        var traced: [UniqueID: StallCause?] = [:]
        try store.forEachStall(filter, in: .newestFirst, limit: nil) { stall, _ in
            traced[stall.id] = .some(stall.cause)
        }
        #expect(traced == causes)
        #expect(Set(try store.reports(ReportFilter())) == Set(reports))
    }

    @Test func `a confidence in thousandths takes no eight bytes`() throws {
        var generator = ReportGenerator(seed: 6)
        let agent = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        for confidence in [0, 0.98, 0.911, 1, 1.0 / 3] {
            var report = generator.report(state: .ended)
            report.cause = StallCause(
                .cpu, confidence: confidence, evidence: [CauseEvidence("state", "R")])
            try agent.record(report, images: generator.images)
        }
        try agent.close()
        try ingest(directory("agent.sqlite"), into: central)
        let database = try RawDatabase(central)
        #expect(
            try database.query("select cause_permille from report order by seq").map { $0[0] }
                == ["0", "980", "911", "1000", nil])
        #expect(try database.number("select count(cause_confidence) from report") == 1)
        #expect(
            try database.query("select cause_confidence from stall order by seq").prefix(4)
                .map { $0[0] } == ["0.0", "0.98", "0.911", "1.0"])
    }

    /// Before, 276 by pages, of which 94 were evidence.
    @Test func `a real report takes at most 160 bytes of a central store, its evidence 30`() throws
    {
        let demo = try ReportStore.open(
            path: Repository.root.appending(path: "sample-data/demo.sqlite").path)
        let reports = try demo.reports(ReportFilter()).sorted { $0.start < $1.start }
        let images = try demo.images(ofRun: reports[0].run.id)
        var random = SeededGenerator(seed: 1)
        var paths: [String] = []
        for number in 0..<100 {
            paths.append(directory("\(number).sqlite"))
            var run = reports[0].run
            run.id = UniqueID(version7At: run.started, random: &random)
            let agent = try AgentStore(path: paths[number], run: run)
            for report in reports {
                var report = report
                report.id = UniqueID(version7At: report.start, random: &random)
                report.run = run
                // The demo's store was written before agents rounded these.
                for index in report.samples.indices {
                    report.samples[index].offset = report.samples[index].offset.inMicroseconds
                    report.samples[index].captureCost =
                        report.samples[index].captureCost.inMicroseconds
                }
                let weights = sampleWeights(
                    report.samples.map { $0.isLate ? nil : $0.offset.nanoseconds },
                    of: report.duration.nanoseconds)
                for index in weights.indices {
                    report.samples[index].weight = .nanoseconds(weights[index])
                }
                try agent.record(report, images: images)
            }
            try agent.close()
        }
        let ingest = try Ingest(into: central)
        #expect(try ingest.run(paths).addedCount == 1500)
        try ingest.close()
        let database = try RawDatabase(central)
        // Without the roots of its indexes, which are empty: three pages in a store of any size.
        let bytes = try database.number("select sum(pgsize) from dbstat where name = 'report'")
        #expect(bytes / 1500 <= 160, "\(Double(bytes) / 1500) bytes a report")
        let indexes = """
            select sum(payload) from dbstat where name in (
                select name from sqlite_schema where tbl_name = 'report' and type = 'index')
            """
        #expect(try database.number(indexes) == 0)
        let evidence = try database.number(
            "select sum(length(evidence_numbers) + 2 + (evidence > 127)) + 1500 from report")
        #expect(evidence / 1500 <= 30, "\(Double(evidence) / 1500) bytes of evidence a report")
    }
}

extension Duration {
    fileprivate var inMicroseconds: Duration { .microseconds(nanoseconds / 1000) }
}
