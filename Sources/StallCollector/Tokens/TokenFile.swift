// The file of tokens, read again when it changes, so that a token is replaced while senders keep running.

internal import Glibc
internal import Synchronization

/// Tokens of a file. A file that becomes unreadable changes nothing: the tokens that were read last stay, and it is counted.
package final class TokenFile: Sendable {
    package let path: String
    private let state: Mutex<State>

    private struct State {
        var tokens = CollectorTokens()
        var stamp: Stamp?
        var failures: Int64 = 0
        var problem: TokenFileError?
    }

    /// The properties that change when a file is replaced or written.
    private struct Stamp: Equatable {
        var device: UInt
        var inode: UInt
        var size: Int
        var seconds: Int
        var nanoseconds: Int

        init?(_ path: String) {
            var facts = stat()
            guard stat(path, &facts) == 0 else { return nil }
            (device, inode, size) = (UInt(facts.st_dev), UInt(facts.st_ino), Int(facts.st_size))
            (seconds, nanoseconds) = (facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec)
        }
    }

    package init(_ path: String) throws(TokenFileError) {
        self.path = path
        var state = State()
        state.stamp = Stamp(path)
        state.tokens = try Self.read(path)
        self.state = Mutex(state)
    }

    package var tokens: CollectorTokens { state.withLock { $0.tokens } }
    /// How often the file could not be read again.
    package var failures: Int64 { state.withLock { $0.failures } }

    /// Reads the file again if it has changed. Waits for the disk: not on an event loop.
    ///
    /// - Returns: The new fault of the file; nil where there is none, or the same as before.
    @discardableResult
    package func refresh() -> TokenFileError? {
        let stamp = Stamp(path)
        guard state.withLock({ $0.stamp != stamp }) else { return nil }
        do throws(TokenFileError) {
            let tokens = try Self.read(path)
            state.withLock {
                $0.tokens = tokens
                $0.stamp = stamp
                $0.problem = nil
            }
            return nil
        } catch {
            return state.withLock { state in
                state.failures += 1
                let isNew = state.problem != error
                state.problem = error
                return isNew ? error : nil
            }
        }
    }

    /// Adds and removes tokens; creates the file where it is missing. Written beside and renamed, so that no reader sees half.
    package static func change(
        _ path: String, _ body: (inout CollectorTokens) -> Void
    ) throws(TokenFileError) {
        // Two changes at once would lose one of them.
        let lock = open(path + "-lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0, flock(lock, LOCK_EX) == 0 else { throw .unreadable("flock", errno: errno) }
        defer { close(lock) }
        var facts = stat()
        let exists = stat(path, &facts) == 0
        if !exists, errno != ENOENT { throw .unreadable("stat", errno: errno) }
        var tokens = exists && facts.st_size > 0 ? try read(path) : CollectorTokens()
        body(&tokens)
        let temporary = path + "-new"
        unlink(temporary)
        let file = open(
            temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
            exists ? facts.st_mode & 0o777 : 0o600)
        guard file >= 0 else { throw .unreadable("open", errno: errno) }
        defer { close(file) }
        // The collector's user stays able to read the file when root changes it.
        if exists { _ = fchown(file, facts.st_uid, facts.st_gid) }
        let bytes = Array(tokens.text.utf8)
        guard write(file, bytes, bytes.count) == bytes.count, fsync(file) == 0,
            rename(temporary, path) == 0
        else {
            let error = errno
            unlink(temporary)
            throw .unreadable("write", errno: error)
        }
    }

    package static func read(_ path: String) throws(TokenFileError) -> CollectorTokens {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw .unreadable("open", errno: errno) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 16)
        var facts = stat()
        guard fstat(file, &facts) == 0 else { throw .unreadable("fstat", errno: errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
        while true {
            let count = Glibc.read(file, &part, part.count)
            if count == 0 { break }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .unreadable("read", errno: errno) }
            bytes += part[..<count]
            guard bytes.count <= 4 << 20 else { throw .tooLong }
        }
        // Without tokens it still has its first line, a comment. Without that it is being written, or was lost.
        guard !bytes.isEmpty else { throw .empty }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .badLine(1) }
        return try CollectorTokens(text)
    }
}
