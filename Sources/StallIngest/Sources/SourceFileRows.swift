// The state of source files when all of them was imported: one that is still the same is not even opened.
//
// A state is not trusted while it is younger than two seconds: a write within the tick of a file system's clock
// in which the file was looked at leaves its size and time as they were, and some of these clocks tick every two
// seconds.

internal import StallModel
internal import StallStore

/// A source file and its write-ahead log, as the file system describes them.
struct SourceFileState: Hashable {
    let file: FileFacts
    /// Nil where there is none.
    let log: FileFacts?
    /// SQLite's own files are beside it: a process has it open, or has left it behind.
    let hasCompanions: Bool

    /// Nil when there is no file at the path, or one that a transaction was cut short in.
    init?(_ path: String) {
        guard let file = FileFacts(path), file.isRegular else { return nil }
        let real = path.followingLink
        guard FileFacts(real + "-journal") == nil else { return nil }
        self.file = file
        log = FileFacts(real + "-wal")
        hasCompanions = log != nil || FileFacts(real + "-shm") != nil
    }

    /// Whether a later change will show.
    func isSettled(at now: UnixTime) -> Bool {
        let newest_ns = max(
            file.modifiedNanoseconds, file.changedNanoseconds, log?.modifiedNanoseconds ?? .min)
        return newest_ns / 1000 < now.microseconds - Self.settling_us
    }

    private static let settling_us: Int64 = 2_000_000
}

/// The states of files that were imported, in the central store. Works within the transaction of its caller.
final class SourceFileRows {
    private let find, put: Statement

    private static let columns = """
        path, device, inode, size, modified_ns, changed_ns, log_inode, log_size, log_modified_ns
        """

    init(_ connection: Connection) throws {
        find = try connection.prepare(
            """
            select count(*) from source_file
            where path = ? and device = ? and inode = ? and size = ? and modified_ns = ?
                and changed_ns = ? and log_inode is ? and log_size is ? and log_modified_ns is ?
            """)
        put = try connection.prepare(
            "insert or replace into source_file (\(Self.columns)) values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
    }

    /// Whether the file is as it was when all of it was imported.
    func holds(_ path: String, _ state: SourceFileState) throws -> Bool {
        let (file, log) = (state.file, state.log)
        return try find.number(
            path, file.device.signed, file.inode.signed, file.size, file.modifiedNanoseconds,
            file.changedNanoseconds, log?.inode.signed, log?.size, log?.modifiedNanoseconds) == 1
    }

    /// Notes that all of the file was imported.
    func note(_ path: String, _ state: SourceFileState) throws {
        let (file, log) = (state.file, state.log)
        try put.run(
            path, file.device.signed, file.inode.signed, file.size, file.modifiedNanoseconds,
            file.changedNanoseconds, log?.inode.signed, log?.size, log?.modifiedNanoseconds)
    }

    /// Forgets files that are gone.
    static func forgetMissing(_ connection: Connection) throws {
        let rows = try connection.prepare("select path from source_file")
        var missing: [String] = []
        while try rows.step() {
            let path = rows.text()
            if FileFacts(path) == nil { missing.append(path) }
        }
        let remove = try connection.prepare("delete from source_file where path = ?")
        for path in missing { try remove.run(path) }
    }
}

extension UInt64 {
    /// The same bits, as SQLite's numbers have them.
    fileprivate var signed: Int64 { Int64(bitPattern: self) }
}
