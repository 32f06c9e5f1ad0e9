import StallAnalysis
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

    @Test func `a new store gets the rules that come first`() {
        let force = RulesInForce(of: nil, among: [own, builtIn])
        #expect(force.rules.file == "own.rules" && force.unused == nil && !force.areMissing)
        #expect(RulesInForce(of: nil, among: []).rules.hash == builtIn.hash)
    }

    @Test func `a store keeps its rules, and those that are not used are named`() {
        let force = RulesInForce(of: builtIn.hash, among: [own, others, builtIn])
        #expect(force.rules.hash == builtIn.hash && !force.areMissing)
        #expect(force.unused?.file == "own.rules")
        let second = RulesInForce(of: others.hash, among: [own, others, builtIn])
        #expect(second.rules.file == "other.rules" && second.unused?.file == "own.rules")
    }

    @Test func `a job that has no rules is told nothing`() {
        let force = RulesInForce(of: own.hash, among: [builtIn, own])
        #expect(force.rules.file == "own.rules" && force.unused == nil && !force.areMissing)
    }

    @Test func `the same rules in another file are the store's`() throws {
        let copy = try GroupingRules("# a copy\nskip  module Own\n", file: "copy.rules")
        let force = RulesInForce(of: own.hash, among: [copy, own, builtIn])
        #expect(force.rules.file == "copy.rules" && force.unused == nil)
    }

    @Test func `rules that no one has any more are missing`() {
        let force = RulesInForce(of: own.hash, among: [others, builtIn])
        #expect(force.areMissing && force.rules.file == "other.rules" && force.unused == nil)
        // From then on the store has rules that every job finds: no turns.
        #expect(!RulesInForce(of: builtIn.hash, among: [own, builtIn]).areMissing)
    }
}
