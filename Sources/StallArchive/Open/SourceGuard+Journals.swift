// Whether a store can be read where it is: other processes may have it open, and a journal that was left behind is rolled
// back in a private copy.

internal import Glibc
internal import StallModel
internal import StallStore

extension SourceGuard {
    /// Whether some process has the store open in log mode: then its index is alive, and is read together with it.
    /// Otherwise any process may have written it.
    static func hasLiveIndex(_ path: String) -> Bool {
        guard let facts = FileFacts(path + "-shm", followsLink: false), facts.isRegular else {
            return false
        }
        // SQLite: a process that has the index open holds a shared lock of byte 128.
        return isLocked(facts, bytes: 120...128)
    }

    /// Whether a transaction was cut short, or is under way: the file alone is not what was committed.
    static func hasHotJournal(_ path: String) -> Bool {
        guard let facts = FileFacts(path + "-journal", followsLink: false) else { return false }
        return facts.isRegular && facts.size > 0
    }

    /// Refuses a journal that names another one: SQLite would look for that anywhere, and delete it.
    static func expectOwnJournal(_ path: String, of original: String) throws(StoreError) {
        let descriptor = open(path + "-journal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let size = lseek(descriptor, 0, SEEK_END)
        var end = [UInt8](repeating: 0, count: 8)
        guard size >= 8, pread(descriptor, &end, 8, size - 8) == 8,
            end == [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        else { return }
        throw .badCompanion(
            path: original,
            detail: "its -journal file names another journal, which no stallwatch store does")
    }

    /// An empty file, or a database without anything in it, that is being written at this moment.
    static func isBeingCreated(_ path: String) -> Bool {
        if companions.contains(where: {
            FileFacts(path + $0, followsLink: false)?.isRegular == true
        }) {
            guard let facts = FileFacts(path), facts.size == 0 else { return true }
            return FileFacts(path + "-journal") != nil || isLocked(path)
        }
        return isLocked(path)
    }

    private static func isLocked(_ path: String) -> Bool {
        FileFacts(path).map { isLocked($0, bytes: 0x4000_0000...0x4000_01ff) } ?? false
    }

    /// Whether a process holds a lock of some of these bytes of a file, as the kernel lists them: opening the file to
    /// ask, and closing it, would drop the locks that this process holds.
    private static func isLocked(_ facts: FileFacts, bytes: ClosedRange<Int64>) -> Bool {
        guard let file = fopen("/proc/locks", "re") else { return false }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, CInt(line.count), file) != nil {
            let text = line.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
            // 1: POSIX  ADVISORY  READ 1234 08:01:5678 128 128
            let fields = text.split(whereSeparator: { $0 == " " || $0 == "\n" })
            guard fields.count >= 8, fields[1] == "POSIX",
                fields[5].split(separator: ":").last.flatMap({ UInt64($0) }) == facts.inode,
                let first = Int64(fields[6])
            else { continue }
            let last = Int64(fields[7]) ?? .max  // EOF
            if first <= bytes.upperBound, last >= bytes.lowerBound { return true }
        }
        return false
    }
}

extension FileFacts {
    /// A file that takes nearly nothing of the disk for what it says to hold. SQLite leaves no holes.
    var isSparse: Bool { size > 16 << 20 && allocatedBytes < size / 64 }
}
