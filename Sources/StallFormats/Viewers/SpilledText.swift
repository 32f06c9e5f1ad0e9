// A column of a table that is written after another one: it waits in a file without a name when it is long, so that memory does
// not grow with it.

internal import Glibc

/// Text that is written later.
final class SpilledText {
    /// Why it could not be kept.
    struct Failure: Error, CustomStringConvertible {
        var errno: CInt
        var description: String {
            "a temporary file in \(folder): \(String(cString: strerror(errno)))"
        }
    }

    private var buffer: [UInt8] = []
    private var descriptor: CInt = -1
    private static let pieceSize = 1 << 18

    private(set) var isEmpty = true

    deinit { if descriptor >= 0 { close(descriptor) } }

    func append(_ write: (inout [UInt8]) -> Void) throws {
        isEmpty = false
        write(&buffer)
        if buffer.count >= Self.pieceSize { try spill() }
    }

    /// Gives back all of it, in pieces, and is empty again.
    func drain(_ body: ([UInt8]) throws -> Void) throws {
        if descriptor >= 0 {
            guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw Failure(errno: errno) }
            var piece = [UInt8](repeating: 0, count: Self.pieceSize)
            while true {
                let count = piece.withUnsafeMutableBytes {
                    read(descriptor, $0.baseAddress, $0.count)
                }
                guard count >= 0 else { throw Failure(errno: errno) }
                guard count > 0 else { break }
                try body(Array(piece[..<count]))
            }
            guard ftruncate(descriptor, 0) == 0, lseek(descriptor, 0, SEEK_SET) == 0 else {
                throw Failure(errno: errno)
            }
        }
        try body(buffer)
        buffer.removeAll()
        isEmpty = true
    }

    private func spill() throws {
        if descriptor < 0 { descriptor = try openTemporaryFile() }
        var written = 0
        while written < buffer.count {
            let count = buffer.withUnsafeBytes {
                write(descriptor, $0.baseAddress! + written, $0.count - written)
            }
            if count < 0, errno != EINTR { throw Failure(errno: errno) }
            written += max(0, count)
        }
        buffer.removeAll(keepingCapacity: true)
    }
}

private var folder: String {
    getenv("TMPDIR").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
}

/// Private to this process, and gone with it.
private func openTemporaryFile() throws -> CInt {
    var template = Array("\(folder)/.stallctl-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { throw SpilledText.Failure(errno: errno) }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    unlink(template)
    return descriptor
}
