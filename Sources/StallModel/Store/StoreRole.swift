/// The kind of program that writes a store. The raw value is the file's SQLite application id; never change one.
package enum StoreRole: Int32, Hashable, Sendable {
    /// Written by the agents of one or more processes ("STL1").
    case agent = 0x5354_4c31
    /// Written by `ingest` from other stores ("STLC").
    case central = 0x5354_4c43

    /// The application id in the first page of an SQLite database; nil where the bytes, 72 or more, are not its head.
    package static func applicationID(inHead bytes: [UInt8]) -> Int32? {
        guard bytes.count >= 72, bytes.starts(with: "SQLite format 3\0".utf8) else { return nil }
        // At offset 68, the most significant byte first.
        return bytes[68..<72].reduce(0) { $0 << 8 | Int32($1) }
    }

    package var word: String {
        switch self {
        case .agent: "agent"
        case .central: "central"
        }
    }
}
