// Compares made-up versions of which it is known how they differ, with the comparison that `stallctl diff` makes: how
// often it calls noise significant, how often its intervals hold the truth, and how often it notices that a version is
// twice as slow. Usage: diff-truth [PAIRS [short|FIRST|FIRST-LAST]], the numbers of cases, from 1; or diff-truth sample,
// which prints pairs with their verdicts. SABOTAGE=1 judges by the rule of before.
//
// The last line: truth diff cases=N false_alarms=P coverage=P power_2x=P gate_false=P, in percent; false_alarms and
// gate_false of the worst case, coverage of the worst case, power of all cases.

import Foundation
import StallAnalysis
import StallModel
import StallQuery

let arguments = CommandLine.arguments.dropFirst()
let pairCount = arguments.first.flatMap { Int($0) } ?? 1000
let isShort = arguments.last == "short"
let asked = arguments.dropFirst().last?.split(separator: "-").compactMap { Int($0) } ?? []
let isSabotaged = ProcessInfo.processInfo.environment["SABOTAGE"] == "1"

/// Of one comparison.
struct Outcome {
    var isFalseAlarm: Bool
    var exceeds: Bool
    /// Whether the first groups' intervals hold the truth.
    var held: [Bool]
    /// Whether the first group is called worse.
    var isWorse: Bool
    /// How much more was lost in it, and at most in any group: what a test would go by that knew how that varies.
    var increase: Double
    var largestIncrease: Double
}

func side(
    _ hosts: [[Stalls]], of one: Case, hours: [Double], letter: String
) -> ComparedSide {
    let runs = hosts.indices.map { number in
        var hash = ContentHash()
        hash.combine("\(letter) \(number)")
        let id = UniqueID(
            bytes: withUnsafeBytes(of: (hash.value, Int64(number))) { Array($0) })!
        let name =
            one.design.areRuns
            ? "host" : one.design.isShared ? "host \(number)" : "host \(letter) \(number)"
        return ComparedRun(
            run: id, host: name, watched: .nanoseconds(Int64(hours[number] * 3600e9)))
    }
    let groups = (0..<one.groups).compactMap { number -> StallAggregate? in
        var all = StallTotals()
        var byRun: [RunTotals] = []
        for (host, run) in zip(hosts, runs) where host[number].totals.count > 0 {
            var part = RunTotals(run: run.run)
            part.add(host[number].totals, isWatched: true)
            byRun.append(part)
            all.add(host[number].totals)
        }
        guard all.count > 0 else { return nil }
        let signature = Int64(number)
        var aggregate = StallAggregate(
            ReportGroup(
                signature: signature, family: signature, title: "\(number)", frames: ["\(number)"]),
            totals: all, watched: all, first: UnixTime(microseconds: 0),
            last: UnixTime(microseconds: 0))
        aggregate.runs = byRun
        return aggregate
    }
    return ComparedSide(
        groups: groups, watched: runs.reduce(.zero) { $0 + $1.watched! }, runs: .known(runs))
}

func sides(of pair: Pair, _ one: Case) -> (first: ComparedSide, second: ComparedSide) {
    (
        side(pair.first, of: one, hours: pair.hours.first, letter: "A"),
        side(pair.second, of: one, hours: pair.hours.second, letter: "B")
    )
}

/// - Parameter limit: The value of `--fail-above`.
func compare(
    _ one: Case, _ truth: (Int) -> Double, limit: Double, _ source: LengthSource,
    _ random: inout Random
) -> Outcome {
    let pair = Pair(one, truth: truth, source, &random)
    let sides = sides(of: pair, one)
    let comparison = Comparison(sides.first, sides.second)
    let exposure = pair.hours.second.reduce(0, +) / pair.hours.first.reduce(0, +)
    let known = comparison.groups.filter { $0.group.signature < 5 }
    let group = comparison.groups.first { $0.group.signature == 0 }
    let increases = comparison.groups.map { group in
        group.second.total / .seconds(1) / exposure - group.first.total / .seconds(1)
    }
    let increase = zip(comparison.groups, increases).first { $0.0.group.signature == 0 }?.1 ?? 0
    let largestIncrease = increases.max() ?? 0
    if isSabotaged {
        let old = comparison.groups.map { OldRule($0.first, $0.second, exposure: exposure) }
        let total = OldRule(comparison.first, comparison.second, exposure: exposure)
        let held = zip(comparison.groups, old).filter { $0.0.group.signature < 5 }.map {
            $0.1.low <= truth(Int($0.0.group.signature))
                && truth(Int($0.0.group.signature)) <= $0.1.high
        }
        let place = comparison.groups.firstIndex { $0.group.signature == 0 }
        return Outcome(
            isFalseAlarm: (old + [total]).contains(where: \.isSignificant),
            exceeds: (old + [total]).contains { $0.exceeds(limit) }, held: held,
            isWorse: place.map { old[$0].low > 1 } ?? false, increase: increase,
            largestIncrease: largestIncrease)
    }
    return Outcome(
        isFalseAlarm: comparison.isSignificant
            || comparison.groups.contains(where: \.isSignificant),
        exceeds: comparison.exceeds(limit),
        held: known.map {
            let truth = truth(Int($0.group.signature))
            return $0.ratio.low <= truth && truth <= $0.ratio.high
        },
        isWorse: group.map { $0.isSignificant && $0.ratio.value > 1 } ?? false,
        increase: increase, largestIncrease: largestIncrease)
}

var cases: [Case] = []
let even = [
    Design(first: 4, second: 4), Design(first: 5, second: 5), Design(first: 10, second: 10),
    Design(first: 30, second: 30), Design(first: 6, second: 14),
    Design(first: 10, second: 10, isShared: true), Design(first: 30, second: 30, isShared: true),
    Design(first: 12, second: 12, areRuns: true), Design(first: 4, second: 20),
]
let uneven = [
    Design(first: 10, second: 10, hours: (400, 100)),
    Design(first: 10, second: 10, isShared: true, hours: (400, 100)),
    Design(first: 10, second: 10, spread: 1),
    Design(first: 10, second: 10, isShared: true, spread: 1),
]
let three = Design(first: 3, second: 3)
if isShort {
    for lengths in Lengths.allCases {
        cases.append(Case(design: even[2], lengths: lengths, stalls: 30))
    }
    cases.append(Case(design: even[5], lengths: .logNormal1, stalls: 30, isBursty: true))
    cases.append(Case(design: even[1], lengths: .constant, stalls: 3))
    cases.append(Case(design: three, lengths: .constant, stalls: 30))
    cases.append(Case(design: even[2], lengths: .logNormal1, stalls: 10, groups: 20))
} else {
    for lengths in Lengths.allCases {
        for design in even {
            for stalls in [3.0, 30, 400] {
                cases.append(Case(design: design, lengths: lengths, stalls: stalls))
            }
            cases.append(Case(design: design, lengths: lengths, stalls: 400, isBursty: true))
        }
        for design in uneven {
            for stalls in [3.0, 30, 400] {
                cases.append(Case(design: design, lengths: lengths, stalls: stalls))
            }
        }
        cases.append(Case(design: three, lengths: lengths, stalls: 30))
        cases.append(Case(design: even[2], lengths: lengths, stalls: 3, groups: 20))
        cases.append(Case(design: even[2], lengths: lengths, stalls: 30, groups: 20))
    }
    cases.append(Case(design: even[3], lengths: .logNormal1, stalls: 10, groups: 20))
    cases.append(Case(design: even[3], lengths: .logNormal1, stalls: 100, groups: 20))
    cases.append(Case(design: uneven[0], lengths: .logNormal1, stalls: 30, groups: 20))
    cases.append(Case(design: even[1], lengths: .logNormal2, stalls: 30, groups: 200))
    cases.append(Case(design: even[3], lengths: .constant, stalls: 10, groups: 200))
    // Rare groups, many of which are on one side only.
    let watchedLonger = Design(first: 10, second: 10, hours: (100, 400))
    for design in [
        even[1], even[2], even[3], even[4], even[5], uneven[0], uneven[2], watchedLonger,
    ] {
        for limit in [1.5, 4] {
            cases.append(
                Case(design: design, lengths: .constant, stalls: 1, groups: 50, limit: limit))
            cases.append(
                Case(design: design, lengths: .constant, stalls: 4, groups: 10, limit: limit))
            cases.append(
                Case(
                    design: design, lengths: .logNormal1, stalls: 15, isBursty: true, groups: 10,
                    limit: limit))
        }
    }
    for design in [even[1], even[2], even[3], even[4], even[5], uneven[0], watchedLonger] {
        for (stalls, groups) in [(10.0, 1), (100, 1), (100, 20), (1000, 20), (1000, 100)] {
            cases.append(
                Case(
                    design: design, lengths: .logNormal1, stalls: stalls, groups: groups,
                    isNew: true))
        }
    }
}

// Bursts, few of them on the side that was watched for a shorter time, with hosts that are on both sides.
for design in [
    Design(first: 10, second: 10, isShared: true, hours: (100, 400)),
    Design(first: 10, second: 10, isShared: true, hours: (400, 100)),
    Design(first: 12, second: 12, areRuns: true, hours: (100, 400)),
] where !isShort {
    for limit in [1.5, 4] {
        for stalls in [15.0, 100] {
            cases.append(
                Case(
                    design: design, lengths: .logNormal1, stalls: stalls, isBursty: true,
                    groups: 10,
                    limit: limit))
        }
    }
}

if arguments.first == "sample" {
    try writeSample(cases)
    exit(0)
}

func percent(_ share: Double) -> String { String(format: "%.1f", 100 * share) }
func share(_ flags: [Bool]) -> Double {
    flags.isEmpty ? 1 : Double(flags.count(where: { $0 })) / Double(flags.count)
}

var worst = (alarms: 0.0, coverage: 1.0, gate: 0.0)
var power: [Double] = []
var knowing: [Double] = []
var new: [Double] = []
let numbers = (asked.first ?? 1)...(asked.count > 1 ? asked[1] : cases.count)
for (number, one) in cases.enumerated() where numbers.contains(number + 1) {
    var random = Random(seed: UInt64(number + 1) &* 1_000_003)
    let source = LengthSource(one)
    // Three times as many of equal ones: of two hundred shares the largest shall be that of the worst case.
    let same = (0..<3 * pairCount).map { _ in compare(one, { _ in 1 }, limit: 1, source, &random) }
    // Of many groups only the first one is slower; at the limit all are.
    let twice = (0..<pairCount).map { _ in
        compare(one, { $0 == 0 ? one.isNew ? .infinity : 2 : 1 }, limit: 1.5, source, &random)
    }
    let limit = (0..<pairCount).map { _ in
        compare(one, { _ in one.limit }, limit: one.limit, source, &random)
    }
    let alarms = share(same.map(\.isFalseAlarm))
    let coverages = [same, twice, limit].map { share($0.flatMap(\.held)) }
    let gate = max(share(same.map(\.exceeds)), share(limit.map(\.exceeds)))
    let found = share(twice.map(\.isWorse))
    // What is rare of the largest group where nothing changed, were that known: as seldom as ours may be wrong.
    let sorted = same.map(\.largestIncrease).sorted()
    let bound = sorted[min(sorted.count - 1, Int(0.975 * Double(sorted.count)))]
    let known = share(twice.map { $0.increase > bound })
    if one.isNew {
        new.append(share(twice.map(\.exceeds)))
    } else if one.design.first > 3 {
        power.append(found)
        knowing.append(known)
    }
    worst.alarms = max(worst.alarms, alarms)
    worst.coverage = min(worst.coverage, coverages.min()!)
    worst.gate = max(worst.gate, gate)
    print(
        "\(one.name): false_alarms=\(percent(alarms)) coverage=\(coverages.map(percent).joined(separator: ",")) "
            + (one.isNew
                ? "new_fails=\(percent(new.last!)) "
                : "power_2x=\(percent(found)) knowing=\(percent(known)) ")
            + "gate_false=\(percent(gate))")
}
func mean(_ shares: [Double]) -> Double { shares.reduce(0, +) / Double(max(shares.count, 1)) }
if !new.isEmpty { print("new groups beyond a limit of 1.5: new_fails=\(percent(mean(new)))") }
print(
    "a test that knew how the largest increase varies where nothing changed: "
        + "power_2x=\(percent(mean(knowing)))")
print(
    "truth diff cases=\(numbers.count) false_alarms=\(percent(worst.alarms)) "
        + "coverage=\(percent(worst.coverage)) power_2x=\(percent(mean(power))) "
        + "gate_false=\(percent(worst.gate))")
