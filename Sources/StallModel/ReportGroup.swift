// What grouping says of one report. The store keeps it beside the report so that ranking reads groups, not stacks;
// StallAnalysis decides it. The two do not know each other: they meet in this protocol.

/// The group that a report belongs to under some rules. Hashes are the same in every process and store.
package struct ReportGroup: Hashable, Sendable {
    package var signature: Int64
    /// The accounting function alone, hashed.
    package var family: Int64
    /// What people read.
    package var title: String
    /// The functions that name the group, the accounting one first.
    package var frames: [String]

    package init(signature: Int64, family: Int64, title: String, frames: [String]) {
        self.signature = signature
        self.family = family
        self.title = title
        self.frames = frames
    }
}

/// Decides the group of a report from the stacks seen in it.
package protocol ReportGrouper: Sendable {
    /// Changes when the rules do: groups stored under another value are out of date.
    var rulesHash: Int64 { get }

    /// The group of a report.
    ///
    /// - Parameters:
    ///   - samples: The stacks of samples that are not late, innermost frame first, each with the time it stands for.
    ///   - cause: The report's cause, if it has one.
    ///   - executable: The build ID of the process's main executable.
    func group(
        of samples: [(frames: [Frame], weight: Duration)], cause: CauseClass?, executable: BuildID?
    ) -> ReportGroup
}
