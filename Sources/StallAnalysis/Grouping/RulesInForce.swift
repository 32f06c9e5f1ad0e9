// The rules that a central store is grouped by are the store's own, wherever a program looks for rules. Those of a program
// are for a new store; `stallctl regroup` gives a store other rules. All that writes groups decides here.

package import StallQuery

/// The rules of a central store, as far as this program has them.
package struct RulesInForce: Sendable {
    /// How near the rules are to those that the store's groups were decided by.
    package enum Match: Sendable {
        case same
        /// The store's own rules before other built-in ones: another version of stallwatch grouped it.
        case otherBuiltIn
        /// An older version grouped the store, and kept no text.
        case unknown
    }

    package let rules: GroupingRules
    package let match: Match
    /// Rules of a file that a new store would have had, where this one has others.
    package let unused: GroupingRules?

    /// - Parameters:
    ///   - stored: Nil for a store without groups.
    ///   - found: The rules that were brought, in order of precedence; the built-in ones need not be among them.
    package init(of stored: StoredRules?, among found: [GroupingRules]) {
        let preferred = found.first ?? .builtIn
        if let known = (found + [.builtIn]).first(where: { $0.hash == stored?.hash }) {
            (rules, match) = (known, .same)
        } else if let stored, let own = stored.text.map(Self.parsed) {
            (rules, match) = (own, own.hash == stored.hash ? .same : .otherBuiltIn)
        } else {
            (rules, match) = (preferred, stored == nil ? .same : .unknown)
        }
        unused = preferred.hash == rules.hash || preferred.file == nil ? nil : preferred
    }

    /// A newer version's text may have words that are unknown here. Every job has the built-in rules.
    private static func parsed(_ text: String) -> GroupingRules {
        (try? GroupingRules(ofStore: text)) ?? .builtIn
    }

    /// One line for the user where the store is not grouped by the rules that were brought; nil otherwise.
    package func note(store: String) -> String? {
        let command = "stallctl regroup --store \(store)"
        return switch match {
        case .same:
            unused.map { unused in
                "\(store): grouped by \(rules.name); \(unused.name) is not used: "
                    + "'\(command) --rules \(unused.file ?? "FILE")' applies it"
            }
        case .otherBuiltIn:
            "\(store): grouped by \(rules.name) of another version of stallctl, and new reports by this one's: "
                + "'\(command) --stored-rules' regroups all of it"
        case .unknown:
            "\(store): grouped by rules of an older version of stallctl, which are not known, and new reports by "
                + "\(rules.name): '\(command)' regroups all of it"
        }
    }
}

extension GroupingRules {
    /// The file's name, or what they are.
    package var name: String { file ?? "the built-in rules" }

    /// The rules whose text a store keeps.
    package init(ofStore text: String) throws(RulesError) {
        let own = try GroupingRules(text, file: "the store's own rules")
        self = own.hash == GroupingRules.builtIn.hash ? .builtIn : own
    }
}
