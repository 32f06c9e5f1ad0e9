// The rules that a central store is grouped by. They are the store's own: a job that finds others does not use them, and says
// so. `stallctl regroup` gives a store other rules.

/// The rules of a central store, among those that a program has found.
package struct RulesInForce: Sendable {
    package let rules: GroupingRules
    /// The rules of a file that a new store would have had, where this one has others.
    package let unused: GroupingRules?
    /// Whether the store has rules that were not found. Then none of its groups are comparable with new ones.
    package let areMissing: Bool

    /// - Parameters:
    ///   - found: In order of precedence; without any, the built-in rules.
    ///   - stored: The hash of the rules that the store is grouped by; nil for a store without groups.
    package init(of stored: Int64?, among found: [GroupingRules]) {
        let preferred = found.first ?? .builtIn
        let own: GroupingRules? =
            stored == nil ? preferred : found.first { $0.hash == stored }
        rules = own ?? preferred
        unused = own.flatMap {
            $0.hash == preferred.hash || preferred.file == nil ? nil : preferred
        }
        areMissing = own == nil
    }
}
