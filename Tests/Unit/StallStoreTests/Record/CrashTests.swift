import Foundation
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: what a call has returned from survives kill -9, and what was killed half-way does no harm.
/// Method: a child process prints when a report is durable and is killed at one of these lines.
@Suite struct CrashTests {
    let directory = try! TemporaryDirectory()

    @Test(arguments: [1, 2, 17, 60])
    func `no acknowledged report is lost when the agent is killed`(lines: Int) throws {
        let path = directory("agent.sqlite")
        let said = try ChildProcess("write", path).killAfter(lines: lines)
        #expect(said.count >= lines)
        // The store is read as it was left: with its log, and without recovery by another process.
        let reader = try ReportStore.open(path: path)
        try expectAll(said, in: reader.reports(ReportFilter()))
        let killed = try reader.reports(ReportFilter()).first { $0.state == .open }

        // The next agent in this store finds it dead in its stall.
        let store = try AgentStore(path: path, run: ReportGenerator(seed: 1).run)
        try store.closeAbandoned()
        try store.close()
        let closed = try ReportStore.open(path: path).reports(ReportFilter())
        try expectAll(said, in: closed)
        #expect(!closed.contains { $0.state == .open })
        if let killed {
            #expect(
                closed.contains {
                    $0.id == killed.id && $0.state == .hang && $0.duration == killed.duration
                })
        }
        try expectSound(path)
    }

    @Test
    func `ingest makes hangs of a killed process's stalls, and leaves the agent's store alone`()
        throws
    {
        let path = directory("agent.sqlite")
        let said = try ChildProcess("write", path).killAfter(lines: 1)
        let before = try files(besides: "central")
        let ingest = try Ingest(into: directory("central.sqlite"))
        _ = try ingest.run([path])
        let central = try ReportStore.open(path: directory("central.sqlite"))
        let reports = try central.reports(ReportFilter())
        try expectAll(said, in: reports)
        #expect(!reports.contains { $0.state == .open })
        #expect(try files(besides: "central") == before)
        try ingest.close()
    }

    /// A child's only report, open again, in the name of this living process.
    private func storeWithOpenStall(_ path: String) throws -> RawDatabase {
        let child = try ChildProcess("write", path, "1")
        _ = try child.finish()
        let database = try RawDatabase(path)
        let status = try String(contentsOfFile: "/proc/self/stat", encoding: .utf8)
        let ticks = status.drop { $0 != ")" }.split(separator: " ")[20]
        try database.query(
            """
            update source set revision = revision + 1;
            update report set state = 0, checksum = null, revision = (select revision from source);
            update process_run set checksum = null, pid = \(getpid()), start_ticks = \(ticks)
            """)
        return database
    }

    @Test func `an open stall of a living process stays open, also in the central store`() throws {
        let path = directory("agent.sqlite")
        let database = try storeWithOpenStall(path)
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([path]).addedCount == 1)
        let central = try ReportStore.open(path: directory("central.sqlite"))
        #expect(try central.reports(ReportFilter()).map(\.state) == [.open])
        // It ends: the same report, now with its end.
        try database.query(
            """
            update source set revision = revision + 1;
            update report set state = 1, duration_ns = 9, checksum = null, revision = (select revision from source)
            """)
        #expect(try ingest.run([path]).changedCount == 1)
        #expect(try central.reports(ReportFilter()).map(\.state) == [.ended])
        try ingest.close()
    }

    @Test func `a pid that was given to another process since is a dead process`() throws {
        let path = directory("agent.sqlite")
        _ = try storeWithOpenStall(path)
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([path]).addedCount == 1)
        try ingest.close()
        let central = try ReportStore.open(path: directory("central.sqlite"))
        #expect(try central.reports(ReportFilter()).map(\.state) == [.open])
        try RawDatabase(directory("central.sqlite")).query("update process_run set start_ticks = 1")
        let again = try Ingest(into: directory("central.sqlite"))
        #expect(try again.run([path]).changedCount == 1)
        #expect(try central.reports(ReportFilter()).map(\.state) == [.hang])
        #expect(try again.run([path]).changedCount == 0)
    }

    /// How a copied store, or one on a disk mounted read-only, is read.
    @Test func `a killed agent's store is read whole without its log's index`() throws {
        let path = directory("agent.sqlite")
        let said = try ChildProcess("write", path).killAfter(lines: 40)
        #expect(
            try #require(FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int)
                > 0)
        try FileManager.default.removeItem(atPath: path + "-shm")
        let before = try files(besides: "central")
        try expectAll(said, in: ReportStore.open(path: path).reports(ReportFilter()))
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([path]).addedCount >= 20)
        #expect(try files(besides: "central") == before)
    }

    @Test(arguments: [1, 30, 59])
    func `ingest killed half-way and run again imports everything once`(files count: Int) throws {
        try FileManager.default.createDirectory(
            atPath: directory("in"), withIntermediateDirectories: false)
        var ids: [UniqueID] = []
        for seed in 1...60 as ClosedRange<UInt64> {
            var generator = ReportGenerator(seed: seed)
            let store = try AgentStore(path: directory("in/\(seed).sqlite"), run: generator.run)
            for _ in 0..<3 {
                let report = generator.report()
                ids.append(report.id)
                try store.record(report, images: generator.images)
            }
            try store.close()
        }
        let central = directory("central.sqlite")
        _ = try ChildProcess("ingest", central, directory("in")).killAfter(lines: count)
        let said = try ChildProcess("ingest", central, directory("in")).finish()
        let ingest = try Ingest(into: central)
        let again = try ingest.run([directory("in")])
        #expect(again.addedCount == 0 && again.changedCount == 0 && again.skippedCount == 0)
        try ingest.close()
        #expect(said.last?.hasSuffix("skipped 0") == true)
        let reports = try ReportStore.open(path: central).reports(ReportFilter())
        #expect(reports.count == ids.count && Set(reports.map(\.id)) == Set(ids))
        try expectSound(central)
    }

    /// Goal: a large store that is imported in parts is complete after the next run, wherever the job was killed.
    /// Method: eight parts, killed behind one of them; in between the agent goes on with old reports and new ones.
    @Test(arguments: [1, 2, 4, 6, 8])
    func `an import in parts that is killed is completed, nothing twice, nothing lost`(parts: Int)
        throws
    {
        let (path, central) = (directory("agent.sqlite"), directory("central.sqlite"))
        var generator = ReportGenerator(seed: UInt64(parts))
        let agent = try AgentStore(path: path, run: generator.run)
        var open: [StallReport] = []
        func record(_ state: StallState) throws {
            var report = generator.report(state: state)
            report.samples = [generator.sample()]
            report.samples[0].failure = String(repeating: "x", count: 300_000)
            try agent.record(report, images: generator.images)
            if state == .open { open.append(report) }
        }
        for number in 0..<50 { try record(number % 3 == 0 ? .open : .ended) }
        let before = try ReportStore.open(path: path).reports(ReportFilter())
        _ = try ChildProcess("ingest-parts", "6", central, path).killAfter(lines: parts)
        let killed = try ReportStore.open(path: central)
        let (status, taken) = (try killed.status(), try killed.reports(ReportFilter()))
        #expect(status.partialSourceCount == 1 || taken.count == 50)
        // What was committed is as it was.
        let known = Set(before.map(\.withoutNames))
        #expect(taken.allSatisfy { known.contains($0.withoutNames) })
        #expect(try checkStore(path: central).isEmpty)
        for index in [12, 7, 2, 0] {
            var report = open.remove(at: index)
            report.state = .ended
            try agent.record(report, images: generator.images)
        }
        for _ in 0..<4 { try record(.ended) }

        let said = try ChildProcess("ingest-parts", "6", central, path).finish()
        let whole = try ReportStore.open(path: central)
        #expect(try whole.status().partialSourceCount == 0)
        let added = said.last?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        #expect(added == 54 - taken.count)
        #expect(
            try whole.reports(ReportFilter()).map(\.withoutNames)
                == ReportStore.open(path: path).reports(ReportFilter()).map(\.withoutNames))
        #expect(try checkStore(path: central).isEmpty)
        try expectSound(central)
        try agent.close()
    }

    @Test func `two ingests at once, of the same files in opposite order, take everything once`()
        throws
    {
        try FileManager.default.createDirectory(
            atPath: directory("in"), withIntermediateDirectories: false)
        var paths: [String] = []
        for seed in 1...20 as ClosedRange<UInt64> {
            var generator = ReportGenerator(seed: seed)
            paths.append(directory("in/\(seed).sqlite"))
            let store = try AgentStore(path: paths.last!, run: generator.run)
            for _ in 0..<10 { try store.record(generator.report(), images: generator.images) }
            try store.close()
        }
        let central = directory("central.sqlite")
        let children = [
            try ChildProcess(["ingest", central] + paths),
            try ChildProcess(["ingest", central] + paths.reversed()),
        ]
        let lines = try children.map { try #require($0.finish().last).split(separator: " ") }
        #expect(lines.reduce(0) { $0 + Int($1[1])! } == 200)
        #expect(try ReportStore.open(path: central).status().reportCount == 200)
        try expectSound(central)
    }

    @Test func `several processes write one store`() throws {
        let path = directory("agent.sqlite")
        let children = try (0..<4).map { _ in try ChildProcess("write", path, "25") }
        var said: [String] = []
        for child in children { said += try child.finish() }
        #expect(said.count == 200)
        let reader = try ReportStore.open(path: path)
        try expectAll(said, in: reader.reports(ReportFilter()))
        #expect(try reader.status().reportCount == 100)
        #expect(try reader.status().runCount == 4)
        try expectSound(path)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["agent.sqlite"])
    }

    @Test func `a stall is in the store while it lasts, for every other process to read`() throws {
        let path = directory("agent.sqlite")
        let child = try ChildProcess("stall", path)
        let said = try child.read(lines: 1)
        let reports = try ReportStore.open(path: path).reports(ReportFilter())
        #expect(reports.map { "\($0.id) \($0.state)" } == said)
        #expect(reports[0].run.app == "victim" && reports[0].samples.count == 3)
        // And by another program than ours.
        let rows = try RawDatabase(path).query("select id || ' ' || state from stall")
        #expect(rows == [[said[0]]])
        #expect(try child.killAfter(lines: 0) == [])
    }

    /// Expects each id that was said, in the state that was said or a later one.
    func expectAll(_ said: [String], in reports: [StallReport]) throws {
        let states = Dictionary(uniqueKeysWithValues: reports.map { ($0.id.description, $0.state) })
        for line in said {
            let words = line.split(separator: " ").map(String.init)
            let state = try #require(states[words[0]])
            if words[1] == "ended" { #expect(state == .ended) }
        }
    }

    /// Every file but those of that name, with its bytes' hash and time.
    func files(besides name: String) throws -> [String: String] {
        var files: [String: String] = [:]
        for file in try FileManager.default.contentsOfDirectory(atPath: directory.path)
        where !file.hasPrefix(name) {
            let bytes = try Data(contentsOf: URL(filePath: directory(file)))
            // The log's index is where readers meet: it is memory, not content.
            files[file] = file.hasSuffix("-shm") ? "" : "\(bytes.count) \(bytes.hashValue)"
        }
        return files
    }
}
