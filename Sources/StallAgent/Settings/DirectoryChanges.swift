// The events that inotify reports of a directory. The bytes come out of a descriptor that the app may have closed, and
// its number may be another file's by now: each length is checked before anything is taken by it.

/// The events of one read.
struct DirectoryChanges: Equatable {
    /// The names of the files that changed.
    private(set) var names: [String] = []
    /// The kernel dropped events: any file may have changed.
    private(set) var areLost = false

    /// `IN_Q_OVERFLOW`, which Swift's Glibc imports as no number of this type.
    private static let overflow: UInt32 = 0x4000
    /// A watch's number, the mask, a cookie and the name's length, four bytes each; then the name, filled with zeroes.
    private static let headerLength = 16
    /// NAME_MAX and its zero, which is a whole number of headers.
    private static let longestName = 256

    /// Nil when the bytes are not whole events.
    init?(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while !rest.isEmpty {
            let header = rest.prefix(Self.headerLength)
            guard header.count == Self.headerLength else { return nil }
            let mask = Self.number(header.dropFirst(4).prefix(4))
            let length = Self.number(header.suffix(4))
            rest = rest.dropFirst(Self.headerLength)
            guard length <= Self.longestName, length <= rest.count else { return nil }
            if mask & Self.overflow != 0 { areLost = true }
            let name = rest.prefix(Int(length)).prefix { $0 != 0 }
            if !name.isEmpty { names.append(String(decoding: name, as: UTF8.self)) }
            rest = rest.dropFirst(Int(length))
        }
    }

    /// Whether the file may have changed.
    func mayConcern(_ name: String) -> Bool { areLost || names.contains(name) }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
}
