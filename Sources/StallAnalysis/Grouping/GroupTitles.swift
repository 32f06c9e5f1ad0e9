// Groups stalls that are streamed from a store of any size, with bounded caches.

package import StallModel
package import StallQuery

/// Decides the group of each stall.
package struct GroupTitles {
    private struct Key: Hashable {
        var stack: Int64
        var executable: BuildID?
    }

    private struct Title: Hashable {
        var signature: Int64
        var cause: CauseClass?
    }

    private static let stackCapacity = 4096
    private static let groupCapacity = 50_000

    private let grouper: DefaultGrouper
    private var stacks: [Key: any GroupedStack] = [:]
    /// For stalls with a single stack, whose group does not depend on weights.
    private var groups: [Key: ReportGroup] = [:]
    private var texts: [Title: String] = [:]
    private let isStored: Bool
    private var stored: [Int64: ReportGroup] = [:]
    /// The texts of `stored`, by the hash that the store has.
    private var storedTexts: [Title: String] = [:]

    /// - Parameter storeRules: The rules under which the store decided the groups that it keeps; where they are these, one
    ///   stall of a group is looked at and the others are known by its hash.
    package init(rules: GroupingRules, storeRules: Int64? = nil) {
        grouper = DefaultGrouper(rules: rules)
        isStored = storeRules == rules.hash
    }

    package mutating func group(
        of trace: StallTrace, _ lookup: any StoreLookup
    ) throws -> ReportGroup {
        guard isStored, let hash = trace.group else { return try decide(trace, lookup) }
        if let known = stored[hash] { return known }
        let group = try decide(trace, lookup)
        // A group that another writer put there is not believed.
        if group.signature == hash { stored[hash] = group }
        return group
    }

    /// The group's name for people. One text for all that are called the same: it is looked up a million times.
    package mutating func title(
        of trace: StallTrace, _ lookup: any StoreLookup
    ) throws -> String {
        let cause = trace.cause?.cause
        let storedKey = trace.group.map { Title(signature: $0, cause: cause) }
        if let storedKey, let known = storedTexts[storedKey] { return known }
        let group = try group(of: trace, lookup)
        let key = Title(signature: group.signature, cause: cause)
        let text = text(of: group, key)
        if let storedKey, stored[storedKey.signature] != nil { storedTexts[storedKey] = text }
        return text
    }

    private mutating func text(of group: ReportGroup, _ key: Title) -> String {
        if let known = texts[key] { return known }
        let text = group.title(under: key.cause)
        if texts.count == Self.groupCapacity { texts.removeAll(keepingCapacity: true) }
        texts[key] = text
        return text
    }

    private mutating func decide(
        _ trace: StallTrace, _ lookup: any StoreLookup
    ) throws -> ReportGroup {
        let executable = trace.run.buildID
        let first = trace.stacks.first.map { Key(stack: $0.stack, executable: executable) }
        let isOne = trace.stacks.allSatisfy { $0.stack == first?.stack }
        if isOne, let first, let known = groups[first] { return known }
        var samples: [(stack: any GroupedStack, weight: Duration)] = []
        for stack in trace.stacks {
            let key = Key(stack: stack.stack, executable: executable)
            let known: any GroupedStack
            if let found = stacks[key] {
                known = found
            } else {
                known = grouper.stack(try lookup.frames(ofStack: key.stack), executable: executable)
                if stacks.count == Self.stackCapacity { stacks.removeAll(keepingCapacity: true) }
                stacks[key] = known
            }
            samples.append((known, stack.weight))
        }
        let group = grouper.group(of: samples, cause: trace.cause?.cause)
        if isOne, let first {
            if groups.count == Self.groupCapacity { groups.removeAll(keepingCapacity: true) }
            groups[first] = group
        }
        return group
    }
}

/// Distinguishes app frames from others.
package struct FrameClassifier {
    private var classified: ClassifiedFrames
    private var homes: FrameHomes

    package init(rules: GroupingRules) {
        classified = ClassifiedFrames(rules: rules)
        homes = FrameHomes(rules: rules)
    }

    package mutating func isApp(_ frame: Frame, executable: BuildID?) -> Bool {
        // Asked for once a frame, by those who remember the answer.
        ClassifiedFrame(frame, executable: executable, homes: &homes).counts
    }

    /// The frame as shown in a flame graph.
    package mutating func picture(of frame: Frame, executable: BuildID?) -> PicturedFrame {
        PicturedFrame(classified.classify(frame, executable: executable))
    }
}
