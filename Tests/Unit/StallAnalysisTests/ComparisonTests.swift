import StallModel
import StallQuery
import TestSupport
import Testing

@testable import StallAnalysis

/// Goal: a difference is called worse or better when it is not likely to be chance, and seldom otherwise.
/// Method: cases by hand; then many random pairs drawn from the same and from different rates.
@Suite struct ComparisonTests {
    private func hotspot(_ name: String, _ milliseconds: [Int]) -> StallAggregate {
        var hash = ContentHash()
        hash.combine(name)
        var totals = StallTotals()
        for duration in milliseconds { totals.add(.milliseconds(duration)) }
        return StallAggregate(
            ReportGroup(signature: hash.value, family: hash.value, title: name, frames: [name]),
            totals: totals, watched: totals, first: UnixTime(microseconds: 0),
            last: UnixTime(microseconds: 0))
    }

    private func side(_ groups: [String: [Int]], hours: Double? = nil) -> ComparedSide {
        ComparedSide(
            groups: groups.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }.map(hotspot),
            watched: hours.map { .seconds($0 * 3600) })
    }

    private func change(_ first: [Int], _ second: [Int]) -> GroupChange {
        Comparison(side(["a": first]), side(["a": second])).groups[0].change
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

    @Test func `time is compared per watched hour where it is known on both sides`() {
        let (first, second) = (["a": [1000, 1000]], ["a": [1000, 1000, 1000, 1000]])
        let known = Comparison(side(first, hours: 1), side(second, hours: 4))
        #expect(known.ratio.value == 0.5)
        #expect(known.watched?.second == .seconds(4 * 3600))
        for hours in [nil, 0.0] {
            let unknown = Comparison(side(first, hours: 1), side(second, hours: hours))
            #expect(unknown.ratio.value == 2)
            #expect(unknown.watched == nil)
        }
    }

    /// Clopper and Pearson's interval for 0 of 10 is 0 to 0.3085.
    @Test func `a side without stalls has a bound as well`() {
        let new = Comparison(
            side([:], hours: 2), side(["a": Array(repeating: 100, count: 10)], hours: 1))
        #expect(new.ratio.value == .infinity && new.ratio.high == .infinity)
        #expect(abs(new.ratio.low - 2 * (1 - 0.3085) / 0.3085) < 0.01)
        let gone = Comparison(side(["a": Array(repeating: 100, count: 10)]), side([:]))
        #expect(gone.ratio.value == 0 && gone.ratio.low == 0)
        #expect(abs(gone.ratio.high - 0.3085 / (1 - 0.3085)) < 0.001)
    }

    @Test func `a limit is exceeded beyond chance only`() {
        let few = Array(repeating: 500, count: 20)
        #expect(Comparison(side(["a": few]), side(["a": few + few + few])).exceeds(2))
        #expect(!Comparison(side(["a": few]), side(["a": few + few + few])).exceeds(4))
        #expect(!Comparison(side(["a": [500]]), side(["a": [500, 500, 500]])).exceeds(2))
        #expect(!Comparison(side([:]), side(["a": [500]])).exceeds(2))
        #expect(Comparison(side([:]), side(["a": few])).exceeds(2))
        #expect(!Comparison(side([:]), side([:])).exceeds(1))
    }

    @Test func `what changed most comes first`() {
        let compared = Comparison(
            side(["a": [1000], "b": [5000], "c": [100]]),
            side(["a": [1100], "b": [100], "d": [9000]]))
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

    @Test func `intervals hold the truth about 19 times of 20`() {
        var random = SeededGenerator(seed: 5)
        for (rate, truth) in [(12.0, 1.0), (60, 1), (30, 2)] {
            var held = 0
            for _ in 0..<1000 {
                let (first, second) = (draw(rate, &random), draw(rate * truth, &random))
                let ratio = Comparison(side(["a": first]), side(["a": second])).ratio
                if ratio.low <= truth, truth <= ratio.high { held += 1 }
            }
            #expect((920...990).contains(held), "\(rate) \(truth)")
        }
    }
}
