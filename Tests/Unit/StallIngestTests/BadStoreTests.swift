import CSQLite
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

/// Goal: whatever lies at a store's path, the answer is one clear line and the file is left as it
/// was. Method: files are made bad in every way that was thought of, through SQLite and byte by
/// byte.
@Suite struct BadStoreTests {
    let directory = try! TemporaryDirectory()
    let run = ReportGenerator(seed: 1).run

    /// Makes a sound store with some reports, and answers its path.
    func makeStore(_ name: String, seed: UInt64 = 1, count: Int = 20) throws -> String {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: directory(name), run: generator.run)
        for _ in 0..<count {
            let report = generator.report()
            try store.record(report, images: generator.images)
            try store.symbolize(generator.names(of: report))
        }
        try store.close()
        return directory(name)
    }

    @Test func `the error names what is at the path instead of a store`() throws {
        func expect(_ path: String, _ error: StoreError) {
            #expect(throws: error) { try ReportStore.open(path: path) }
            #expect(!error.description.contains("\n") && error.description.hasPrefix(path))
        }
        expect(directory("none.sqlite"), .missing(path: directory("none.sqlite")))
        expect(directory("none/none.sqlite"), .missing(path: directory("none/none.sqlite")))
        expect(directory.path, .notAFile(path: directory.path))
        expect("/dev/null", .notAFile(path: "/dev/null"))
        let empty = directory("empty.sqlite")
        try Data().write(to: URL(filePath: empty))
        expect(empty, .empty(path: empty))
        let text = directory("text.sqlite")
        try String(repeating: "not a database ", count: 1_000).write(
            toFile: text, atomically: false, encoding: .utf8)
        expect(text, .notADatabase(path: text, content: .text))
        let short = directory("short.sqlite")
        try "SQLite format 3\0".write(toFile: short, atomically: false, encoding: .utf8)
        expect(short, .notADatabase(path: short))
        let foreign = directory("foreign.sqlite")
        try RawDatabase(foreign).query("pragma application_id = 7; create table dishes (name text)")
        expect(foreign, .foreign(path: foreign, applicationID: 7))
        let gap = try makeStore("gap.sqlite")
        try RawDatabase(gap).query("drop view stall; drop view place; drop table loss")
        expect(gap, .damaged(path: gap, detail: "it has no table loss"))
        let trap = try makeStore("trap.sqlite")
        try RawDatabase(trap).query(
            """
            drop view stall; drop table report; create view report as
            with recursive n (i) as (select 1 union all select i + 1 from n) select i as source from n
            """)
        expect(trap, .damaged(path: trap, detail: "it has no table report"))
        let newer = try makeStore("newer.sqlite")
        try RawDatabase(newer).query("pragma user_version = 99")
        expect(newer, .newer(path: newer, version: 99, supported: newestSchemaVersion))
    }

    @Test(
        arguments: [
            ([0x1f, 0x8b, 8], FileContent.compressed), ([0x28, 0xb5, 0x2f, 0xfd, 0], .compressed),
            (Array("PK\u{3}\u{4}".utf8), .compressed), (Array("\u{7f}ELF\u{2}".utf8), .program),
            (Array("[{\"id\"".utf8), .array), (Array("{\"id\"".utf8), .lines),
            (Array("id,start,x\n".utf8), .csv), (Array("\u{1b}[1m1 stall\u{1b}[0m\n".utf8), .text),
            (Array("stall".utf8) + [0xc3], .text), (Array("stall".utf8) + [0xff, 0x41], .unknown),
            (Array("SQLite format 3\0".utf8), .unknown), ([0, 1, 2], .unknown),
        ] as [([UInt8], FileContent)])
    func `a file is guessed at by how it begins`(beginning: [UInt8], content: FileContent) {
        #expect(FileContent(beginning: beginning) == content)
    }

    @Test func `an agent writes to nothing but its own store`() throws {
        func expect(_ path: String, _ error: StoreError) throws {
            let before = try? Data(contentsOf: URL(filePath: path))
            #expect(throws: error) { try AgentStore(path: path, run: run) }
            #expect((try? Data(contentsOf: URL(filePath: path))) == before)
        }
        let target = try makeStore("target.sqlite")
        let link = directory("link.sqlite")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
        try expect(link, .symbolicLink(path: link))
        let dangling = directory("dangling.sqlite")
        try FileManager.default.createSymbolicLink(
            atPath: dangling, withDestinationPath: directory("nowhere"))
        try expect(dangling, .symbolicLink(path: dangling))
        #expect(!FileManager.default.fileExists(atPath: directory("nowhere")))
        try expect(directory.path, .notAFile(path: directory.path))
        let foreign = directory("foreign.sqlite")
        try RawDatabase(foreign).query("create table dishes (name text)")
        try expect(foreign, .foreign(path: foreign, applicationID: 0))
        let central = directory("central.sqlite")
        try Ingest(into: central).close()
        try expect(central, .wrongRole(path: central, expected: .agent))
        #expect(throws: StoreError.wrongRole(path: target, expected: .central)) {
            try Ingest(into: target)
        }
        let newer = try makeStore("newer.sqlite")
        try RawDatabase(newer).query("pragma user_version = 99")
        try expect(newer, .newer(path: newer, version: 99, supported: newestSchemaVersion))
        try expect(
            directory("none/agent.sqlite"),
            .cannotOpen(
                path: directory("none/agent.sqlite"), reason: "its directory does not exist"))
        try expect(
            "/proc/agent.sqlite",
            .cannotOpen(path: "/proc/agent.sqlite", reason: "its directory does not exist"))
    }

    @Test func `a new store belongs to its owner alone, with its log`() throws {
        let store = try AgentStore(path: directory("agent.sqlite"), run: run)
        try store.countLosses(1, reason: .dropped)
        for name in ["agent.sqlite", "agent.sqlite-wal", "agent.sqlite-shm"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: directory(name))
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        try store.close()
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["agent.sqlite"])
        // Byte 18: 1 is a plain file, 2 a file that needs its log.
        #expect(try Data(contentsOf: URL(filePath: directory("agent.sqlite")))[18] == 1)
    }

    @Test func `names that SQLite reads its own way are files here`() throws {
        let before = FileManager.default.currentDirectoryPath
        #expect(throws: StoreError.missing(path: ":memory:")) {
            try ReportStore.open(path: ":memory:")
        }
        #expect(throws: StoreError.missing(path: "file:x?mode=memory")) {
            try ReportStore.open(path: "file:x?mode=memory")
        }
        #expect(throws: StoreError.missing(path: "")) { try ReportStore.open(path: "") }
        #expect(FileManager.default.currentDirectoryPath == before)
    }

    /// An archiving job may move a store in the instant in which an agent opens it.
    @Test func `a store that was moved before the first write is not called read-only`() {
        #expect(StoreError(code: 1032, message: "", path: "a") == .moved(path: "a"))
        #expect(StoreError(code: 8, message: "", path: "a") == .readOnly(path: "a"))
    }

    /// Bad files among good ones: each is skipped with its reason, and the good ones are whole.
    @Test func `ingest skips what is broken, reports why, and imports the rest`() throws {
        let good = try makeStore("a-good.sqlite", seed: 1)
        let last = try makeStore("z-good.sqlite", seed: 2)
        let truncated = try makeStore("truncated.sqlite", seed: 3, count: 60)
        let handle = try FileHandle(forWritingTo: URL(filePath: truncated))
        try handle.truncate(atOffset: handle.seekToEnd() / 2)
        let foreign = directory("foreign.sqlite")
        try RawDatabase(foreign).query("create table dishes (name text)")
        let empty = directory("empty.sqlite")
        try Data().write(to: URL(filePath: empty))
        let text = directory("text.sqlite")
        try String(repeating: "x", count: 5_000).write(
            toFile: text, atomically: false, encoding: .utf8)
        let newer = try makeStore("newer.sqlite", seed: 4)
        try RawDatabase(newer).query("pragma user_version = 99")
        let locked = try makeStore("locked.sqlite", seed: 5)
        let holder = try RawDatabase(locked)
        try holder.query("pragma locking_mode = exclusive; begin exclusive")

        let ingest = try Ingest(into: directory("central.sqlite"))
        let summary = try ingest.run([directory.path, directory("missing.sqlite")])
        let reasons = Dictionary(
            uniqueKeysWithValues: summary.files.compactMap { file in
                if case .skipped(let error) = file.outcome { (file.path, error) } else { nil }
            })
        #expect(reasons[foreign] == .foreign(path: foreign, applicationID: 0))
        #expect(reasons[empty] == .empty(path: empty))
        #expect(reasons[text] == .notADatabase(path: text, content: .text))
        #expect(
            reasons[newer] == .newer(path: newer, version: 99, supported: newestSchemaVersion))
        #expect(reasons[locked] == .busy(path: locked))
        #expect(reasons[directory("missing.sqlite")] == .missing(path: directory("missing.sqlite")))
        guard case .damaged = reasons[truncated] else { throw reasons[truncated]! }
        #expect(reasons.count == 7)
        #expect(Set(summary.files.map(\.path)).subtracting(reasons.keys) == [good, last])
        #expect(summary.addedCount == 40)

        // A locked file is imported by the next run.
        try holder.query("rollback; pragma locking_mode = normal; select count(*) from report")
        #expect(try ingest.run([directory.path]).addedCount == 20)
        try ingest.close()
        try expectSound(directory("central.sqlite"))
    }

    /// Files that cannot be read in place, or are links, found by a search of a directory.
    @Test func `ingest is not led astray by what it finds`() throws {
        let agents = directory("agents")
        try FileManager.default.createDirectory(
            atPath: agents, withIntermediateDirectories: false)
        let outside = try makeStore("outside.sqlite", seed: 1)
        let link = agents + "/link.sqlite"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: outside)
        try FileManager.default.createSymbolicLink(
            atPath: agents + "/elsewhere", withDestinationPath: directory.path)
        // A terabyte that holds nothing, and one that says it is a store which must be copied to be read.
        let huge = agents + "/huge.sqlite"
        let copied = agents + "/copied.sqlite"
        try Data().write(to: URL(filePath: huge))
        let store = try makeStore("walmode.sqlite", seed: 2)
        try RawDatabase(store).query("pragma journal_mode = wal")
        try FileManager.default.moveItem(atPath: store, toPath: copied)
        for path in [huge, copied] {
            try FileHandle(forWritingTo: URL(filePath: path)).truncate(atOffset: 1 << 40)
        }
        // All that is left of a store is its log, and a store whose header is only there.
        try Data(count: 5_000).write(to: URL(filePath: agents + "/gone.sqlite-wal"))
        let empty = agents + "/empty.sqlite"
        try Data().write(to: URL(filePath: empty))
        try Data(count: 5_000).write(to: URL(filePath: empty + "-wal"))
        let good = agents + "/z-good.sqlite"
        try FileManager.default.moveItem(
            atPath: try makeStore("good.sqlite", seed: 3), toPath: good)

        let ingest = try Ingest(into: directory("central.sqlite"))
        let summary = try ingest.run([agents])
        let reasons = Dictionary(
            uniqueKeysWithValues: summary.files.compactMap { file in
                if case .skipped(let error) = file.outcome { (file.path, error) } else { nil }
            })
        #expect(reasons[link] == .symbolicLink(path: link))
        #expect(reasons[huge] == .notADatabase(path: huge))
        #expect(
            reasons[copied]
                == .cannotOpen(
                    path: copied, reason: "it must be copied to be read, and no space is left"))
        #expect(reasons[empty] == .empty(path: empty))
        #expect(reasons.count == 4)
        #expect(summary.files.map(\.path).contains(good))
        #expect(summary.addedCount == 20)
        // Who names the link means it.
        #expect(try ingest.run([link]).addedCount == 20)
        try ingest.close()
        try expectSound(directory("central.sqlite"))
    }

    /// Method: another user runs ingest, where this one may become another; rights do not bind root.
    @Test func `a store that may not be read is named, and the rest is imported`() throws {
        let secret = try makeStore("a-secret.sqlite", seed: 1)
        let good = try makeStore("good.sqlite", seed: 2)
        try FileManager.default.setAttributes([.posixPermissions: 0o000], ofItemAtPath: secret)
        // No process has it open any more, and its log is unreadable.
        let logless = try makeStore("logless.sqlite", seed: 3)
        let log = logless + "-wal"
        try Data(count: 5_000).write(to: URL(filePath: log))
        try FileManager.default.setAttributes([.posixPermissions: 0o000], ofItemAtPath: log)
        let central = directory("central.sqlite")
        guard getuid() != 0 else {
            for path in [good, logless] {
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o644], ofItemAtPath: path)
            }
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o777], ofItemAtPath: directory.path)
            let said = try ChildProcess("as-nobody", "ingest", central, directory.path).finish()
            #expect(said.last == "added 20 changed 0 skipped 2")
            return
        }
        let ingest = try Ingest(into: central)
        let summary = try ingest.run([directory.path])
        let reasons = [
            secret: "Permission denied", logless: "its -wal file: Permission denied", good: nil,
        ]
        for file in summary.files {
            let reason = try #require(reasons[file.path])
            #expect(
                file.outcome
                    == (reason.map { .skipped(.cannotOpen(path: file.path, reason: $0)) }
                        ?? .taken(added: 20, changed: 0)))
        }
        #expect(summary.addedCount == 20)
    }

    /// SQLite has no checksums: a flipped bit in a stack or a name is a store that says something
    /// false.
    @Test(arguments: ["stack", "location", "image", "function"])
    func `content that is not what was written refuses the file`(table: String) throws {
        let path = try makeStore("flipped.sqlite")
        let change =
            switch table {
            case "stack": "update stack set locations = x'0202'"
            case "location": "update location set offset = offset + 1"
            case "image": "update image set path = path || 'x'"
            default: "update function set name = 'somebodyElse()'"
            }
        try RawDatabase(path).query(change)
        let ingest = try Ingest(into: directory("central.sqlite"))
        let outcome = try ingest.run([path]).files[0].outcome
        guard case .skipped(.damaged) = outcome else { Issue.record("\(outcome)"); return }
        try ingest.close()
        #expect(try ReportStore.open(path: directory("central.sqlite")).status().reportCount == 0)
        #expect(try RawDatabase(directory("central.sqlite")).query("select * from stack").isEmpty)
    }

    @Test(arguments: [
        "update report set state = 9", "update report set verdict = -1",
        "update report set samples = x'02808080'", "update report set samples = x'120000000763'",
        "update report set samples = x'f0ffff7f00000007'", "delete from stack",
        "update report set duration_ns = -5", "update report set loop = 99", "delete from label",
        "update stack set locations = x'ffffffffffffffffffffff'",
        "update stack set locations = x'80'",
        "update process_run set uuid = zeroblob(16)", "delete from source", "drop table label",
        "update report set id = x'0102030405060708090a0b0c0d0e0f10'",
    ])
    func `contradictions neither crash a reader nor enter a central store`(damage: String) throws {
        let path = try makeStore("damaged.sqlite")
        try RawDatabase(path).query("pragma ignore_check_constraints = on; " + damage)
        let ingest = try Ingest(into: directory("central.sqlite"))
        let outcome = try ingest.run([path]).files[0].outcome
        if case .skipped(let error) = outcome { #expect(error.path == path) }
        if let reader = try? ReportStore.open(path: path) {
            _ = try? reader.summaries(ReportFilter())
            _ = try? reader.reports(ReportFilter())
            _ = try? reader.status()
        }
        try ingest.close()
        try expectSound(directory("central.sqlite"))
    }

    /// Goal: no byte of a file can crash us. Method: seeded bytes are overwritten, all over the
    /// file.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `random damage never crashes and never leaves half a file behind`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let path = try makeStore("smudged.sqlite", count: 30)
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        for _ in 0..<Int.random(in: 1...40, using: &random) {
            let index = Int.random(in: 0..<bytes.count, using: &random)
            bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        }
        try Data(bytes).write(to: URL(filePath: path))
        let ingest = try Ingest(into: directory("central.sqlite"))
        let summary = try ingest.run([path])
        try ingest.close()
        let count = try ReportStore.open(path: directory("central.sqlite")).status().reportCount
        if summary.skippedCount == 1 { #expect(count == 0) }
        try expectSound(directory("central.sqlite"))
        if let reader = try? ReportStore.open(path: path) {
            _ = try? reader.reports(ReportFilter())
            _ = try? reader.summaries(ReportFilter())
        }
    }
}
