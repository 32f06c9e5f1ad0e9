// Pairs with the verdicts of the code of `diff`, a line of JSON each: TotalsTruth/diff_through_stores.py gives them to
// stallctl as stores.

import Foundation
import StallAnalysis
import StallModel
import StallQuery

/// A pair and what the comparison says of it.
struct SampledPair: Encodable {
    struct Run: Encodable {
        /// Hexadecimal.
        var run: String
        var host: String
        var watchedNs: Int64
        /// The lengths in nanoseconds, by group.
        var stalls: [[Int64]]
    }

    struct Verdict: Encodable {
        /// Nil for the total.
        var group: Int64?
        var significant: Bool
        /// As `diff --json` has them: nil for no bound.
        var ratioLow: Double?
        var ratioHigh: Double?
    }

    var `case`: String
    var a: [Run]
    var b: [Run]
    var limit: Double
    var exceeds: Bool
    var total: Verdict
    var groups: [Verdict]

    init(_ one: Case, _ pair: Pair) {
        let sides = sides(of: pair, one)
        let comparison = Comparison(sides.first, sides.second)
        func runs(_ hosts: [[Stalls]], _ side: ComparedSide) -> [Run] {
            guard case .known(let runs) = side.runs else { return [] }
            return zip(hosts, runs).map { stalls, run in
                Run(
                    run: run.run.description, host: run.host,
                    watchedNs: Int64(run.watched! / .nanoseconds(1)),
                    stalls: stalls.map(\.lengths))
            }
        }
        func finite(_ value: Double) -> Double? { value.isFinite ? value : nil }
        func verdict(_ group: Int64?, _ isSignificant: Bool, _ ratio: RateRatio, _ isTold: Bool)
            -> Verdict
        {
            Verdict(
                group: group, significant: isSignificant,
                ratioLow: isTold ? finite(ratio.low) : nil, ratioHigh: finite(ratio.high))
        }
        (self.case, limit) = (one.name, one.limit)
        a = runs(pair.first, sides.first)
        b = runs(pair.second, sides.second)
        exceeds = comparison.exceeds(one.limit)
        let isTold = comparison.cannotTell == nil
        total = verdict(nil, comparison.isSignificant, comparison.ratio, isTold)
        groups = comparison.groups.map {
            verdict(
                $0.group.signature, $0.isSignificant, $0.ratio, isTold && $0.cannotTell == nil)
        }
    }
}

/// Of each seventh case that is not too large a pair of equal versions, and one of a group that is slower or new.
func writeSample(_ cases: [Case]) throws {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    for (number, one) in cases.enumerated()
    where number % 7 == 0 && one.stalls * Double(one.groups) <= 2_000 {
        var random = Random(seed: UInt64(number + 1) &* 7_000_003)
        for factor in [1, one.isNew ? .infinity : 4.0] {
            let pair = Pair(
                one, truth: { $0 == 0 ? factor : 1 }, LengthSource(one), isKept: true, &random)
            let line = try encoder.encode(SampledPair(one, pair))
            print(String(decoding: line, as: UTF8.self))
        }
    }
}
