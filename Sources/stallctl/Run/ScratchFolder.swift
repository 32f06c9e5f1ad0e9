// Temporary directories of `run` and `doctor`.

internal import Foundation
internal import Glibc

enum ScratchFolder {
    /// Sets TMPDIR for this process where it is not set and `/tmp` cannot be written, as in a small container: copies of
    /// stores and spilled text go there. Before other threads are started. Not for a program that `run` executes, whose
    /// environment is its own.
    static func provideTemporaryDirectory(
        in candidates: [String] = ["/tmp", "/var/tmp", "/dev/shm"]
    ) {
        if let given = getenv("TMPDIR"), given.pointee != 0 { return }
        let current = FileManager.default.currentDirectoryPath
        let usable = (candidates + [current]).first { access($0, W_OK | X_OK) == 0 }
        guard let usable, usable != "/tmp" else { return }
        setenv("TMPDIR", usable, 1)
    }

    struct Failure: Error {
        /// Each directory with its error.
        var reason: String
    }

    /// Creates a directory in the first of these that takes it: a small container may have only one.
    ///
    /// - Parameters:
    ///   - name: The beginning of its name.
    ///   - others: Where else, after `$TMPDIR` (or `/tmp`) and `/dev/shm`.
    /// - Returns: Its path, absolute if those of `others` are.
    static func make(
        named name: String, orIn others: [String],
        temporary: [String] = [NSTemporaryDirectory(), "/dev/shm"]
    ) throws(Failure) -> String {
        var errors: [String] = []
        for directory in temporary + others {
            let parent = directory.hasSuffix("/") ? directory : directory + "/"
            var template = Array("\(parent)\(name)-XXXXXX".utf8CString)
            if mkdtemp(&template) != nil {
                return String(
                    decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
            }
            errors.append("\(directory): \(String(cString: strerror(errno)))")
        }
        throw Failure(reason: errors.joined(separator: "; "))
    }
}
