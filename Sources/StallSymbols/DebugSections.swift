// The debug sections of a file, read when they are first needed and never beyond a limit.

/// **Source:** DWARF 5, section 7.
struct DebugSections {
    let info: [UInt8]
    private let file: ELFFile
    private let limit: UInt64
    private var loaded: [String: [UInt8]] = [:]

    /// Nil without debug information, or with more than `limit` bytes of it.
    init?(_ file: ELFFile, limit: UInt64) {
        guard let info = file.contents(of: ".debug_info", limit: limit) else { return nil }
        self.info = info
        self.file = file
        self.limit = limit
    }

    /// A section's bytes; empty when there is no such section or it is too large.
    mutating func section(_ name: String) -> [UInt8] {
        if let bytes = loaded[name] { return bytes }
        let bytes = file.contents(of: name, limit: limit) ?? []
        loaded[name] = bytes
        return bytes
    }

    /// One string, without reading the section around it.
    func string(in section: String, at offset: UInt64) -> String? {
        file.string(inSection: section, at: offset)
    }
}
