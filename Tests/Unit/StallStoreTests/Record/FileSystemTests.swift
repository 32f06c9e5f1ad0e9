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

/// Goal: a full or read-only disk costs what does not fit, nothing else, and is no riddle to who
/// reads the error. Method: a file system of 600 KB, where this machine lets us mount one.
@Suite struct FileSystemTests {
    let directory = try! TemporaryDirectory()

    @Test
    func `what was recorded before the disk was full is there, and recording continues after`()
        throws
    {
        guard mountSmallDisk() else { return }
        defer { umount2(directory.path, CInt(MNT_DETACH)) }
        let filler = directory("filler")
        try Data(count: 100_000).write(to: URL(filePath: filler))
        var generator = ReportGenerator(seed: 1)
        let path = directory("agent.sqlite")
        let store = try AgentStore(path: path, run: generator.run)
        var kept: Set<UniqueID> = []
        var error: StoreError?
        while error == nil {
            let report = generator.report()
            do throws(StoreError) {
                try store.record(report, images: generator.images)
                kept.insert(report.id)
            } catch let failure {
                error = failure
            }
        }
        #expect(error == .full(path: path))
        #expect(!kept.isEmpty)
        // A report that is small enough may still fit.
        let next = generator.report()
        do throws(StoreError) {
            try store.record(next, images: [])
            kept.insert(next.id)
        } catch let failure {
            #expect(failure == .full(path: path))
        }
        try FileManager.default.removeItem(atPath: filler)
        let last = generator.report()
        try store.record(last, images: generator.images)
        try store.close()
        let reports = try ReportStore.open(path: path).reports(ReportFilter())
        #expect(Set(reports.map(\.id)) == kept.union([last.id]))
        try expectSound(path)

        // No room for a new store at all, nor for a central one.
        try Data(count: 8).write(to: URL(filePath: filler))
        let handle = try FileHandle(forWritingTo: URL(filePath: filler))
        while (try? handle.write(contentsOf: Data(count: 4096))) != nil {}
        #expect(throws: StoreError.self) {
            try AgentStore(path: directory("new.sqlite"), run: generator.run)
        }
        #expect(throws: StoreError.self) { try Ingest(into: directory("central.sqlite")) }
    }

    @Test func `a killed agent's store on a read-only disk is read whole`() throws {
        guard mountSmallDisk() else { return }
        defer { umount2(directory.path, CInt(MNT_DETACH)) }
        let path = directory("agent.sqlite")
        let said = try ChildProcess("write", path).killAfter(lines: 9)
        try #require(mount("", directory.path, "", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0)
        #expect(try ReportStore.open(path: path).reports(ReportFilter()).count >= said.count / 2)
        let run = ReportGenerator(seed: 1).run
        #expect(throws: StoreError.readOnly(path: path)) { try AgentStore(path: path, run: run) }
        let new = directory("new.sqlite")
        #expect(throws: StoreError.readOnly(path: new)) { try AgentStore(path: new, run: run) }
        #expect(throws: StoreError.readOnly(path: new)) { try Ingest(into: new) }
        #expect(throws: StoreError.readOnly(path: path)) { try migrateStore(path: path) }
    }

    func mountSmallDisk() -> Bool {
        if mount("tmpfs", directory.path, "tmpfs", 0, "size=600k") == 0 { return true }
        print("not tested: a small file system cannot be mounted here (errno \(errno))")
        return false
    }
}
