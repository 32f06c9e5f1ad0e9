// A copy of a store and its write-ahead log, for when reading the store in place would write beside
// it. Opening it `immutable` instead would ignore the log and silently show an older store.

internal import Glibc
internal import StallModel
internal import StallStore

/// A copied store in a directory of its own. Released, it loses its names; a process that has it open keeps it.
final class PrivateCopy {
    let path: String
    private let directory: String

    /// Whether reading the store where it is would make or need files that are not there.
    static func isNeeded(_ path: String) throws(StoreError) -> Bool {
        // With the log's index in place a reader joins the process that made it, while that has it open.
        if SourceGuard.hasLiveIndex(path) { return false }
        if SourceGuard.hasHotJournal(path) { return true }
        // Without an index no process has the store open in log mode, so that its header may be
        // read here without dropping the locks of others.
        var header = [UInt8](repeating: 0, count: 72)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw .cannotOpen(path: path, reason: String(cString: strerror(errno)))
        }
        defer { close(descriptor) }
        let isWhole = read(descriptor, &header, header.count) == header.count
        // Byte 18 is 2 in a store that is in log mode.
        let isNeeded = isWhole && header[18] == 2 || FileFacts(path + "-wal")?.size ?? 0 > 0
        if isNeeded, isWhole, let id = StoreRole.applicationID(inHead: header) {
            // No copy is made only to find out that the file is no store.
            guard StoreRole(rawValue: id) != nil else {
                throw .foreign(path: path, applicationID: id)
            }
        }
        return isNeeded
    }

    /// Copies the store; tries again when it changes meanwhile.
    ///
    /// - Parameter original: The file itself, not a link to it.
    init(of original: String, budget: SourceBudget? = nil) throws(StoreError) {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var system = statvfs()
        let size = Self.copied.reduce(0) { $0 + (FileFacts(original + $1)?.size ?? 0) }
        if statvfs(parent, &system) == 0,
            UInt64(system.f_bavail) * UInt64(system.f_frsize) < UInt64(size)
        {
            throw Self.noRoom(original)
        }
        // Copying would fill the holes.
        for suffix in Self.copied where FileFacts(original + suffix)?.isSparse == true {
            throw .overBudget(
                path: original,
                detail:
                    "\(suffix.isEmpty ? "it" : "its \(suffix) file") is sparse: its size is larger than its data on disk"
            )
        }
        var template = Array("\(parent)/stallwatch-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw .cannotOpen(
                path: original,
                reason: "it must be copied to be read, and \(parent): "
                    + String(cString: strerror(errno)))
        }
        directory = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        path = directory + "/store.sqlite"
        for _ in 1...3 {
            let before = Self.state(of: original)
            try Self.copy(original, "", to: path, budget)
            for suffix in Self.copied.dropFirst() {
                unlink(path + suffix)
                if FileFacts(original + suffix) != nil {
                    try Self.copy(original, suffix, to: path, budget)
                }
            }
            guard Self.state(of: original) == before else { continue }
            try SourceGuard.expectOwnJournal(path, of: original)
            return
        }
        throw .busy(path: original)
    }

    deinit {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
        rmdir(directory)
    }

    /// The index of a log is rebuilt from the log.
    private static let copied = ["", "-wal", "-journal"]

    private static func state(of path: String) -> [FileFacts?] {
        copied.map { FileFacts(path + $0) }
    }

    /// Copies the store or, with its suffix, the file beside it. A failure is reported with the store's name: only this
    /// code knows of the others.
    private static func copy(
        _ original: String, _ suffix: String, to copy: String, _ budget: SourceBudget?
    ) throws(StoreError) {
        func failure() -> StoreError {
            let file = suffix.isEmpty ? "" : "its \(suffix) file: "
            return errno == ENOSPC
                ? noRoom(original)
                : .cannotOpen(path: original, reason: file + String(cString: strerror(errno)))
        }
        let source = open(original + suffix, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard source >= 0 else { throw failure() }
        defer { close(source) }
        let target = open(copy + suffix, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard target >= 0 else { throw failure() }
        defer { close(target) }
        while true {
            let count = sendfile(target, source, nil, 1 << 22)
            if count == 0 { return }
            if count < 0, errno != EINTR { throw failure() }
            try budget?.check(original)
        }
    }

    private static func noRoom(_ path: String) -> StoreError {
        .cannotOpen(path: path, reason: "it must be copied to be read, and no space is left")
    }
}
