// Access to the bytes of a binary. Files are read, never mapped: truncating a mapped file during a deployment kills the
// process with SIGBUS, and maps of ELF files confuse readers of /proc/self/maps.

internal import CLinux
internal import Glibc
internal import StallModel

/// Bytes that can be read in parts.
protocol ByteSource {
    var size: UInt64 { get }
    /// Fills the buffer from `offset` on; false if there are fewer bytes.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Bool
}

extension ByteSource {
    /// Exactly `count` bytes from `offset` on, or nil.
    func bytes(at offset: UInt64, count: UInt64) -> [UInt8]? {
        guard offset <= size, count <= size - offset else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(count))
        return bytes.withUnsafeMutableBytes { read(into: $0, at: offset) } ? bytes : nil
    }

    /// The zero-ended string at `index` of a table, without reading the rest of it; nil if it is empty, not ended
    /// within the table, or longer than 16 kB.
    func string(at index: UInt64, inTableAt offset: UInt64, size tableSize: UInt64) -> String? {
        guard index < tableSize, offset <= size else { return nil }
        var text: [UInt8] = []
        while text.count < 1 << 14 {
            let place = index + UInt64(text.count)
            let count = min(256, tableSize &- min(place, tableSize))
            guard count > 0, let bytes = bytes(at: offset &+ place, count: count) else {
                return nil
            }
            if let end = bytes.firstIndex(of: 0) {
                text += bytes[..<end]
                return text.isEmpty ? nil : String(decoding: text, as: UTF8.self)
            }
            text += bytes
        }
        return nil
    }
}

/// A part of other bytes: one architecture's file in a fat one.
struct BytesPart: ByteSource {
    let size: UInt64
    private let whole: any ByteSource
    private let start: UInt64

    /// Nil if the part is not within the whole.
    init?(of whole: any ByteSource, at start: UInt64, size: UInt64) {
        guard start <= whole.size, size <= whole.size - start else { return nil }
        (self.whole, self.start, self.size) = (whole, start, size)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Bool {
        guard offset <= size, UInt64(buffer.count) <= size - offset else { return false }
        return whole.read(into: buffer, at: start + offset)
    }
}

/// An open regular file.
final class FileBytes: ByteSource {
    let size: UInt64
    /// The user that it belongs to.
    let owner: uid_t
    /// When it was written last, in seconds on the wall clock.
    let changed: Int
    private let descriptor: CInt

    /// Nil if there is no such regular file or it is not readable. Never waits for a FIFO's other end.
    init?(path: String) {
        let descriptor = stall_descriptor_open_to_read(path, 0)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size >= 0
        else {
            stall_descriptor_end(descriptor)
            return nil
        }
        self.descriptor = descriptor
        size = UInt64(status.st_size)
        owner = status.st_uid
        changed = status.st_mtim.tv_sec
    }

    deinit { stall_descriptor_end(descriptor) }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Bool {
        var done = 0
        while done < buffer.count {
            let count = pread(
                descriptor, buffer.baseAddress! + done, buffer.count - done,
                off_t(offset) + off_t(done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}

/// A copy in memory.
struct CopiedBytes: ByteSource {
    let bytes: [UInt8]
    var size: UInt64 { UInt64(bytes.count) }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Bool {
        guard offset <= size, UInt64(buffer.count) <= size - offset else { return false }
        buffer.copyBytes(from: bytes[Int(offset)..<Int(offset) + buffer.count])
        return true
    }
}

extension CopiedBytes {
    /// The kernel's vDSO has no file, so its mapped bytes are copied. Nil if the image is not this process's vDSO.
    init?(vdso image: Image) {
        guard image.path == "[vdso]", ImageTable.current().images.contains(image),
            let start = UnsafeRawPointer(bitPattern: UInt(image.loadAddress))
        else { return nil }
        // It is mapped in whole pages, and its section headers follow the last segment.
        let page = UInt64(getpagesize())
        let size = (image.endAddress - image.loadAddress + page - 1) / page * page
        bytes = Array(UnsafeRawBufferPointer(start: start, count: Int(size)))
    }
}
