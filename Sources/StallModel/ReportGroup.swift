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

/// What a grouper has found out about one stack. It means something to that grouper only.
package protocol GroupedStack: AnyObject, Sendable {}

/// Decides the group of a report from the stacks seen in it.
package protocol ReportGrouper: Sendable {
    /// Changes when the rules do: groups stored under another value are out of date.
    var rulesHash: Int64 { get }

    /// Looks at a stack once, for all reports that show it.
    ///
    /// - Parameters:
    ///   - frames: Innermost frame first.
    ///   - executable: The build ID of the process's main executable.
    func stack(_ frames: [Frame], executable: BuildID?) -> any GroupedStack

    /// The group of a report.
    ///
    /// - Parameters:
    ///   - samples: The stacks of samples that are not late, each with the time it stands for.
    ///   - cause: The report's cause, if it has one.
    func group(
        of samples: [(stack: any GroupedStack, weight: Duration)], cause: CauseClass?
    ) -> ReportGroup
}
