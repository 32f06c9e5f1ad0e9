// Decompresses debug sections with the system's libz and libzstd. They are loaded on first use, so that neither has to
// be installed to build or run.

internal import Glibc
internal import StallSymbols

/// A ``SectionDecompressor``.
func decompressSection(
    _ compression: SectionCompression, _ bytes: [UInt8], _ size: Int
) -> [UInt8]? {
    let result = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
        let length =
            switch compression {
            case .zlib: Zlib.decompress(bytes, to: buffer)
            case .zstd: decompressZstandard(bytes, to: buffer)
            }
        count = length == size ? size : 0
    }
    return result.count == size ? result : nil
}

/// An error is a length that no buffer has. **Source:** zstd.h, `ZSTD_decompress`.
private func decompressZstandard(
    _ bytes: [UInt8], to buffer: UnsafeMutableBufferPointer<UInt8>
) -> Int? {
    typealias Decompress =
        @convention(c) (UnsafeMutableRawPointer?, Int, UnsafeRawPointer?, Int) -> Int
    guard let symbol = systemSymbol("ZSTD_decompress", of: "libzstd.so.1") else { return nil }
    let decompress = unsafeBitCast(symbol, to: Decompress.self)
    return decompress(buffer.baseAddress, buffer.count, bytes, bytes.count)
}
