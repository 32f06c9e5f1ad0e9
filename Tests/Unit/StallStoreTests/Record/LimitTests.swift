import Foundation
import Glibc
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: a store always stays within its limits, keeps the newest reports, and contains nothing that no report refers
/// to.
/// Method: many small reports under small limits; SQL queries what remains.
@Suite struct LimitTests {
    let directory = try! TemporaryDirectory()

    func used(_ path: String) -> Int64 {
        ["", "-wal"].reduce(0) { sum, suffix in
            let size = try? FileManager.default.attributesOfItem(atPath: path + suffix)[.size]
            return sum + Int64(size as? Int ?? 0)
        }
    }

    @Test func `a store that was moved away leaves the one in its place alone`() throws {
        var first = ReportGenerator(seed: 1)
        var second = ReportGenerator(seed: 2)
        let path = directory("agent.sqlite")
        let old = try AgentStore(path: path, run: first.run)
        try old.record(first.report(), images: first.images)
        for suffix in ["", "-wal", "-shm"] {
            #expect(rename(path + suffix, path + ".old" + suffix) == 0)
        }
        let new = try AgentStore(path: path, run: second.run)
        let report = second.report(state: .ended)
        try new.record(report, images: second.images)
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)

        let error = #expect(throws: StoreError.self) {
            try old.record(first.report(), images: first.images)
        }
        #expect(error == .moved(path: path))
        try old.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == files)
        #expect(try ReportStore.open(path: path).reports(ReportFilter()).map(\.id) == [report.id])
        try new.close()
        #expect(try ReportStore.open(path: path + ".old").reports(ReportFilter()).count == 1)
    }

    @Test func `the newest reports are kept within the quota, and no leftovers of the others`()
        throws
    {
        var generator = ReportGenerator(seed: 1)
        var limits = StoreLimits()
        // An empty store's tables and indexes take 250,000 of them.
        limits.bytes = 600_000
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run, limits: limits)
        var ids: [UniqueID] = []
        var largest: Int64 = 0
        for _ in 0..<800 {
            var report = generator.report(state: .ended)
            // Unique locations, so that eviction leaves locations without a reference.
            for index in report.samples.indices where !report.samples[index].locations.isEmpty {
                report.samples[index].locations[0].offset = UInt64(ids.count)
            }
            try store.record(report, images: generator.images)
            // As in the agent: a location is looked up once.
            let unnamed = try Set(store.unsymbolized(Array(report.places)))
            try store.symbolize(generator.names(of: report).filter { unnamed.contains($0.key) })
            ids.append(report.id)
            largest = max(largest, used(path))
        }
        try store.close()
        // The log is a megabyte at most, and what the file may exceed by until the next check is
        // small.
        #expect(largest < limits.bytes + 1 << 20 + 1 << 19)
        #expect(used(path) <= limits.bytes)
        let reader = try ReportStore.open(path: path)
        let kept = try reader.reports(ReportFilter())
        #expect(kept.count > 200 && kept.count < 700)
        #expect(Set(kept.map(\.id)) == Set(ids.suffix(kept.count)))
        #expect(try reader.status().losses == [.evicted: ids.count - kept.count])
        try expectSound(path)
        let database = try RawDatabase(path)
        #expect(
            try database.query(
                "select id from function except select function from location_frame"
            ).isEmpty)
        // Every remaining stack is in a report, and every location in a stack.
        let selection = try reader.summaries(ReportFilter())
        #expect(selection.reports.count == kept.count)
        let stacks = Set(
            kept.flatMap { report in
                report.samples.map { ($0.locations, $0.isTruncated) }
                    + report.threads.map { ($0.locations, $0.isTruncated) }
            }.filter { !$0.isEmpty || $1 }.map { [$0.description, $1.description] })
        #expect(try database.query("select id from stack").count == stacks.count)
        let places = kept.reduce(into: Set()) { $0.formUnion($1.places) }
        #expect(try database.query("select id from location").count == places.count)
    }

    @Test func `reports go when they are too old, open ones do not`() throws {
        var generator = ReportGenerator(seed: 2)
        var limits = StoreLimits()
        limits.age = .seconds(60)
        let path = directory("agent.sqlite")
        let open = generator.report(state: .open)
        let old = generator.report(state: .ended)
        let writer = try AgentStore(path: path, run: generator.run)
        try writer.record(open, images: generator.images)
        try writer.record(old, images: generator.images)
        let store = try AgentStore(path: path, run: generator.run, limits: limits)
        let after = UnixTime(microseconds: open.start.microseconds + 60_000_000)
        try store.keepWithinLimits(now: after)
        let later = UnixTime(microseconds: old.start.microseconds + 60_000_000)
        try store.keepWithinLimits(now: later)
        #expect(try ReportStore.open(path: path).reports(ReportFilter()).map(\.id).contains(old.id))
        try store.keepWithinLimits(now: UnixTime(microseconds: later.microseconds + 1))
        #expect(try ReportStore.open(path: path).reports(ReportFilter()).map(\.id) == [open.id])
    }

    /// An app that never stalls keeps how long it was watched, minute by minute.
    @Test func `watched time alone keeps within the quota too`() throws {
        let run = ReportGenerator(seed: 6).run
        var limits = StoreLimits()
        limits.bytes = 600_000
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: run, limits: limits)
        for minute in 0..<2_000 {
            let start = UnixTime(
                microseconds: run.started.microseconds + Int64(minute) * 60_000_000)
            try store.record(
                LoopExposure(
                    run: run, loop: "main", threshold: .milliseconds(250), start: start,
                    watched: .seconds(60), busy: .seconds(1), readyDelay: .zero,
                    microStallCount: 0, microStallTime: .zero,
                    lengths: LengthHistogram(
                        counts: Dictionary(uniqueKeysWithValues: (0..<99).map { ($0, 300) }))))
        }
        try store.close()
        #expect(used(path) <= limits.bytes)
        let kept = try ReportStore.open(path: path).exposure(ReportFilter())
        #expect(kept.count > 500 && kept.count < 1_900)
        #expect(kept.last?.start.microseconds == run.started.microseconds + 1_999 * 60_000_000)
    }

    /// Method: what eviction reads is damaged, so that it fails, while reports could be written.
    @Test func `a report that was kept is not reported as failed, to be written again`() throws {
        var generator = ReportGenerator(seed: 7)
        var limits = StoreLimits()
        limits.bytes = 100_000
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run, limits: limits)
        var kept = 1
        // An open one, so that it stays.
        try store.record(generator.report(state: .open), images: generator.images)
        try RawDatabase(path).query("update stack set locations = x'ff'")
        var failures = 0
        for _ in 0..<400 {
            do {
                try store.record(generator.report(state: .ended), images: generator.images)
                kept += 1
            } catch { failures += 1 }
        }
        #expect(failures > 0)
        #expect(try RawDatabase(path).query("select id from report").count == kept)
    }

    @Test func `an evicted report's number is not given to another`() throws {
        var generator = ReportGenerator(seed: 3)
        var limits = StoreLimits()
        limits.age = .seconds(86_400 * 365 * 100)
        let path = directory("agent.sqlite")
        let ingest = try Ingest(into: directory("central.sqlite"))
        var ids: Set<UniqueID> = []
        for _ in 0..<5 {
            let store = try AgentStore(path: path, run: generator.run, limits: limits)
            for _ in 0..<20 {
                let report = generator.report(state: .ended)
                ids.insert(report.id)
                try store.record(report, images: generator.images)
            }
            #expect(try ingest.run([path]).addedCount == 20)
            // All of them are deleted; the central store keeps what it imported.
            try store.keepWithinLimits(now: UnixTime(microseconds: .max / 2))
            try store.close()
        }
        #expect(try ReportStore.open(path: path).status().reportCount == 0)
        let central = try ReportStore.open(path: directory("central.sqlite"))
        #expect(Set(try central.reports(ReportFilter()).map(\.id)) == ids)
    }

    @Test func `a smaller quota shrinks the file`() throws {
        var generator = ReportGenerator(seed: 4)
        var limits = StoreLimits()
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run, limits: limits)
        for _ in 0..<900 {
            try store.record(generator.report(state: .ended), images: generator.images)
        }
        try store.close()
        #expect(used(path) > 400_000)
        limits.bytes = 300_000
        let smaller = try AgentStore(path: path, run: generator.run, limits: limits)
        try smaller.keepWithinLimits()
        try smaller.close()
        #expect(used(path) <= 300_000)
        try expectSound(path)
    }

    @Test func `on a full disk new reports take the place of the oldest`() throws {
        guard mount("tmpfs", directory.path, "tmpfs", 0, "size=1200k") == 0 else {
            print("not tested: a small file system cannot be mounted here (errno \(errno))")
            return
        }
        defer { umount2(directory.path, CInt(MNT_DETACH)) }
        var generator = ReportGenerator(seed: 5)
        var limits = StoreLimits()
        limits.reserveBytes = 200_000
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run, limits: limits)
        var ids: [UniqueID] = []
        for _ in 0..<600 {
            let report = generator.report(state: .ended)
            try store.record(report, images: generator.images)
            ids.append(report.id)
        }
        // Another program fills the disk.
        let filler = try FileHandle(
            forWritingTo: {
                try Data().write(to: $0); return $0
            }(URL(filePath: directory("filler"))))
        while (try? filler.write(contentsOf: Data(count: 4096))) != nil {}
        for _ in 0..<50 {
            let report = generator.report(state: .ended)
            try store.record(report, images: generator.images)
            ids.append(report.id)
        }
        let kept = try ReportStore.open(path: path).reports(ReportFilter())
        #expect(Set(kept.map(\.id)).isSuperset(of: ids.suffix(50)))
        #expect(kept.count < ids.count)
        #expect(Set(kept.map(\.id)).isSubset(of: ids))
        try expectSound(path)
    }
}
