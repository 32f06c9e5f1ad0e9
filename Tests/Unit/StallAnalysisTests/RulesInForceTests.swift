import StallAnalysis
import StallQuery
import Testing

/// Goal: jobs that have different rules do not regroup one store in turns. Method: the decision, as values.
@Suite struct RulesInForceTests {
    let builtIn = GroupingRules.builtIn
    let own: GroupingRules
    let others: GroupingRules

    init() throws {
        own = try GroupingRules("skip module Own\n", file: "own.rules")
        others = try GroupingRules("skip module Other\n", file: "other.rules")
    }

    private func stored(_ rules: GroupingRules, version: Int64 = 0) -> StoredRules {
        StoredRules(hash: rules.hash ^ version, text: rules.text)
    }

    @Test func `a new store gets the rules that come first`() {
        let force = RulesInForce(of: nil, among: [own, builtIn])
        #expect(force.rules.file == "own.rules" && force.note(store: "c") == nil)
        #expect(RulesInForce(of: nil, among: []).rules.hash == builtIn.hash)
    }

    @Test func `a store keeps its rules, and those that are not used are named`() {
        let force = RulesInForce(of: stored(builtIn), among: [own, others])
        #expect(force.rules.hash == builtIn.hash && force.unused?.file == "own.rules")
        #expect(
            force.note(store: "c")
                == "c: grouped by the built-in rules; own.rules is not used: 'stallctl regroup --store c --rules own.rules' applies it"
        )
        let second = RulesInForce(of: stored(others), among: [own, others, builtIn])
        #expect(second.rules.file == "other.rules" && second.unused?.file == "own.rules")
    }

    @Test func `rules that only the store has are read from it`() {
        let force = RulesInForce(of: stored(others), among: [own])
        #expect(force.rules.hash == others.hash && force.match == .same)
        #expect(
            force.note(store: "c")
                == "c: grouped by the store's own rules; own.rules is not used: 'stallctl regroup --store c --rules own.rules' applies it"
        )
    }

    @Test func `a job that has no rules is told nothing`() {
        let force = RulesInForce(of: stored(own), among: [builtIn])
        #expect(force.rules.hash == own.hash && force.note(store: "c") == nil)
    }

    @Test func `the same rules in another file are the store's`() throws {
        let copy = try GroupingRules("# a copy\nskip  module Own\n", file: "copy.rules")
        let force = RulesInForce(of: stored(own), among: [copy, own, builtIn])
        #expect(force.rules.file == "copy.rules" && force.unused == nil)
    }

    @Test func `other built-in rules leave the store its own, and are told`() {
        let force = RulesInForce(of: stored(others, version: 5), among: [own])
        #expect(force.match == .otherBuiltIn && force.rules.hash == others.hash)
        #expect(
            force.note(store: "c")?.contains("'stallctl regroup --store c --stored-rules'") == true)
        let plain = RulesInForce(of: stored(builtIn, version: 5), among: [])
        #expect(plain.match == .otherBuiltIn && plain.rules.hash == builtIn.hash)
        #expect(
            plain.note(store: "c")
                == "c: grouped by the built-in rules of another version of stallctl, and new reports by this one's: 'stallctl regroup --store c --stored-rules' regroups all of it"
        )
    }

    @Test func `of rules without a text a user is told what new reports are grouped by`() {
        let force = RulesInForce(of: StoredRules(hash: 5, text: nil), among: [own])
        #expect(force.match == .unknown && force.rules.hash == own.hash)
        #expect(
            force.note(store: "c")
                == "c: grouped by rules of an older version of stallctl, which are not known, and new reports by own.rules, which the store then keeps: 'stallctl regroup --store c --rules own.rules' regroups all of it"
        )
    }

    @Test func `a text that only a newer version can read is no error`() {
        let force = RulesInForce(of: StoredRules(hash: 5, text: "rules 2\n"), among: [own])
        #expect(force.rules.hash == builtIn.hash)
        // Not even this version's regroup --stored-rules can read them.
        #expect(
            force.note(store: "c")
                == "c: grouped by rules that this version of stallctl cannot read (the store's own rules:1: expected format 1, not '2'), and new reports by the built-in rules: 'stallctl regroup --store c --stored-rules' of a newer one regroups all of it"
        )
    }

    /// It is kept: every job has the same rules, and says so.
    @Test func `a text that is too long for a store cannot be read by any version`() {
        let text = String(repeating: "#", count: StoredRules.longestText + 1)
        let force = RulesInForce(of: StoredRules(hash: 5, text: text), among: [own])
        #expect(force.rules.hash == builtIn.hash)
        #expect(
            force.note(store: "c")
                == "c: grouped by rules that this version of stallctl cannot read (the store's own rules:1: expected at most 1048576 bytes of rules, not 'more'), and new reports by the built-in rules: 'stallctl regroup --store c --stored-rules' of a newer one regroups all of it"
        )
    }

    @Test func `a command is quoted as a shell needs it`() {
        let force = RulesInForce(of: stored(builtIn), among: [own])
        #expect(
            force.note(store: "my c", word: { "<\($0)>" })?
                .contains("'stallctl regroup --store <my c> --rules <own.rules>' applies it")
                == true)
    }

    @Test func `the command that updates a store keeps its rules, or names the file`() {
        func command(_ rules: GroupingRules, _ stored: StoredRules?) -> String {
            RulesInForce.command(by: rules, store: "c", of: stored, word: { $0 })
        }
        let upgraded = stored(others, version: 5)
        #expect(command(others, upgraded) == "stallctl regroup --store c --stored-rules")
        #expect(command(own, upgraded) == "stallctl regroup --store c --rules own.rules")
        let unknown = StoredRules(hash: 5, text: nil)
        #expect(command(builtIn, unknown) == "stallctl regroup --store c")
    }

    /// A store that could not keep them would have other rules with the next import.
    @Test func `rules that are too long for a store are refused`() {
        let longest = String(repeating: "#\n", count: StoredRules.longestText / 2)
        #expect(throws: Never.self) { try GroupingRules(longest, file: "f") }
        let error = #expect(throws: RulesError.self) {
            try GroupingRules(longest + "#", file: "f")
        }
        #expect(
            error?.description
                == "f:524289: expected at most 1048576 bytes of rules, not '1048577 bytes'")
    }
}
