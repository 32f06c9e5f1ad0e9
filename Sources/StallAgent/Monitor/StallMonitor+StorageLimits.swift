// How much disk an app gives the agent.

internal import StallStore

extension StallMonitor {
    /// The bounds of a store. Beyond them the oldest reports go first, and are counted.
    public struct StorageLimits: Sendable, Hashable {
        /// The size of the store's file with its log, in bytes. At least a megabyte.
        public var bytes: Int
        /// How long after its start a report is kept; nil for as long as there is room. Wall clocks jump: one that is
        /// wrong by more than this deletes everything.
        public var age: Duration?
        /// Disk space held in reserve beside the store, in bytes: on a full disk not even deleting is possible without.
        /// 0 for none.
        public var reserveBytes: Int

        /// Describes the bounds.
        ///
        /// - Parameters:
        ///   - bytes: The size of the store's file with its log.
        ///   - age: How long a report is kept.
        ///   - reserveBytes: Disk space held in reserve.
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
