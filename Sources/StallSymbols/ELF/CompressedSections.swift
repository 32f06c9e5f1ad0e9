// Debug sections compressed by the linker or objcopy. Decompression needs a library, which the agent must not bring
// into its host, so the caller supplies it. Without one, such a file provides names only.

/// The compression of a section. The raw values are those of ELF.
package enum SectionCompression: UInt32, Sendable {
    case zlib = 1
    case zstd = 2
}

/// Decompresses bytes to exactly `size` bytes; nil if they are invalid or the method is not supported.
package typealias SectionDecompressor =
    @Sendable (_ compression: SectionCompression, _ bytes: [UInt8], _ size: Int) -> [UInt8]?

/// The compressed sections of one file, each decompressed once.
final class CompressedSections {
    private let decompress: SectionDecompressor
    private var known: [String: [UInt8]?] = [:]

    init(_ decompress: @escaping SectionDecompressor) { self.decompress = decompress }

    /// A section's bytes.
    ///
    /// **Source:** System V ABI, "Section Compression": the header is {type, reserved, size, alignment}.
    func bytes(of name: String, at offset: UInt64, size: UInt64, in source: any ByteSource)
        -> [UInt8]?
    {
        if let bytes = known[name] { return bytes }
        let bytes = decompressed(at: offset, size: size, in: source)
        known[name] = .some(bytes)
        return bytes
    }

    /// Limits the allocation for a file to a gigabyte, and to a thousand times the compressed size (zlib's maximum).
    private func decompressed(
        at offset: UInt64, size: UInt64, in source: any ByteSource
    ) -> [UInt8]? {
        guard size > 24, let header = Fields(source, at: offset, count: 24),
            let compression = SectionCompression(rawValue: header.uint32(0)),
            header.uint64(8) <= min(1 << 30, size << 10),
            let bytes = source.bytes(at: offset + 24, count: size - 24)
        else { return nil }
        return decompress(compression, bytes, Int(header.uint64(8)))
    }
}
