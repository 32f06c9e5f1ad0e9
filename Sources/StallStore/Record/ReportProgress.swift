// How far a stall had come when its report was written. Copies of a store that both continued with an open stall share
// one report: the record that knows more is kept, in any order of import.

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

    /// Whether it records more of the stall than another state of the same report: an end that was seen rather than one
    /// that was concluded, any end rather than none, or a longer time.
    ///
    /// Records that came equally far may differ in what they say of it.
    package func surpasses(_ other: ReportProgress) -> Bool {
        id == other.id && (rank, duration_ns) > (other.rank, other.duration_ns)
    }

    private var rank: Int {
        switch state {
        case .open: 0
        case .hang: 1
        case .ended: 2
        }
    }
}
