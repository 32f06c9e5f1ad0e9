/// The kind of program that writes a store. The raw value is the file's SQLite application id; never change one.
package enum StoreRole: Int32, Hashable, Sendable {
    /// Written by the agents of one or more processes ("STL1").
    case agent = 0x5354_4c31
    /// Written by `ingest` from other stores ("STLC").
    case central = 0x5354_4c43

    package var word: String {
        switch self {
        case .agent: "agent"
        case .central: "central"
        }
    }
}
