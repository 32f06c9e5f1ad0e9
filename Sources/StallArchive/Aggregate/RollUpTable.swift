// The two tables that roll-ups are in.

/// The tables of rolled-up totals: by the groups of reports, or by their hosts.
package struct RollUpTable: Hashable {
    package let name: String
    /// The column beside day and dimensions.
    package let key: String

    package static let groups = RollUpTable(name: "rollup", key: "signature")
    package static let hosts = RollUpTable(name: "host_rollup", key: "host")
}
