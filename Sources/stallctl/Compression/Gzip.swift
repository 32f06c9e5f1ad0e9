// gzip in memory, by the zlib that writes files.

internal import Glibc
internal import StallHTTP

enum Gzip {
    /// The parts, one behind the other, compressed.
    static func compress(_ parts: [[UInt8]]) throws -> [UInt8] {
        guard let file = MemoryFile() else {
            throw OutputError.notCompressed(String(cString: strerror(errno)))
        }
        let compressor = try Compressor(to: file.descriptor)
        for part in parts {
            try part.withUnsafeBytes { bytes in
                var rest = bytes[...]
                while !rest.isEmpty {
                    let count = compressor.write(UnsafeRawBufferPointer(rebasing: rest))
                    guard count > 0 else {
                        throw OutputError.notCompressed(String(cString: strerror(errno)))
                    }
                    rest = rest.dropFirst(count)
                }
            }
        }
        guard compressor.finish() else {
            throw OutputError.notCompressed(String(cString: strerror(errno)))
        }
        return file.bytes()
    }
}
