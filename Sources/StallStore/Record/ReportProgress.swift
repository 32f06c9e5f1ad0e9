// How far a stall had come when its report was written. Copies of a store that both continued with an open stall share
// one report: the longer record is kept, in any order of import.

package import StallModel

package struct ReportProgress: Hashable, Sendable {
    package var id: UniqueID
    package var state: StallState
    package var duration_ns: Int64

    package init(id: UniqueID, state: StallState, duration_ns: Int64) {
        (self.id, self.state, self.duration_ns) = (id, state, duration_ns)
    }

    package init(_ row: ReportRow) {
        self.init(id: row.id, state: row.state, duration_ns: row.duration_ns)
    }

    package var isOpen: Bool { state == .open }

    /// Whether it records more of the stall than another state of the same report: an end, or a longer time.
    package func surpasses(_ other: ReportProgress) -> Bool {
        guard id == other.id else { return false }
        return isOpen == other.isOpen ? duration_ns > other.duration_ns : other.isOpen
    }
}
