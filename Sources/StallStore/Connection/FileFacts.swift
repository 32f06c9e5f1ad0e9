// Facts of the file system about paths. Only `stat` is called: opening and closing a store's file would drop the locks
// that this process holds on it.

internal import Glibc

/// The file system's facts about a path.
package struct FileFacts: Hashable {
    package let device: UInt64
    package let inode: UInt64
    package let owner: UInt32
    package let size: Int64
    /// The bytes allocated on disk; holes take none.
    package let allocatedBytes: Int64
    package let modifiedNanoseconds: Int64
    /// When its content or anything else about it was changed last: no program can set it.
    package let changedNanoseconds: Int64
    package let linkCount: UInt64
    /// Whether its mode lets others than its owner write it.
    package let isSharedForWriting: Bool
    package let isRegular: Bool
    package let isDirectory: Bool
    package let isSymbolicLink: Bool

    /// Nil when nothing can be reached at the path; `errno` says why.
    package init?(_ path: String, followsLink: Bool = true) {
        var status = stat()
        guard (followsLink ? stat(path, &status) : lstat(path, &status)) == 0 else { return nil }
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        owner = status.st_uid
        size = Int64(status.st_size)
        allocatedBytes = Int64(status.st_blocks) &* 512
        modifiedNanoseconds = status.st_mtim.nanoseconds
        changedNanoseconds = status.st_ctim.nanoseconds
        linkCount = UInt64(status.st_nlink)
        isSharedForWriting = status.st_mode & 0o022 != 0
        let type = status.st_mode & S_IFMT
        isRegular = type == S_IFREG
        isDirectory = type == S_IFDIR
        isSymbolicLink = type == S_IFLNK
    }
}

extension timespec {
    fileprivate var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}

extension String {
    /// Where a symbolic link leads; any other path is itself.
    package var followingLink: String {
        guard FileFacts(self, followsLink: false)?.isSymbolicLink == true,
            let real = realpath(self, nil)
        else { return self }
        defer { free(real) }
        return String(cString: real)
    }

    /// The directory of a path, or the nearest one above it that exists: the missing ones are made with a store.
    package var nearestDirectory: String {
        var directory = deletingLastComponent
        while directory.contains("/"), access(directory, F_OK) != 0, errno == ENOENT {
            directory = directory.deletingLastComponent
        }
        return directory
    }

    /// The directory of a path.
    var deletingLastComponent: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
