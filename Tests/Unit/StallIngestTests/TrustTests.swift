import Foundation
import Glibc
import StallModel
@testable import StallArchive
@testable import StallIngest
import StallQuery
@testable import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: nothing of a source is lost, and its claims bind only itself.
/// Method: copies that diverge, stores with false claims, and files that are not stores, together with honest ones.
@Suite struct TrustTests {
    let directory = try! TemporaryDirectory()

    /// Writes this many reports, like an agent that opens the store for them.
    @discardableResult
    private func write(_ count: Int, to name: String, seed: UInt64) throws -> [StallReport] {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: directory(name), run: generator.run)
        var reports: [StallReport] = []
        for _ in 0..<count {
            reports.append(generator.report(state: .ended))
            try store.record(reports.last!, images: generator.images)
            try store.symbolize(generator.names(of: reports.last!))
        }
        try store.close()
        return reports
    }

    private func copy(_ name: String, to other: String) throws {
        try FileManager.default.copyItem(atPath: directory(name), toPath: directory(other))
    }

    private func ids(_ path: String) throws -> [UniqueID] {
        try ReportStore.open(path: path).reports(ReportFilter()).map(\.id).sorted {
            $0.description < $1.description
        }
    }

    @Test func `a copy that is written elsewhere gets a name of its own`() throws {
        let first = try write(3, to: "a.sqlite", seed: 1)
        try copy("a.sqlite", to: "b.sqlite")
        let ours = try write(4, to: "a.sqlite", seed: 2)
        let theirs = try write(2, to: "b.sqlite", seed: 3)
        #expect(try RawDatabase(directory("a.sqlite")).number("select count(*) from source") == 1)
        #expect(try RawDatabase(directory("b.sqlite")).number("select count(*) from source") == 2)
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([directory("b.sqlite"), directory("a.sqlite")]).addedCount == 9)
        #expect(try ingest.run([directory("a.sqlite"), directory("b.sqlite")]).addedCount == 0)
        try ingest.close()
        let expected = (first + ours + theirs).map(\.id).sorted { $0.description < $1.description }
        #expect(try ids(directory("central.sqlite")) == expected)
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
    }

    /// A cloned machine cannot notice it: only content shows it.
    @Test(arguments: [["a", "b"], ["b", "a"], ["a", "b", "a", "b"]])
    func `both ways of a copy are kept, in whatever order they come`(order: [String]) throws {
        try write(3, to: "a.sqlite", seed: 1)
        try copy("a.sqlite", to: "b.sqlite")
        try write(4, to: "a.sqlite", seed: 2)
        // The copy does not know that it is one.
        let place = StoreLocation(of: directory("b.sqlite"))
        try RawDatabase(directory("b.sqlite")).query(
            "update source set inode = \(place.inode), device = \(place.device)")
        try write(2, to: "b.sqlite", seed: 3)
        let ingest = try Ingest(into: directory("central.sqlite"))
        for name in order {
            #expect(try ingest.run([directory(name + ".sqlite")]).skippedCount == 0)
        }
        #expect(try ingest.run([directory("a.sqlite"), directory("b.sqlite")]).addedCount == 0)
        #expect(try ids(directory("central.sqlite")).count == 9)
        // Both go on, and an older copy of one brings nothing.
        try copy("b.sqlite", to: "backup.sqlite")
        try write(5, to: "b.sqlite", seed: 4)
        try write(1, to: "a.sqlite", seed: 5)
        #expect(
            try ingest.run([
                directory("backup.sqlite"), directory("a.sqlite"), directory("b.sqlite"),
            ]).addedCount == 6)
        try ingest.close()
        #expect(try ids(directory("central.sqlite")).count == 15)
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
        // And on into a store above it, together with one of the sources.
        let above = try Ingest(into: directory("above.sqlite"))
        _ = try above.run([
            directory("a.sqlite"), directory("central.sqlite"), directory("b.sqlite"),
        ])
        try above.close()
        #expect(try ids(directory("above.sqlite")).count == 15)
    }

    /// The reports that distinguish the two are pruned, and the rest is from the time when they were one.
    @Test func `a copy that is pruned does not come again with the other one`() throws {
        let (old, new) = (UnixTime(microseconds: 1 << 50), UnixTime(microseconds: 2 << 50))
        func write(_ name: String, seed: UInt64, start: UnixTime, losses: Int = 0) throws {
            var generator = ReportGenerator(seed: seed)
            let store = try AgentStore(path: directory(name), run: generator.run)
            // Each uses a revision.
            for _ in 0..<losses { try store.countLosses(1, reason: .dropped) }
            var report = generator.report(state: .ended)
            report.start = start
            try store.record(report, images: generator.images)
            try store.close()
        }
        try write("a.sqlite", seed: 1, start: new)
        try copy("a.sqlite", to: "b.sqlite")
        try write("a.sqlite", seed: 2, start: old, losses: 20)
        let place = StoreLocation(of: directory("b.sqlite"))
        try RawDatabase(directory("b.sqlite")).query(
            "update source set inode = \(place.inode), device = \(place.device)")
        try write("b.sqlite", seed: 3, start: old)
        let central = directory("c.sqlite")
        func ingest(_ names: String...) throws -> Int {
            let ingest = try Ingest(into: central)
            defer { try? ingest.close() }
            return try ingest.run(names.map { directory($0) }).addedCount
        }
        #expect(try ingest("a.sqlite", "b.sqlite") == 3)
        #expect(try pruneStore(path: central, startedBefore: new).deletedCount == 2)
        #expect(try ingest("b.sqlite", "a.sqlite") == 0)
        // Nor when one continued.
        try write("a.sqlite", seed: 4, start: new)
        #expect(try ingest("b.sqlite", "a.sqlite") == 1)
    }

    /// The two have no other report that would show that they are two; their revisions say nothing of each other.
    @Test(arguments: [["open", "long", "short"], ["short", "long"], ["long", "open", "short"]])
    func `of two endings of one stall the longer stays`(order: [String]) throws {
        var generator = ReportGenerator(seed: 1)
        let store = try AgentStore(path: directory("open.sqlite"), run: generator.run)
        var report = generator.report(state: .open)
        report.duration = .seconds(1)
        try store.record(report, images: generator.images)
        try store.close()
        for (name, seconds, losses) in [("long", 9, 1), ("short", 3, 5)] {
            try copy("open.sqlite", to: name + ".sqlite")
            let place = StoreLocation(of: directory(name + ".sqlite"))
            try RawDatabase(directory(name + ".sqlite")).query(
                "update source set inode = \(place.inode), device = \(place.device)")
            let store = try AgentStore(path: directory(name + ".sqlite"), run: generator.run)
            for _ in 0..<losses { try store.countLosses(1, reason: .dropped) }
            (report.state, report.duration) = (.ended, .seconds(seconds))
            try store.record(report, images: generator.images)
            try store.close()
        }
        func duration(_ path: String) throws -> Duration? {
            try ReportStore.open(path: path).reports(ReportFilter()).first?.duration
        }
        let ingest = try Ingest(into: directory("central.sqlite"))
        var missing = 0
        for name in order {
            let summary = try ingest.run([directory(name + ".sqlite")], verifies: true)
            if name == "long" { missing = summary.files[0].missingCount }
        }
        try ingest.close()
        // A report before the position of its source is not read again: the file is kept then.
        let kept = try duration(directory("central.sqlite"))
        #expect(kept == .seconds(9) || missing == 1, "\(String(describing: kept)), \(missing)")
        // As lines.
        let lines = try Ingest(into: directory("lines.sqlite"))
        for name in order {
            let file = directory(name + ".jsonl")
            try "{}".write(toFile: file, atomically: false, encoding: .utf8)
            let store = try ReportStore.open(path: directory(name + ".sqlite"))
            let origins = try store.origins()
            let feed = try store.reports(ReportFilter()).map {
                PortableReport(report: $0, origin: origins[$0.id], images: [])
            }
            _ = try lines.run(
                [file], lines: { _ throws(StoreError) in ListFeed(reports: feed) })
        }
        try lines.close()
        #expect(try duration(directory("lines.sqlite")) == .seconds(9))
        #expect(try checkStore(path: directory("lines.sqlite")).isEmpty)
    }

    @Test(arguments: [600, 1 << 40, 1 << 60])
    func `a store that claims another's identity suppresses no reports`(revision: Int) throws {
        try write(3, to: "good.sqlite", seed: 1)
        try copy("good.sqlite", to: "bad.sqlite")
        try RawDatabase(directory("bad.sqlite")).query(
            """
            update report set revision = \(revision) - seq, seq = \(revision) - seq,
                id = randomblob(16), checksum = null;
            update source set revision = \(revision)
            """)
        let ingest = try Ingest(into: directory("central.sqlite"))
        _ = try ingest.run([directory("bad.sqlite")])
        #expect(try ingest.run([directory("good.sqlite")]).addedCount == 3)
        try write(2, to: "good.sqlite", seed: 2)
        #expect(
            try ingest.run([directory("bad.sqlite"), directory("good.sqlite")]).addedCount == 2)
        try ingest.close()
        #expect(
            try Set(ids(directory("good.sqlite"))).isSubset(of: ids(directory("central.sqlite"))))
    }

    @Test func `names once known are not replaced by another source`() throws {
        try write(3, to: "good.sqlite", seed: 1)
        try copy("good.sqlite", to: "bad.sqlite")
        try RawDatabase(directory("bad.sqlite")).query(
            """
            update source set store = randomblob(16);
            update report set id = randomblob(16), checksum = null;
            update location set detail = 2147483647
            """)
        let names = try RawDatabase(directory("bad.sqlite")).query("select id from function")
        for (number, row) in names.enumerated() {
            let hash = ContentHash.function(name: "evil\(number)()", rawName: nil, file: nil)
            try RawDatabase(directory("bad.sqlite")).query(
                """
                update function set name = 'evil\(number)()', raw_name = null, file = null,
                    hash = \(hash) where id = \(row[0]!)
                """)
        }
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([directory("good.sqlite")]).addedCount == 3)
        let before = try ReportStore.open(path: directory("central.sqlite")).reports(ReportFilter())
        _ = try ingest.run([directory("bad.sqlite")])
        try ingest.close()
        let after = try ReportStore.open(path: directory("central.sqlite")).reports(ReportFilter())
        for report in before { #expect(after.contains(report)) }
        #expect(
            try storeNotes(path: directory("central.sqlite")).first?.contains("other symbols")
                == true
        )
    }

    @Test func `a source that names as much otherwise is counted`() throws {
        try write(3, to: "good.sqlite", seed: 1)
        try copy("good.sqlite", to: "bad.sqlite")
        try RawDatabase(directory("bad.sqlite")).query("update source set store = randomblob(16)")
        let rows = try RawDatabase(directory("bad.sqlite")).query(
            """
            select distinct function.id, function.file from location_frame
            join function on function.id = location_frame.function
            """)
        for (number, row) in rows.enumerated() {
            let hash = ContentHash.function(name: "evil\(number)()", rawName: nil, file: row[1])
            try RawDatabase(directory("bad.sqlite")).query(
                """
                update function set name = 'evil\(number)()', raw_name = null, hash = \(hash)
                where id = \(row[0]!)
                """)
        }
        let ingest = try Ingest(into: directory("central.sqlite"))
        _ = try ingest.run([directory("good.sqlite")])
        #expect(try storeNotes(path: directory("central.sqlite")).isEmpty)
        _ = try ingest.run([directory("bad.sqlite"), directory("good.sqlite")])
        try ingest.close()
        let notes = try storeNotes(path: directory("central.sqlite"))
        #expect(notes.contains { $0.contains("other symbols") }, "\(notes)")
    }

    @Test func `a function that is known by its hash keeps its own text`() throws {
        try write(3, to: "good.sqlite", seed: 1)
        // What is in no function is read to its end.
        try RawDatabase(directory("good.sqlite")).query(
            "delete from location_frame where function is null")
        try copy("good.sqlite", to: "bad.sqlite")
        try RawDatabase(directory("bad.sqlite")).query(
            """
            update source set store = randomblob(16);
            update report set id = randomblob(16), checksum = null;
            update function set name = 'evil()'
            """)
        let ingest = try Ingest(into: directory("central.sqlite"))
        _ = try ingest.run([directory("good.sqlite")])
        #expect(try ingest.run([directory("bad.sqlite")]).addedCount == 3)
        try ingest.close()
        let central = try RawDatabase(directory("central.sqlite"))
        #expect(try central.number("select count(*) from function where name = 'evil()'") == 0)
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
    }

    /// Only JSON lines filled the first central store, so it has no watermarks of its sources.
    @Test func `a central store of lines can be imported into another one`() throws {
        let reports = try write(4, to: "a.sqlite", seed: 1)
        let origins = try ReportStore.open(path: directory("a.sqlite")).origins()
        let first = try Ingest(into: directory("first.sqlite"))
        let feed = reports.map {
            PortableReport(report: $0, origin: origins[$0.id], images: [])
        }
        try "{}".write(toFile: directory("x.jsonl"), atomically: false, encoding: .utf8)
        #expect(
            try first.run(
                [directory("x.jsonl")],
                lines: { _ throws(StoreError) in ListFeed(reports: feed) }
            ).addedCount == 4)
        try first.close()
        let second = try Ingest(into: directory("second.sqlite"))
        let summary = try second.run([directory("first.sqlite")], verifies: true)
        #expect(summary.addedCount == 4 && summary.files[0].missingCount == 0)
        #expect(summary.files[0].isFinished)
        #expect(try second.run([directory("first.sqlite")]).addedCount == 0)
        // Further content of the agent's store is not assumed to be here.
        try write(2, to: "a.sqlite", seed: 2)
        #expect(try second.run([directory("a.sqlite")]).addedCount == 2)
        try second.close()
    }

    @Test(arguments: ["-wal", "-shm", "-journal"])
    func `only regular files take part in reading a store`(suffix: String) throws {
        try write(2, to: "a.sqlite", seed: 1)
        let place = directory("a.sqlite") + suffix
        func expectRefused() throws {
            let ingest = try Ingest(into: directory("central.sqlite"))
            let outcome = try ingest.run([directory("a.sqlite")]).files[0].outcome
            guard case .skipped(.badCompanion) = outcome else { Issue.record("\(outcome)"); return }
            #expect(throws: StoreError.self) {
                try AgentStore(path: directory("a.sqlite"), run: ReportGenerator(seed: 1).run)
            }
        }
        mkfifo(place, 0o600)
        try expectRefused()
        unlink(place)
        symlink("/dev/zero", place)
        try expectRefused()
    }

    @Test func `an open transaction that was cut short is rolled back in a copy`() throws {
        try write(2, to: "a.sqlite", seed: 1)
        let database = try RawDatabase(directory("a.sqlite"))
        try database.query(
            """
            pragma journal_mode = delete; pragma cache_size = 1; begin immediate;
            update process_run set app = 'uncommitted', checksum = null; create table t (x);
            with recursive n (i) as (select 1 union all select i + 1 from n limit 300)
            insert into t select hex(randomblob(2000)) from n
            """)
        // As a kill leaves it.
        try copy("a.sqlite", to: "b.sqlite")
        try copy("a.sqlite-journal", to: "b.sqlite-journal")
        try database.query("rollback")
        let before = try Data(contentsOf: URL(filePath: directory("b.sqlite")))
        let reports = try ReportStore.open(path: directory("b.sqlite")).reports(ReportFilter())
        #expect(reports.count == 2 && reports.allSatisfy { $0.run.app != "uncommitted" })
        #expect(try Data(contentsOf: URL(filePath: directory("b.sqlite"))) == before)
    }

    @Test(arguments: [
        "update report set duration_ns = 9223372036854775000",
        "update report set start_us = -1", "update report set cpu_ns = 1 << 62",
        "update process_run set app = hex(zeroblob(2000))",
        "update loop set threshold_ns = -5 - id",
        "update process_run set pid = -4", "update report set verdict = 99",
        "update report set state = -1", "update report set cause = 7000, cause_detail = x'ff'",
        "update report set id = x'01'", "update report set delayed_ns = -1",
        "update report set delayed_ns = duration_ns + 1",
        "insert into loss select 1, id, 77, 1, 1 from process_run", "update report set ending = 99",
        "insert into suppression select 1, 1, id, 7, 200, 1, 1 from loop",
        "update report set samples = zeroblob(5000000)",
        "insert into loss select 1, id, 3, 9223372036854775807, 1 from process_run",
        "insert into suppression select 1, 1, id, 7, 0, 9223372036854775807, 1 from loop",
        """
        insert into exposure select 1, 1, id, 1, 9223372036854775807, 1, 1, 1, 1, 1, x'' from loop
        """,
    ])
    func `values out of range are rejected, reported and removed`(change: String) throws {
        try write(2, to: "bad.sqlite", seed: 1)
        try write(3, to: "good.sqlite", seed: 2)
        let spoil =
            "pragma ignore_check_constraints = on; \(change);"
            + "update report set checksum = null; update loop set checksum = null;"
            + "update process_run set checksum = null"
        try RawDatabase(directory("bad.sqlite")).query(spoil)
        let central = directory("central.sqlite")
        let ingest = try Ingest(into: central)
        let summary = try ingest.run([directory("bad.sqlite"), directory("good.sqlite")])
        #expect(summary.skippedCount == 1 && summary.addedCount == 3)
        try ingest.close()
        #expect(try checkStore(path: central).isEmpty)
        // A store that an older program let them into.
        guard !change.contains("samples") else { return }
        try RawDatabase(central).query(spoil)
        _ = try ReportStore.open(path: central).status()
        #expect(try checkStore(path: central).contains { $0.isRepairable })
        try repairStore(path: central, grouper: PlainGrouper())
        #expect(try checkStore(path: central) == [])
    }

    @Test(arguments: [
        "update process_run set version = version || 'x'", "update loop set name = 'other'",
        "update report set duration_ns = duration_ns + 1", "update label set value = value || 'x'",
        "update report set state = 2", "update process_run set host = 'elsewhere'",
        "update report set delayed_ns = ifnull(delayed_ns - 1, duration_ns / 2)",
    ])
    func `a changed row is not what was written`(change: String) throws {
        try write(2, to: "a.sqlite", seed: 1)
        #expect(try checkStore(path: directory("a.sqlite")).isEmpty)
        try RawDatabase(directory("a.sqlite")).query(change)
        #expect(try !checkStore(path: directory("a.sqlite")).isEmpty)
        let ingest = try Ingest(into: directory("central.sqlite"))
        let outcome = try ingest.run([directory("a.sqlite")]).files[0].outcome
        guard case .skipped(.damaged) = outcome else { Issue.record("\(outcome)"); return }
    }

    /// The first to use a run's identifier once gave its app's name to every other.
    @Test(arguments: [["a", "b"], ["b", "a"]])
    func `a run's identifier binds only its source`(order: [String]) throws {
        var apps: [String: Int] = [:]
        let id = ReportGenerator(seed: 1).run.id
        for (name, seed, count) in [("a", 1, 3), ("b", 2, 2)] as [(String, UInt64, Int)] {
            var generator = ReportGenerator(seed: seed)
            var run = generator.run
            (run.id, run.app) = (id, name)
            let store = try AgentStore(path: directory(name + ".sqlite"), run: run)
            for _ in 0..<count {
                var report = generator.report(state: .ended)
                report.run = run
                try store.record(report, images: generator.images)
            }
            try store.close()
            apps[name] = count
        }
        let central = directory("central.sqlite")
        // Again in a new process, which knows of no run yet.
        for _ in 0..<2 {
            for name in order {
                let ingest = try Ingest(into: central)
                #expect(try ingest.run([directory(name + ".sqlite")]).skippedCount == 0)
                try ingest.close()
            }
        }
        let selection = try ReportStore.open(path: central).summaries(
            ReportFilter(), ofGroups: nil)
        let found = selection.reports.reduce(into: [:]) {
            $0[selection.runs[$1.run].app, default: 0] += 1
        }
        #expect(found == apps)
        #expect(try checkStore(path: central).isEmpty)
        #expect(
            try storeNotes(path: central) == [
                "1 process runs have the identifier of another app, version or host; each keeps its own reports"
            ])
        // Programs that are not ours have identifiers of any version.
        try write(2, to: "c.sqlite", seed: 3)
        let alone = try Ingest(into: directory("alone.sqlite"))
        #expect(try alone.run([directory("c.sqlite")]).skippedCount == 0)
        try alone.close()
        try RawDatabase(directory("alone.sqlite")).query(
            "update process_run set uuid = x'01930000000080008000000000000001', checksum = null")
        #expect(try storeNotes(path: directory("alone.sqlite")) == [])
    }

    @Test(arguments: [(days: 400, isTaken: true), (401, false), (9 * 365, false)])
    func `no period of watched time lasts for years`(days: Int, isTaken: Bool) throws {
        let generator = ReportGenerator(seed: 1)
        let period = LoopExposure(
            run: generator.run, loop: "main", threshold: .milliseconds(250),
            start: UnixTime(microseconds: 1 << 50), watched: .seconds(days * 86_400))
        let store = try AgentStore(path: directory("a.sqlite"), run: generator.run)
        try store.record(period)
        try store.close()
        let raw = try RawDatabase(directory("a.sqlite"))
        // An agent does not write it.
        #expect(
            try raw.number("select watched_ns / 86400000000000 from exposure") == min(days, 400))
        try raw.query("update exposure set watched_ns = 86400000000000 * \(days)")
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([directory("a.sqlite")]).skippedCount == (isTaken ? 0 : 1))
        try ingest.close()
        #expect(try checkStore(path: directory("a.sqlite")).isEmpty == isTaken)
        let row = PortableRow.exposure(
            PortableExposure(
                store: UniqueID(bytes: [UInt8](repeating: 1, count: 16))!, revision: 1,
                exposure: period))
        let fault = Result { () throws(LineFault) in try row.checkLimits() }
        if case .failure(let fault) = fault {
            #expect(!isTaken && fault.reason.contains("more than 400 days in watched_ms"))
        } else {
            #expect(isTaken)
        }
    }

    /// `check` finds no fault in a store that `ingest` takes.
    @Test(arguments: [(revision: 1 << 60, isTaken: true), (1 << 60 + 1, false), (Int.max, false)])
    func `no period of watched time has a revision that no store gives out`(
        revision: Int, isTaken: Bool
    ) throws {
        let generator = ReportGenerator(seed: 1)
        let store = try AgentStore(path: directory("a.sqlite"), run: generator.run)
        try store.record(
            LoopExposure(
                run: generator.run, loop: "main", threshold: .milliseconds(250),
                start: UnixTime(microseconds: 1 << 50), watched: .seconds(60)))
        try store.close()
        try RawDatabase(directory("a.sqlite")).query(
            "update exposure set revision = \(revision)")
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([directory("a.sqlite")]).skippedCount == (isTaken ? 0 : 1))
        try ingest.close()
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
    }

    @Test func `a column that is computed refuses the store`() throws {
        try write(2, to: "a.sqlite", seed: 1)
        try RawDatabase(directory("a.sqlite")).query(
            "alter table loop add column big blob generated always as (zeroblob(900000000))")
        #expect(throws: StoreError.self) { try ReportStore.open(path: directory("a.sqlite")) }
    }
}

private struct ListFeed: ReportFeed {
    var reports: [PortableReport]
    var lineNumber = 0
    var byteCount = 0
    let hasFailed = false

    init(reports: [PortableReport]) { self.reports = reports }

    mutating func next() throws(LineFault) -> PortableRow? {
        guard lineNumber < reports.count else { return nil }
        lineNumber += 1
        return .report(reports[lineNumber - 1])
    }
}
