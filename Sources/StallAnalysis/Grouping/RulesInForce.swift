// The rules that a central store is grouped by are the store's own, wherever a program looks for rules. Those of a program
// are for a new store; `stallctl regroup` gives a store other rules. All that writes groups decides here.

package import StallQuery

/// The rules of a central store, as far as this program has them.
package struct RulesInForce: Sendable {
    /// How near the rules are to those that the store's groups were decided by.
    package enum Match: Equatable, Sendable {
        case same
        /// The store's own rules before other built-in ones: another version of stallwatch grouped it.
        case otherBuiltIn
        /// The store's own rules have words that only a newer version can read.
        case unreadable(RulesError)
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
        } else if let stored, let text = stored.text {
            do throws(RulesError) {
                let own = try GroupingRules(ofStore: text)
                (rules, match) = (own, own.hash == stored.hash ? .same : .otherBuiltIn)
            } catch {
                // Every job has the built-in rules.
                (rules, match) = (.builtIn, .unreadable(error))
            }
        } else {
            (rules, match) = (preferred, stored == nil ? .same : .unknown)
        }
        unused = preferred.hash == rules.hash || preferred.file == nil ? nil : preferred
    }

    /// One line for the user where the store is not grouped by the rules that were brought; nil otherwise.
    ///
    /// - Parameter word: Quotes a word for the shell.
    package func note(store: String, word: (String) -> String = { $0 }) -> String? {
        let command = "stallctl regroup --store \(word(store))"
        func option(_ rules: GroupingRules) -> String {
            rules.file.map { " --rules \(word($0))" } ?? ""
        }
        return switch match {
        case .same:
            unused.map { unused in
                "\(store): grouped by \(rules.name); \(unused.name) is not used: "
                    + "'\(command)\(option(unused))' applies it"
            }
        case .otherBuiltIn:
            "\(store): grouped by \(rules.name) of another version of stallctl, and new reports by this one's: "
                + "'\(command) --stored-rules' regroups all of it"
        case .unreadable(let error):
            "\(store): grouped by rules that this version of stallctl cannot read (\(error)), and new reports by "
                + "\(rules.name): '\(command) --stored-rules' of a newer one regroups all of it"
        case .unknown:
            "\(store): grouped by rules of an older version of stallctl, which are not known, and new reports by "
                + "\(rules.name), which the store then keeps: '\(command)\(option(rules))' regroups all of it"
        }
    }

    /// The command that groups all of a store by the rules that it is read by.
    package static func command(
        by rules: GroupingRules, store: String, of stored: StoredRules?, word: (String) -> String
    ) -> String {
        let isOwn = stored?.text.map { (try? GroupingRules(ofStore: $0))?.hash == rules.hash }
        let option =
            isOwn == true ? " --stored-rules" : rules.file.map { " --rules \(word($0))" } ?? ""
        return "stallctl regroup --store \(word(store))\(option)"
    }
}

extension GroupingRules {
    /// The file's name, or what they are.
    package var name: String { file ?? "the built-in rules" }

    /// The rules whose text a store keeps.
    package init(ofStore text: String) throws(RulesError) {
        let file = "the store's own rules"
        guard text.utf8.count <= StoredRules.longestText else {
            throw RulesError(
                file: file, line: 1, found: "more",
                expected: "at most \(StoredRules.longestText) bytes of rules")
        }
        let own = try GroupingRules(text, file: file)
        self = own.hash == GroupingRules.builtIn.hash ? .builtIn : own
    }
}
