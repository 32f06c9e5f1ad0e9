// The limits of the agent's disk usage.

internal import StallStore

extension StallMonitor {
    /// The limits of a store. Beyond them the oldest reports are deleted, and counted.
    public struct StorageLimits: Sendable, Hashable {
        /// The size of the store's file with its log, in bytes. At least a megabyte.
        public var bytes: Int
        /// How long a report is kept after its start; nil for no limit. Wall clocks jump: a clock that is wrong by more
        /// than this deletes everything.
        public var age: Duration?
        /// Size of a reserve file beside the store, in bytes: on a full disk, even deleting needs space. 0 for none.
        public var reserveBytes: Int

        /// Creates limits.
        ///
        /// - Parameters:
        ///   - bytes: The size of the store's file with its log.
        ///   - age: How long a report is kept.
        ///   - reserveBytes: Size of the reserve file.
        public init(bytes: Int = 64 << 20, age: Duration? = nil, reserveBytes: Int = 1 << 20) {
            self.bytes = bytes
            self.age = age
            self.reserveBytes = reserveBytes
        }
    }
}

extension StoreLimits {
    init(_ limits: StallMonitor.StorageLimits) {
        self.init()
        bytes = Int64(max(limits.bytes, 1 << 20))
        age = limits.age
        reserveBytes = Int64(max(limits.reserveBytes, 0))
    }
}
