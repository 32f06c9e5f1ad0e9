// Keys and orders of groups: the same in stores, in the analysis and on the command line.

import StallModel

/// The property that stalls of one group share.
package enum GroupKey: String, CaseIterable, Sendable {
    /// The accounting function and its callers.
    case signature
    /// The accounting function in its module.
    case family
    /// The accounting function by its name alone.
    case function
    /// Each function of the app that was on the stacks. A stall counts in several groups, in each with the share of its
    /// time that the function was on the stack. Needs the stacks: no store has totals by it.
    case inclusive
    case cause, loop, version, host, app
    /// The operating system, and the device's model. No store has totals by them.
    case os, device

    /// Whether the stall itself decides the group, by its functions or its cause. All such groups have the same watched
    /// time.
    package var isOfStalls: Bool {
        switch self {
        case .signature, .family, .function, .inclusive, .cause: true
        case .loop, .version, .host, .app, .os, .device: false
        }
    }

    /// Whether it is answered from reports: no store has totals by it.
    package var needsReports: Bool {
        switch self {
        case .inclusive, .os, .device: true
        case .signature, .family, .function, .cause, .loop, .version, .host, .app: false
        }
    }
}

/// How groups are ranked. Among equals, the group that lost more time comes first.
package enum RankingOrder: String, CaseIterable, Sendable {
    case total, count, p95, max
    /// The time lost per watched hour.
    case rate
}

/// Restricts an answer to the first groups in an order.
package struct LargestGroups: Hashable, Sendable {
    package var count: Int
    /// Use `rate` only if all groups have the same watched time: the store orders by the time lost in loops whose
    /// watched time is recorded.
    package var order: RankingOrder
    /// Only these, by their signatures; nil for all. Only where the groups are by signature.
    package var signatures: Set<Int64>?

    package init(count: Int = .max, by order: RankingOrder, among signatures: Set<Int64>? = nil) {
        self.count = count
        self.order = order
        self.signatures = signatures
    }
}

extension ReportGroup {
    /// The group of a fact: a cause's word, a loop's name, `photos 2.3.0`; nil if it is unknown.
    package init(fact: String?, of key: GroupKey) {
        let hash = Self.hash(key, fact)
        self.init(
            signature: hash, family: hash, title: fact ?? "unknown \(key.rawValue)", frames: [])
    }

    /// The group of one function, anywhere on a stack.
    package init(function name: String) {
        let hash = Self.hash(.function, name)
        self.init(signature: hash, family: hash, title: name, frames: [name])
    }

    /// This group under another key: itself for `signature`, else the group of the accounting function alone,
    /// regardless of its callers and of what it waited for.
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
