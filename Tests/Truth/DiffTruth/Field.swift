// The field: hosts of uneven load, whose stalls are of some length and come alone or in bursts.

import Foundation
import StallModel
import StallQuery

/// The same numbers for the same seed.
struct Random {
    private var state: UInt64
    /// Normal numbers are drawn two at a time.
    private var nextNormal: Double?

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Above 0, below 1.
    mutating func unit() -> Double { (Double(next() >> 11) + 0.5) / 9_007_199_254_740_992 }

    mutating func normal() -> Double {
        if let next = nextNormal {
            nextNormal = nil
            return next
        }
        let (size, angle) = (sqrt(-2 * log(unit())), 2 * .pi * unit())
        nextNormal = size * sin(angle)
        return size * cos(angle)
    }

    mutating func poisson(_ mean: Double) -> Int {
        // Of a large mean it is the sum of those of its parts.
        var (count, rest) = (0, mean)
        while rest > 0 {
            let part = min(rest, 30)
            rest -= part
            var product = unit()
            let end = exp(-part)
            while product > end {
                count += 1
                product *= unit()
            }
        }
        return count
    }
}

enum Lengths: String, CaseIterable {
    case constant, logNormal1, logNormal2, pareto

    /// In seconds; one on average.
    func draw(_ random: inout Random) -> Double {
        switch self {
        case .constant: 1
        case .logNormal1: exp(random.normal() - 0.5)
        case .logNormal2: exp(2 * random.normal() - 2)
        case .pareto: pow(random.unit(), -1 / 1.5) / 3
        }
    }
}

/// Where the lengths of a case's stalls come from.
///
/// There are a million stalls to a pair of the largest cases: theirs are drawn from 65,536 lengths that are drawn before.
struct LengthSource {
    private let lengths: Lengths
    private var known: [Int64] = []

    init(_ one: Case) {
        lengths = one.lengths
        guard one.stalls >= 1_000 else { return }
        var random = Random(seed: 36)
        known = (0..<65_536).map { _ in nanoseconds(lengths.draw(&random)) }
    }

    /// In nanoseconds.
    func draw(_ random: inout Random) -> Int64 {
        known.isEmpty
            ? nanoseconds(lengths.draw(&random))
            : known[Int(truncatingIfNeeded: random.next() >> 48)]
    }
}

func nanoseconds(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }

/// Which hosts or runs are on the two sides.
struct Design {
    var first: Int
    var second: Int
    /// The same hosts on both sides.
    var isShared = false
    /// Runs of one host.
    var areRuns = false
    /// Each host's watched hours.
    var hours = (first: 100.0, second: 100.0)
    /// The standard deviation of the logarithm of each host's hours.
    var spread = 0.0

    var name: String {
        "\(first)/\(second)" + (isShared ? " same hosts" : areRuns ? " runs of one host" : " hosts")
            + (hours.first == hours.second
                ? "" : " watched \(Int(hours.first)):\(Int(hours.second))")
            + (spread > 0 ? " watched unevenly" : "")
    }
}

struct Case {
    var design: Design
    var lengths: Lengths
    /// Expected, of each group on a side.
    var stalls: Double
    var isBursty = false
    var groups = 1
    /// The value of `--fail-above` where all groups are as many times as slow.
    var limit = 1.5
    /// Whether the first group is new on the second side, where others have one that is twice as slow.
    var isNew = false

    var name: String {
        "\(design.name), \(lengths.rawValue), \(Int(stalls)) stalls"
            + (isBursty ? " in bursts" : "")
            + ", \(groups) groups" + (limit == 1.5 ? "" : ", limit \(Int(limit))")
            + (isNew ? ", the first one new" : "")
    }
}

/// The stalls of one group on one host.
struct Stalls {
    var totals = StallTotals()
    /// In nanoseconds; only of a pair that is written.
    var lengths: [Int64] = []
    private var sum: Int64 = 0

    /// As `StallTotals.add` does it one by one, but for sums of whole nanoseconds.
    mutating func add(_ length: Int64, isKept: Bool) {
        let seconds = Double(length) / 1e9
        totals.count += 1
        totals.squares += seconds * seconds
        sum += length
        if isKept { lengths.append(length) }
    }

    mutating func finish() { totals.total = .nanoseconds(sum) }
}

/// Both sides of a comparison: by host, by group.
struct Pair {
    var first: [[Stalls]] = []
    var second: [[Stalls]] = []
    /// Each host's watched hours.
    var hours: (first: [Double], second: [Double])

    /// - Parameters:
    ///   - truth: How many times as often each group stalls on the second side; infinite for a new one.
    ///   - isKept: Whether each stall's length is wanted.
    init(
        _ one: Case, truth: (Int) -> Double, _ source: LengthSource, isKept: Bool = false,
        _ random: inout Random
    ) {
        let design = one.design
        let mean = Double(design.first + design.second) / 2
        func loads() -> [Double] {
            let spread = design.areRuns ? 0.5 : 0.7
            let all = exp(spread * random.normal() - spread * spread / 2)
            return (0..<one.groups).map { _ in
                all * exp(spread / 2 * random.normal() - spread * spread / 8)
            }
        }
        func host(_ loads: [Double], _ hours: Double, _ factor: (Int) -> Double) -> [Stalls] {
            loads.enumerated().map { group, load in
                let expected = one.stalls / mean * load * hours / 100 * factor(group)
                var stalls = Stalls()
                for _ in 0..<random.poisson(one.isBursty ? expected / 5 : expected) {
                    // Bursts of five on average.
                    repeat {
                        stalls.add(source.draw(&random), isKept: isKept)
                    } while one.isBursty && random.unit() > 0.2
                }
                stalls.finish()
                return stalls
            }
        }
        func watched(_ hours: Double, _ count: Int) -> [Double] {
            (0..<count).map { _ in
                design.spread > 0 ? hours * exp(design.spread * random.normal()) : hours
            }
        }
        hours = (
            watched(design.hours.first, design.first), watched(design.hours.second, design.second)
        )
        let known = (0..<design.first).map { _ in loads() }
        for (loads, hours) in zip(known, hours.first) {
            first.append(host(loads, hours) { truth($0).isFinite ? 1 : 0 })
        }
        for (number, hours) in hours.second.enumerated() {
            second.append(
                host(design.isShared ? known[number] : loads(), hours) {
                    truth($0).isFinite ? truth($0) : 1
                })
        }
    }
}
