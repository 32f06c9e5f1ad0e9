// Cleans up source files after import: they are kept, deleted, or archived.

internal import Glibc
internal import StallStore

/// The cleanup of imported files.
package enum SourceCleanup: Hashable, Sendable {
    case keep, delete
    case archive(directory: String)

    /// Applies it to one file.
    func dispose(of path: String) throws(JobError) {
        switch self {
        case .keep: return
        case .delete:
            guard unlink(path) == 0 else { throw .failed(path, errno: errno) }
            // The agent has closed the store, so its reserve file is no longer needed.
            unlink(path + "-ballast")
            ProcessRecord.removeCopies(besideStore: path)
        case .archive(let directory):
            try Self.move(path, into: directory)
            unlink(path + "-ballast")
            ProcessRecord.removeCopies(besideStore: path)
        }
    }

    /// Moves a file, under another name if its own is in use.
    private static func move(_ path: String, into directory: String) throws(JobError) {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        for number in 0... {
            let target = "\(directory)/\(number == 0 ? name : "\(name).\(number)")"
            // Unlike `rename`, `link` never replaces an existing file.
            if link(path, target) == 0 {
                guard unlink(path) == 0 else { throw .failed(path, errno: errno) }
                return
            }
            if errno == EEXIST { continue }
            guard errno == EXDEV || errno == EPERM else { throw .failed(target, errno: errno) }
            guard try copy(path, to: target) else { continue }
            guard unlink(path) == 0 else { throw .failed(path, errno: errno) }
            return
        }
    }

    /// Copies to another file system and syncs; false if the name is in use.
    private static func copy(_ path: String, to target: String) throws(JobError) -> Bool {
        let source = open(path, O_RDONLY | O_CLOEXEC)
        guard source >= 0 else { throw .failed(path, errno: errno) }
        defer { close(source) }
        let copy = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard copy >= 0 else {
            if errno == EEXIST { return false }
            throw .failed(target, errno: errno)
        }
        defer { close(copy) }
        while true {
            let count = sendfile(copy, source, nil, 1 << 24)
            if count == 0, fsync(copy) == 0 { return true }
            if count <= 0, errno != EINTR {
                let error = JobError.failed(target, errno: errno)
                unlink(target)
                throw error
            }
        }
    }
}
