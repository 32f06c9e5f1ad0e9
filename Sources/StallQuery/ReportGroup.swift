// The group of a report. The store has it beside the report, so that ranking reads groups, not stacks; StallAnalysis
// decides it. The two modules meet only in this protocol.

package import StallModel

/// The group of a report under some rules. Its hashes are the same in every process and store.
package struct ReportGroup: Hashable, Sendable {
    package var signature: Int64
    /// The hash of the accounting function alone.
    package var family: Int64
    /// For display.
    package var title: String
    /// The functions that name the group, the accounting one first.
    package var frames: [String]
    /// The kind of wait of most samples, judging by the functions; nil if they mostly ran.
    package var wait: WaitClass?
    /// No function of the app was on the stacks; the frames are others'.
    package var isWithoutAppFrame: Bool
    /// The stacks were truncated before the callers. The report counts in a group of complete stacks that has these
    /// frames as its beginning.
    package var isCut: Bool

    /// Whether it comes first of two that lost as much time: the same one in whatever order they came.
    package func precedes(_ other: ReportGroup) -> Bool {
        (title, family, signature) < (other.title, other.family, other.signature)
    }

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

/// The part of a group that decides which groups of truncated stacks it absorbs.
package struct JoinableGroup: Sendable {
    package var signature: Int64
    package var family: Int64
    package var frames: [String]
    /// All of its stacks were truncated.
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

/// Assigns each group of truncated stacks to the group of complete stacks whose beginning it is; among several, to the
/// one that lost the most time; else to one that was truncated later. Every query engine uses this function, so that
/// all give the same answer.
///
/// - Returns: Indexes into `groups`: from the truncated group to the one that absorbs it. Absorbing groups are never
///   absorbed themselves.
package func joinsOfCutGroups(_ groups: [JoinableGroup]) -> [Int: Int] {
    guard groups.contains(where: \.isCut) else { return [:] }
    // Complete groups first, then the longest, then the heaviest: a group follows those that may absorb it.
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

/// A grouper's result for one stack. Opaque to all others.
package protocol GroupedStack: AnyObject, Sendable {}

/// The rules that a store's groups were decided by, as the store keeps them.
package struct StoredRules: Hashable, Sendable {
    /// Changes with any rule, also with a built-in one.
    package var hash: Int64
    /// The text of the rules before the built-in ones, empty without any; nil where it is not known.
    package var text: String?

    /// The longest text that a store keeps, in bytes of UTF-8. Stores are not trusted, and their rules are parsed.
    package static let longestText = 1 << 20

    package init(hash: Int64, text: String?) { (self.hash, self.text) = (hash, text) }
}

/// Decides the group of a report from its stacks.
package protocol ReportGrouper: Sendable {
    /// Changes with the rules: groups stored under another value were decided by others.
    var rulesHash: Int64 { get }

    /// The text of the rules before the built-in ones, which a store keeps.
    var rulesText: String { get }

    /// Whether a text that a store keeps is of the rules of this grouper.
    func hasRules(ofText text: String) -> Bool

    /// The grouper for a store that has rules: by these as far as this program can, else by its own.
    func following(_ stored: StoredRules) -> any ReportGrouper

    /// Evaluates a stack once for all reports that contain it.
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
