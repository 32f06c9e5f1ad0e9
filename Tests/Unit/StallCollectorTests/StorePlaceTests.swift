import Foundation
import Testing

@testable import StallCollector
@testable import StallModel
@testable import StallStore

/// Goal: nothing is acknowledged that is not in the file at the store's path, whatever is done to that file.
/// Method: a real store in a folder of its own, which is changed under it.
@Suite final class StorePlaceTests {
    let folder = FileManager.default.temporaryDirectory.appending(
        path: "place-\(UUID().uuidString)")
    var path: String { folder.appending(path: "central.sqlite").path }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    enum Change: CaseIterable {
        case removed, moved, replaced, zeroed, emptied, logRemoved, indexRemoved
    }

    private func make(_ change: Change) throws {
        let files = FileManager.default
        switch change {
        case .removed: try files.removeItem(atPath: path)
        case .moved: try files.moveItem(atPath: path, toPath: path + "-old")
        case .replaced:
            try files.copyItem(atPath: path, toPath: path + "-copy")
            #expect(rename(path + "-copy", path) == 0)
        case .zeroed:
            let file = try FileHandle(forUpdating: URL(filePath: path))
            try file.write(contentsOf: Data(count: 8192))
        case .emptied: #expect(truncate(path, 0) == 0)
        case .logRemoved: try files.removeItem(atPath: path + "-wal")
        case .indexRemoved: try files.removeItem(atPath: path + "-shm")
        }
    }

    private func take(_ storage: SQLiteStorage, _ number: UInt64) -> PushOutcome? {
        let range = PushRange(store: UniqueID((number, number)), from: 1, through: 1)
        let token = CollectorToken(hash: [], right: .write, apps: ["*"])
        return storage.take([(range, SQLiteStorage.Rows(), token)]).first
    }

    @Test(arguments: Change.allCases)
    func `a store that was changed under its feet takes nothing, and says so`(
        change: Change
    ) throws {
        let storage = try SQLiteStorage(path)
        defer { storage.close() }
        #expect(take(storage, 1) == .taken(through: 1, added: 0, changed: 0, unknown: 0))
        try storage.probe()
        try make(change)
        #expect(throws: (any Error).self) { try storage.probe() }
        #expect(throws: (any Error).self) { try storage.position(of: UniqueID((1, 1))) }
        guard case .unavailable(let reason)? = take(storage, 2) else {
            Issue.record("it was taken")
            return
        }
        #expect(reason.contains(path))
    }

    @Test func `one that was moved back is taken again`() throws {
        let storage = try SQLiteStorage(path)
        defer { storage.close() }
        try make(.moved)
        #expect(throws: (any Error).self) { try storage.probe() }
        try FileManager.default.moveItem(atPath: path + "-old", toPath: path)
        try storage.probe()
        #expect(take(storage, 1) == .taken(through: 1, added: 0, changed: 0, unknown: 0))
    }

    @Test func `a link that leads elsewhere by now is noticed`() throws {
        let (link, files) = (folder.appending(path: "link").path, FileManager.default)
        try files.createSymbolicLink(atPath: link, withDestinationPath: path)
        let other = try SQLiteStorage(folder.appending(path: "other.sqlite").path)
        other.close()
        let first = try SQLiteStorage(path)
        first.close()
        let storage = try SQLiteStorage(link)
        defer { storage.close() }
        try storage.probe()
        try files.removeItem(atPath: link)
        try files.createSymbolicLink(
            atPath: link, withDestinationPath: folder.appending(path: "other.sqlite").path)
        #expect(throws: (any Error).self) { try storage.probe() }
    }

    /// Method: the time it takes is SQLite's; that there is an answer is what counts here.
    @Test func `a store that another process has locked is told, and taken again`() throws {
        let storage = try SQLiteStorage(path)
        defer { storage.close() }
        let other = try Connection(to: path, as: path, .readWrite)
        try other.execute("begin immediate")
        guard case .unavailable? = take(storage, 1) else {
            Issue.record("it was taken")
            return
        }
        try other.execute("rollback")
        #expect(take(storage, 1) == .taken(through: 1, added: 0, changed: 0, unknown: 0))
    }

    @Test func `room is looked for where a link leads`() throws {
        let link = folder.appending(path: "link").path
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: "/proc/version")
        #expect(throws: RoomProbe.self) { try RoomProbe.write(beside: link) }
    }
}
