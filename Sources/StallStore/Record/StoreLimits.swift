// How much an agent may keep.

/// The bounds of an agent's store. Beyond them the oldest reports go first, and are counted.
package struct StoreLimits: Equatable, Sendable {
    /// The file's size with its log, in bytes.
    package var bytes: Int64 = 64 << 20
    /// How long after its start a report is kept. Forever by default: wall clocks jump, and a
    /// wrong one would delete everything.
    package var age: Duration?
    /// Disk space held in reserve beside the store, in bytes: on a full disk SQLite can not even
    /// delete.
    package var reserveBytes: Int64 = 1 << 20

    package init() {}
}
