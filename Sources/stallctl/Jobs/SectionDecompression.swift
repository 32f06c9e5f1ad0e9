// Decompresses debug sections with the system's zlib and libzstd. The latter is loaded on first use, so that it has to be
// installed neither to build nor to run.

internal import CZlib
internal import Glibc
internal import StallSymbols

/// A ``SectionDecompressor``.
func decompressSection(
    _ compression: SectionCompression, _ bytes: [UInt8], _ size: Int
) -> [UInt8]? {
    let result = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
        let length =
            switch compression {
            case .zlib: decompressZlib(bytes, to: buffer)
            case .zstd: decompressZstandard(bytes, to: buffer)
            }
        count = length == size ? size : 0
    }
    return result.count == size ? result : nil
}

private func decompressZlib(
    _ bytes: [UInt8], to buffer: UnsafeMutableBufferPointer<UInt8>
) -> Int? {
    var length = uLong(buffer.count)
    let status = uncompress(buffer.baseAddress, &length, bytes, uLong(bytes.count))
    return status == Z_OK ? Int(length) : nil
}

/// An error is a length that no buffer has. **Source:** zstd.h, `ZSTD_decompress`.
private func decompressZstandard(
    _ bytes: [UInt8], to buffer: UnsafeMutableBufferPointer<UInt8>
) -> Int? {
    typealias Decompress =
        @convention(c) (UnsafeMutableRawPointer?, Int, UnsafeRawPointer?, Int) -> Int
    guard let library = dlopen("libzstd.so.1", RTLD_NOW),
        let symbol = dlsym(library, "ZSTD_decompress")
    else { return nil }
    let decompress = unsafeBitCast(symbol, to: Decompress.self)
    return decompress(buffer.baseAddress, buffer.count, bytes, bytes.count)
}
