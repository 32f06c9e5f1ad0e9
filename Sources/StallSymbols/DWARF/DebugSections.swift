// The debug sections of a file, read on first use and up to a size limit. The largest, `.debug_info`, is read unit by
// unit.

/// **Source:** DWARF 5, section 7.
struct DebugSections {
    /// The size of `.debug_info`.
    let infoSize: UInt64
    private let file: any ObjectFile
    private let limit: UInt64
    private var loaded: [String: [UInt8]] = [:]
    private var window: (start: UInt64, bytes: [UInt8]) = (0, [])

    /// Nil without debug information. Sections and units of more than `limit` bytes are not read.
    init?(_ file: any ObjectFile, limit: UInt64) {
        guard let size = file.size(of: ".debug_info"), size > 0, size < 1 << 40 else { return nil }
        infoSize = size
        self.file = file
        self.limit = limit
    }

    /// The first bytes of a unit, which contain its header and first entry.
    mutating func beginning(ofUnitAt start: UInt64) -> [UInt8]? {
        guard start < infoSize else { return nil }
        let count = min(infoSize - start, 4096)
        let end = window.start + UInt64(window.bytes.count)
        if start < window.start || start + count > end {
            let size = min(infoSize - start, 1 << 20)
            guard let bytes = file.contents(of: ".debug_info", from: start, count: size) else {
                return nil
            }
            window = (start, bytes)
        }
        let offset = Int(start - window.start)
        return Array(window.bytes[offset..<offset + Int(count)])
    }

    /// A whole unit; nil if it exceeds the limit.
    func bytes(of unit: DebugUnit) -> [UInt8]? {
        guard unit.size <= limit else { return nil }
        return file.contents(of: ".debug_info", from: unit.start, count: UInt64(unit.size))
    }

    /// A section's bytes; empty if it is missing or exceeds the limit.
    mutating func section(_ name: String) -> [UInt8] {
        if let bytes = loaded[name] { return bytes }
        let bytes = file.contents(of: name, limit: limit) ?? []
        loaded[name] = bytes
        return bytes
    }

    /// One string, without reading the rest of the section.
    func string(in section: String, at offset: UInt64) -> String? {
        file.string(inSection: section, at: offset)
    }
}
