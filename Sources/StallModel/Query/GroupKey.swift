// By what stalls are grouped and ordered: asked of a store, of the analysis and on the command line in the same words.

/// What stalls of one group have in common.
package enum GroupKey: String, CaseIterable, Sendable {
    /// The accounting function and its callers.
    case signature
    /// The accounting function in its module.
    case family
    /// The accounting function by its name alone.
    case function
    /// Each of the app's functions that was on the stacks: a stall counts in several groups, with the part of it that
    /// the function was there. Only the stacks can tell: no store adds up by it.
    case inclusive
    case cause, loop, version, host, app

    /// Whether the functions on a stall's stacks, or its cause, make the group: then all groups were watched equally
    /// long.
    package var isOfStalls: Bool {
        switch self {
        case .signature, .family, .function, .inclusive, .cause: true
        case .loop, .version, .host, .app: false
        }
    }
}

/// What makes a group worse than another. Of equal ones the one that lost more time is worse.
package enum RankingOrder: String, CaseIterable, Sendable {
    case total, count, p95, max
    /// The time lost per watched hour.
    case rate
}

/// The groups of an answer that are wanted, when not all of them are: the first ones in an order.
package struct LargestGroups: Hashable, Sendable {
    package var count: Int
    /// By rate only where all groups were watched equally long: the store orders by the time lost in loops whose
    /// watched time is recorded.
    package var order: RankingOrder

    package init(count: Int, by order: RankingOrder) {
        self.count = count
        self.order = order
    }
}

extension ReportGroup {
    /// The group that a fact makes: the cause's word, the name of a loop, `photos 2.3.0`; nil where it is not known.
    package init(fact: String?, of key: GroupKey) {
        let hash = Self.hash(key, fact)
        self.init(
            signature: hash, family: hash, title: fact ?? "unknown \(key.rawValue)", frames: [])
    }

    /// The group of one function, wherever it is on a stack.
    package init(function name: String) {
        let hash = Self.hash(.function, name)
        self.init(signature: hash, family: hash, title: name, frames: [name])
    }

    /// The group that this one belongs to by a key of functions: by signature itself, else that of the accounting
    /// function alone, whatever called it and whatever it waited for.
    package func grouped(by key: GroupKey) -> ReportGroup {
        guard key == .family || key == .function else { return self }
        let first = Array(frames.prefix(1))
        return ReportGroup(
            signature: key == .family ? family : Self.hash(.function, first.first), family: family,
            title: first.first ?? title, frames: first, isWithoutAppFrame: isWithoutAppFrame)
    }

    private static func hash(_ key: GroupKey, _ name: String?) -> Int64 {
        var hash = ContentHash()
        hash.combine(key.rawValue)
        hash.combine(name)
        return hash.value
    }
}
