// Whether a store can be read where it is: other processes may have it open, and a journal that was left behind is rolled
// back in a private copy.

internal import CLinux
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

    /// Whether a transaction was interrupted, or is under way: the file alone is not the committed state.
    static func hasHotJournal(_ path: String) -> Bool {
        guard let facts = FileFacts(path + "-journal", followsLink: false) else { return false }
        return facts.isRegular && facts.size > 0
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

    private static func isLocked(_ facts: FileFacts, bytes: ClosedRange<UInt64>) -> Bool {
        stall_file_is_locked(facts.inode, bytes.lowerBound, bytes.upperBound)
    }
}

extension FileFacts {
    /// A file that takes nearly nothing of the disk for the size that it claims. SQLite leaves no holes.
    var isSparse: Bool { size > 16 << 20 && allocatedBytes < size / 64 }
}
