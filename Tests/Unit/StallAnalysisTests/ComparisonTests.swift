import StallModel
import StallQuery
import TestSupport
import Testing

@testable import StallAnalysis

/// Goal: a difference is called worse or better when it is not likely to be chance, and seldom otherwise.
/// Method: cases by hand; then many random pairs drawn from the same and from different rates.
@Suite struct ComparisonTests {
    /// Its stalls are dealt out to the hosts.
    private func hotspot(_ name: String, _ stalls: [[Int]], _ runs: [ComparedRun]) -> StallAggregate
    {
        var hash = ContentHash()
        hash.combine(name)
        var totals = StallTotals()
        var byRun: [RunTotals] = []
        for (host, run) in zip(stalls, runs) where !host.isEmpty {
            var sum = StallTotals()
            for duration in host { sum.add(.milliseconds(duration)) }
            var part = RunTotals(run: run.run)
            part.add(sum, isWatched: true)
            byRun.append(part)
            totals.add(sum)
        }
        var aggregate = StallAggregate(
            ReportGroup(signature: hash.value, family: hash.value, title: name, frames: [name]),
            totals: totals, watched: totals, first: UnixTime(microseconds: 0),
            last: UnixTime(microseconds: 0))
        aggregate.runs = byRun
        return aggregate
    }

    /// - Parameter groups: By name, the stalls of each host.
    private func side(
        onHosts groups: [String: [[Int]]], hosts: Int, letter: String, hours: Double? = nil
    ) -> ComparedSide {
        let runs = (0..<hosts).map { number -> ComparedRun in
            var hash = ContentHash()
            hash.combine("\(letter) \(number)")
            let bytes = withUnsafeBytes(of: (hash.value, Int64(number))) { Array($0) }
            return ComparedRun(
                run: UniqueID(bytes: bytes)!, host: "\(letter) \(number)",
                watched: hours.map { .seconds($0 * 3600 / Double(hosts)) })
        }
        return ComparedSide(
            groups: groups.filter { !$0.value.joined().isEmpty }.sorted { $0.key < $1.key }
                .map { hotspot($0.key, $0.value, runs) },
            watched: hours.map { .seconds($0 * 3600) }, runs: .known(runs))
    }

    private func dealt(_ stalls: [Int], to hosts: Int) -> [[Int]] {
        var dealt = Array(repeating: [Int](), count: hosts)
        for (number, stall) in stalls.enumerated() { dealt[number % hosts].append(stall) }
        return dealt
    }

    private func side(
        _ groups: [String: [Int]], hours: Double? = nil, letter: String = "A"
    ) -> ComparedSide {
        side(
            onHosts: groups.mapValues { dealt($0, to: 10) }, hosts: 10, letter: letter, hours: hours
        )
    }

    private func compared(_ first: [Int], _ second: [Int]) -> Comparison {
        Comparison(side(["a": first]), side(["a": second], letter: "B"))
    }

    private func change(_ first: [Int], _ second: [Int]) -> GroupChange {
        compared(first, second).groups[0].change
    }

    @Test func `changes have their words`() {
        let (few, many) = (Array(repeating: 500, count: 20), Array(repeating: 500, count: 60))
        #expect(change(few, many) == .worse)
        #expect(change(many, few) == .better)
        #expect(change([], few) == .new)
        #expect(change(few, []) == .gone)
        #expect(change(few, few) == .unclear)
        #expect(change([500], [500, 500]) == .unclear)
        #expect(change(few, few.map { $0 * 3 }) == .worse)
    }

    @Test func `one long stall does not make a group worse`() {
        #expect(
            change(Array(repeating: 500, count: 20), Array(repeating: 500, count: 20) + [60_000])
                == .unclear)
    }

    @Test func `a thousand stalls of one host are one observation`() {
        let burst = [Array(repeating: 500, count: 1000)] + Array(repeating: [500], count: 9)
        let found = Comparison(
            side(["a": Array(repeating: 500, count: 10)]),
            side(onHosts: ["a": burst], hosts: 10, letter: "B"))
        #expect(found.groups[0].change == .unclear && !found.exceeds(1.2))
    }

    @Test(arguments: [3, 4])
    func `three hosts cannot tell, four can`(hosts: Int) {
        func side(_ letter: String, _ count: Int) -> ComparedSide {
            self.side(
                onHosts: ["a": Array(repeating: Array(repeating: 500, count: count), count: hosts)],
                hosts: hosts, letter: letter)
        }
        let found = Comparison(side("A", 10), side("B", 30))
        #expect(found.cannotTell == (hosts == 3 ? "3 hosts" : nil))
        #expect(found.groups[0].isSignificant == (hosts == 4))
        #expect(found.exceeds(1.2) == (hosts == 4))
        #expect(found.ratio.value == 3 && (found.ratio.low > 0) == (hosts == 4))
    }

    /// Runs of one host share it, so that they are compared with each other.
    @Test func `where there is one host its runs are compared`() {
        func side(_ letter: String, _ stalls: Int) -> ComparedSide {
            var side = self.side(
                onHosts: ["a": Array(repeating: Array(repeating: 500, count: stalls), count: 6)],
                hosts: 6, letter: letter)
            guard case .known(let runs) = side.runs else { return side }
            side.runs = .known(runs.map { ComparedRun(run: $0.run, host: "one") })
            return side
        }
        let found = Comparison(side("A", 10), side("B", 30))
        #expect(found.units?.word == "run" && found.units?.first == 6)
        #expect(found.groups[0].change == .worse)
    }

    /// Reports alone do not say how many hosts had none: ten and eleven of three hundred may be the same version.
    @Test func `hosts of one stall each cannot tell without watched time`() {
        func side(_ letter: String, _ hosts: Int, _ stalls: Int, hours: Double? = nil)
            -> ComparedSide
        {
            self.side(
                onHosts: [
                    "a": Array(repeating: Array(repeating: 500, count: stalls), count: hosts)
                ],
                hosts: hosts, letter: letter, hours: hours)
        }
        let once = Comparison(side("A", 10, 1), side("B", 11, 1))
        #expect(once.cannotTell == "hosts without a stall are not known")
        #expect(!once.exceeds(1) && once.groups[0].change == .unclear)
        #expect(Comparison(side("A", 10, 5), side("B", 11, 5)).cannotTell == nil)
        let watched = Comparison(side("A", 10, 1, hours: 10), side("B", 11, 1, hours: 11))
        #expect(watched.cannotTell == nil && watched.groups[0].change == .unclear)
    }

    /// Noisy hosts, the same on both sides. One canary is not to be compared with the mean of a dozen others.
    @Test(arguments: [(400, 5), (1_500, 6)])
    func `few canaries differ from a fleet no more often than others`(fleet: Int, canaries: Int) {
        var alarms = 0
        for seed in 1...40 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            func side(_ letter: String, _ hosts: Int) -> ComparedSide {
                let stalls = (0..<hosts).map { _ -> [Int] in
                    // From none to sixty, of most hosts few.
                    let part = Double.random(in: 0..<1, using: &random)
                    return Array(repeating: 500, count: Int(60 * part * part * part))
                }
                return self.side(
                    onHosts: ["a": stalls], hosts: hosts, letter: letter, hours: Double(hosts))
            }
            let found = Comparison(side("A", fleet), side("B", canaries))
            alarms += found.groups[0].isSignificant ? 1 : 0
        }
        #expect(alarms <= 5)
    }

    /// Their names are evenly spaced among those of the others.
    @Test func `canaries are noticed whatever their names`() {
        let names = (0..<320).map { "host-\($0 + 1000)" }
        func half(_ isCanary: Bool) -> ComparedSide {
            let own = names.indices.filter { ($0 % 16 == 0) == isCanary }
            let stalls = own.map { Array(repeating: 500, count: (isCanary ? 16 : 4) + $0 % 3) }
            var side = side(
                onHosts: ["a": stalls], hosts: own.count, letter: isCanary ? "B" : "A",
                hours: Double(own.count))
            guard case .known(let runs) = side.runs else { return side }
            side.runs = .known(
                zip(own, runs).map { number, run in
                    ComparedRun(run: run.run, host: names[number], watched: run.watched)
                })
            return side
        }
        let found = Comparison(half(false), half(true))
        #expect(found.cannotTell == nil && found.exceeds(2))
    }

    @Test func `groups beyond those that are judged say so`() {
        let groups = Dictionary(
            uniqueKeysWithValues: (1...203).map { number in
                ("group \(number)", Array(repeating: 100 + number, count: 30))
            })
        let found = Comparison(side(groups), side(groups, letter: "B"))
        let left = found.groups.filter { $0.cannotTell != nil }
        #expect(Set(left.map(\.title)) == ["group 1", "group 2", "group 3"])
        let rows = DiffRow.rows(found)
        #expect(rows.count { $0.cannotTell == "not among the 200 groups that lost most" } == 3)
        #expect(rows.allSatisfy { ($0.ratioLow == nil) == ($0.cannotTell != nil) })
    }

    @Test func `time is compared per watched hour where it is known on both sides`() {
        let (first, second) = (["a": [1000, 1000]], ["a": [1000, 1000, 1000, 1000]])
        let known = Comparison(side(first, hours: 1), side(second, hours: 4, letter: "B"))
        #expect(known.ratio.value == 0.5)
        #expect(known.watched?.second == .seconds(4 * 3600))
        for hours in [nil, 0.0] {
            let unknown = Comparison(side(first, hours: 1), side(second, hours: hours, letter: "B"))
            #expect(unknown.ratio.value == 2)
            #expect(unknown.watched == nil)
        }
    }

    /// That six hosts with a new group are all on one side of ten each has the probability 10/20 9/19 8/18 7/17 6/16 5/15.
    @Test func `a new group counts by its hosts, and by its time`() {
        func new(_ stalls: [[Int]], _ limit: Double) -> Bool {
            Comparison(
                side(["b": [500]]),
                side(onHosts: ["a": stalls, "b": [[500]]], hosts: 10, letter: "B")
            ).exceeds(limit)
        }
        #expect(new(Array(repeating: [60_000], count: 6), 1))
        // Not by number alone: these hosts' short stalls are nothing beside the long ones of two.
        #expect(!new(Array(repeating: [60_000], count: 2) + Array(repeating: [1], count: 4), 1.5))
        #expect(!new([Array(repeating: 60_000, count: 100)], 1))
        let found = Comparison(side([:]), side(["a": Array(repeating: 9, count: 6)], letter: "B"))
        #expect(found.ratio.value == .infinity && found.ratio.high == .infinity)
        #expect(found.groups[0].isSignificant && found.ratio.low >= 1 && found.ratio.low < 3)
        let gone = Comparison(side(["a": Array(repeating: 9, count: 6)]), side([:], letter: "B"))
        #expect(gone.ratio.value == 0 && abs(gone.ratio.high * found.ratio.low - 1) < 1e-6)
    }

    /// Ten hosts have it a hundred times each, and none of ten before.
    @Test func `a new group of all hosts exceeds a limit among many groups, a rare one does not`() {
        let others = Dictionary(
            uniqueKeysWithValues: (1...60).map { ("old \($0)", Array(repeating: 500, count: 200)) })
        func exceeds(_ hosts: Int, _ stalls: Int, _ limit: Double) -> Bool {
            var groups = others.mapValues { dealt($0, to: 10) }
            groups["new"] = Array(repeating: Array(repeating: 500, count: stalls), count: hosts)
            return Comparison(
                side(others), side(onHosts: groups, hosts: 10, letter: "B")
            ).exceeds(limit)
        }
        #expect(exceeds(10, 100, 1.5) && exceeds(10, 100, 2))
        // By its hosts, not by their stalls: those may have come at once.
        #expect(exceeds(10, 1, 1.5))
        #expect(!exceeds(6, 100, 1.5) && !exceeds(10, 100, 10))
    }

    /// Were it as rare on both sides, three of ten hosts and none of ten would be no rarity.
    @Test func `a new group's bound is what its hosts' number can exclude`() {
        func low(_ hosts: Int, of all: Int, hours: (Double, Double) = (10, 10)) -> Double {
            Comparison(
                side([:], hours: hours.0),
                side(
                    onHosts: ["a": Array(repeating: [500], count: hosts)], hosts: all, letter: "B",
                    hours: hours.1)
            ).groups[0].ratio.low
        }
        #expect(low(3, of: 10) <= 1)
        #expect(low(6, of: 10) > 1.5 && low(6, of: 10) < low(8, of: 10))
        #expect(low(10, of: 10) > 4 && low(10, of: 10) < 10)
        // Watched ten times as long, more hosts have it.
        #expect(low(8, of: 10, hours: (10, 100)) < 1)
    }

    @Test func `groups of single hosts are not judged, their total is`() {
        func side(_ letter: String, _ stalls: Int) -> ComparedSide {
            let hosts = (0..<10).map { number in
                (0..<10).map { number == $0 ? Array(repeating: 500, count: stalls) : [] }
            }
            return self.side(
                onHosts: Dictionary(
                    uniqueKeysWithValues: hosts.indices.map { ("host \($0)", hosts[$0]) }),
                hosts: 10, letter: letter)
        }
        let found = Comparison(side("A", 10), side("B", 30), by: .host)
        #expect(found.groups.count == 10)
        #expect(found.groups.allSatisfy { $0.cannotTell == "each is one host" })
        #expect(found.groups.allSatisfy { !$0.isSignificant })
        #expect(found.isSignificant && found.exceeds(1.5) && found.cannotTell == nil)
    }

    @Test func `a limit is exceeded beyond chance only`() {
        let few = Array(repeating: 500, count: 20)
        #expect(compared(few, few + few + few).exceeds(1.5))
        // That 60 of 80 stalls come where two thirds are expected is no rarity.
        #expect(!compared(few, few + few + few).exceeds(2))
        #expect(!compared(few, few + few + few).exceeds(4))
        #expect(!compared([500], [500, 500, 500]).exceeds(2))
        #expect(!compared([], [500]).exceeds(2))
        #expect(compared([], few).exceeds(2))
        #expect(!compared([], []).exceeds(1))
    }

    /// 1.47 times as much is beyond chance, and more than 1.2 times as much is not.
    @Test func `what is tested is the limit, not whether there is a difference`() {
        let first = (0..<10).map { Array(repeating: 500, count: 18 + $0 % 4) }
        let second = (0..<10).map { Array(repeating: 500, count: 22 + $0 % 5 * 2) }
        let found = Comparison(
            side(onHosts: ["a": first], hosts: 10, letter: "A"),
            side(onHosts: ["a": second], hosts: 10, letter: "B"))
        #expect(found.groups[0].change == .worse && found.ratio.value > 1.2)
        #expect(found.exceeds(1) && !found.exceeds(1.25))
    }

    @Test(arguments: [1, 2, 3])
    func `the other way round is the mirror image`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func groups(_ hosts: Int) -> [String: [[Int]]] {
            ["a", "b", "c"].reduce(into: [:]) { groups, name in
                groups[name] = (0..<hosts).map { _ in draw(4, &random) }
            }
        }
        for (one, other) in [(10, 10), (6, 9)] {
            let first = side(onHosts: groups(one), hosts: one, letter: "A", hours: 10)
            let second = side(onHosts: groups(other), hosts: other, letter: "B", hours: 20)
            let forth = Comparison(first, second)
            let back = Comparison(second, first)
            for group in forth.groups {
                let mirrored = back.groups.first { $0.title == group.title }!
                let words: [GroupChange: GroupChange] = [.worse: .better, .better: .worse]
                #expect(mirrored.change == words[group.change] ?? group.change)
                #expect(mirrored.isSignificant == group.isSignificant)
                #expect(abs(mirrored.ratio.low * group.ratio.high - 1) < 1e-4)
                #expect(abs(mirrored.ratio.high * group.ratio.low - 1) < 1e-4)
            }
            #expect(abs(back.ratio.low * forth.ratio.high - 1) < 1e-4)
        }
    }

    @Test func `what changed most comes first`() {
        let compared = Comparison(
            side(["a": [1000], "b": [5000], "c": [100]]),
            side(["a": [1100], "b": [100], "d": [9000]], letter: "B"))
        #expect(compared.groups.map(\.title) == ["d", "b", "a", "c"])
        #expect(compared.first.count == 3 && compared.second.total == .milliseconds(10_200))
    }

    /// Stalls come at random with lengths of an exponential distribution.
    private func draw(_ expected: Double, _ random: inout SeededGenerator) -> [Int] {
        var stalls: [Int] = []
        var time = 0.0
        while true {
            time -= logarithm(Double.random(in: 0.000_001...1, using: &random))
            if time > expected { return stalls }
            stalls.append(
                250 - Int(500 * logarithm(Double.random(in: 0.000_001...1, using: &random))))
        }
    }

    private func logarithm(_ value: Double) -> Double {
        // Halves until the series converges quickly; tests need no math library.
        var (value, sum) = (value, 0.0)
        while value < 0.5 {
            value *= 2
            sum -= 0.693_147_180_559_945
        }
        let ratio = (value - 1) / (value + 1)
        var (term, series) = (ratio, 0.0)
        for power in stride(from: 1.0, to: 60, by: 2) {
            series += term / power
            term *= ratio * ratio
        }
        return sum + 2 * series
    }

    /// `make truth-diff` has the other cases, a thousand pairs each.
    @Test func `intervals hold the truth about 19 times of 20`() {
        var random = SeededGenerator(seed: 5)
        for (rate, truth) in [(3.0, 1.0), (3, 2)] {
            var held = 0
            for _ in 0..<60 {
                func hosts(_ rate: Double) -> [[Int]] { (0..<8).map { _ in draw(rate, &random) } }
                let ratio = Comparison(
                    side(onHosts: ["a": hosts(rate)], hosts: 8, letter: "A"),
                    side(onHosts: ["a": hosts(rate * truth)], hosts: 8, letter: "B")
                ).ratio
                if ratio.low <= truth, truth <= ratio.high { held += 1 }
            }
            #expect(held >= 52, "\(rate) \(truth)")
        }
    }
}
