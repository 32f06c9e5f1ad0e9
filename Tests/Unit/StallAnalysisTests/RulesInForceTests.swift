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
        #expect(force.note(store: "c")?.contains("'stallctl regroup --store c'") == true)
    }

    @Test func `a text that only a newer version can read is no error`() {
        let force = RulesInForce(of: StoredRules(hash: 5, text: "rules 2\n"), among: [own])
        #expect(force.match == .otherBuiltIn && force.rules.hash == builtIn.hash)
    }
}
