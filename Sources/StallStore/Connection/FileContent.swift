// Guesses from the first bytes what kind of file was given in place of a store, for the message that refuses it.

internal import CLinux
internal import Glibc

/// The kind of content that a file appears to have.
package enum FileContent: Hashable, Sendable {
    /// Written by `stallctl export`: reports line by line, an array of them, a table.
    case lines, array, csv
    /// Anything for people, such as the output of `stallctl show`.
    case text
    case compressed, program
    case unknown

    package init(path: String) { self.init(beginning: Self.beginning(of: path)) }

    init(beginning bytes: some Collection<UInt8>) {
        let signatures: [(bytes: [UInt8], content: FileContent)] = [
            ([0x1f, 0x8b], .compressed),  // gzip
            ([0x28, 0xb5, 0x2f, 0xfd], .compressed),  // zstd
            ([0xfd, 0x37, 0x7a, 0x58, 0x5a], .compressed),  // xz
            ([0x50, 0x4b, 0x03, 0x04], .compressed),  // zip
            ([0x7f, 0x45, 0x4c, 0x46], .program),  // ELF
            (Array("[{".utf8), .array), (Array("[\n".utf8), .array), (Array("{".utf8), .lines),
            (Array("id,start,".utf8), .csv), (Array("id,sample,".utf8), .csv),
            (Array("rank,signature,".utf8), .csv),
        ]
        let known = signatures.first { bytes.starts(with: $0.bytes) }?.content
        self = known ?? (Self.isText(bytes) ? .text : .unknown)
    }

    /// Whether these are characters, the last of which may be cut off, and control characters for layout or color.
    private static func isText(_ bytes: some Collection<UInt8>) -> Bool {
        let isPlain = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f || [9, 10, 13, 27].contains($0) }
        let cutOff = bytes.suffix(3).reversed().prefix { $0 >= 0x80 }.count
        return isPlain
            && (0...cutOff).contains {
                String(validating: bytes.dropLast($0), as: UTF8.self) != nil
            }
    }

    private static func beginning(of path: String) -> [UInt8] {
        let descriptor = stall_descriptor_open_to_read(path, 0)
        guard descriptor >= 0 else { return [] }
        defer { stall_descriptor_end(descriptor) }
        return [UInt8](unsafeUninitializedCapacity: 512) { buffer, count in
            count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
        }
    }

    /// A clause that names the content.
    var clause: String {
        switch self {
        case .lines: "JSON lines; import them with 'stallctl ingest'"
        case .array: "a JSON array; 'stallctl ingest' needs JSON lines (export --format jsonl)"
        case .csv: "CSV as written by stallctl"
        case .text: "plain text"
        case .compressed:
            "compressed; decompress it first, JSON lines with 'gunzip -c FILE | stallctl ingest -'"
        case .program: "a program or library"
        case .unknown: "not a SQLite database"
        }
    }
}
