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
    /// What the samples mostly waited for, as far as functions tell; nil when they mostly ran.
    package var wait: WaitClass?
    /// The frames are not the app's: none of its functions was on the stacks.
    package var isWithoutAppFrame: Bool
    /// The stacks were cut before the callers: it counts in the group of whole stacks that it is the beginning of.
    package var isCut: Bool

    package init(
        signature: Int64, family: Int64, title: String, frames: [String], wait: WaitClass? = nil,
        isWithoutAppFrame: Bool = false, isCut: Bool = false
    ) {
        self.signature = signature
        self.family = family
        self.title = title
        self.frames = frames
        self.wait = wait
        self.isWithoutAppFrame = isWithoutAppFrame
        self.isCut = isCut
    }
}

/// A group as far as it decides which cut stacks count in it.
package struct JoinableGroup: Sendable {
    package var signature: Int64
    package var family: Int64
    package var frames: [String]
    /// All of its stacks were cut.
    package var isCut: Bool
    package var total: Duration

    package init(
        signature: Int64, family: Int64, frames: [String], isCut: Bool, total: Duration
    ) {
        self.signature = signature
        self.family = family
        self.frames = frames
        self.isCut = isCut
        self.total = total
    }

    fileprivate func isBeginning(of other: JoinableGroup) -> Bool {
        family == other.family && other.frames.starts(with: frames)
    }
}

/// Where the groups of cut stacks count: in the group of whole stacks that each is the beginning of, the one that lost
/// the most time where there are several; else in one that was cut later. Every engine asks here, so that all give one
/// answer.
///
/// - Returns: The group to count in, by the index of the one that was cut; both index `groups`. Targets join nothing.
package func joinsOfCutGroups(_ groups: [JoinableGroup]) -> [Int: Int] {
    guard groups.contains(where: \.isCut) else { return [:] }
    // Whole ones first, then the longest, then the heaviest: what may be joined stands before what joins it.
    let order = groups.indices.sorted { one, other in
        let (one, other) = (groups[one], groups[other])
        if one.isCut != other.isCut { return other.isCut }
        if one.isCut, one.frames.count != other.frames.count {
            return one.frames.count > other.frames.count
        }
        return (other.total, one.signature) < (one.total, other.signature)
    }
    var families: [Int64: [Int]] = [:]
    var joins: [Int: Int] = [:]
    for index in order {
        let group = groups[index]
        let target =
            group.isCut
            ? families[group.family]?.first { group.isBeginning(of: groups[$0]) } : nil
        if let target {
            joins[index] = target
        } else {
            families[group.family, default: []].append(index)
        }
    }
    return joins
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
