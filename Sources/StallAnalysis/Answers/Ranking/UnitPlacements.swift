// The units that a comparison resamples: hosts, or the runs of hosts that are on both sides. Where nothing changed, it
// is chance on which side a host is: how much a difference means is how seldom random placements of the same hosts show
// as much.
//
// docs/decisions/0019-judge-differences-by-hosts.md has the rule and how it was measured.

internal import Glibc
internal import StallModel

/// A host or a process run on one side.
struct ComparedUnit {
    var host: String
    /// Empty for a whole host.
    var run: String
    var isSecond: Bool
    /// Its watched time, in units of the mean of its side.
    var exposure: Double
    /// Its watched time, in hours or in parts of the side.
    var watched: Double
}

/// The units of a comparison, and random placements of them on the two sides.
struct UnitPlacements {
    enum Kind: String { case host, run }

    /// Apart from the actual one.
    static let count = 999
    /// Fewer placements than these prove nothing: the most extreme of them are not rare.
    private static let leastPlacements = 50.0
    /// The most units that a side has of hosts on both sides, and of others; more are put together.
    static let limit = 1_000

    private(set) var kind: Kind
    private(set) var units: [ComparedUnit] = []
    /// The unit that each process run of a side is a part of.
    private var numbers: [SideRun: Int] = [:]
    /// Units that may change places, by their numbers: those of a host that is on both sides; all that are on one side.
    private(set) var strata: [[Int]] = []
    /// Whether the units of the sides were watched for about as long as each other. If not, a random placement is not
    /// as likely as the actual one.
    private(set) var isEven = true
    /// Whether each unit is on the other side in each random placement, 1 or 0: by unit.
    private(set) var moves: [Double] = []
    /// The watched time that the second side has more in each random placement, in the unit of `ComparedUnit`.
    private(set) var exposureChanges: [Double] = []
    /// The watched time of both sides.
    private(set) var exposure = 0.0

    private struct SideRun: Hashable {
        var run: UniqueID
        var isSecond: Bool
    }

    private struct UnitBlock: Hashable {
        var host: Int
        var isShared, isSecond: Bool
        /// Of a host's runs.
        var part = 0
    }

    /// How many units each side has, before any were put together.
    private(set) var sizes = (first: 0, second: 0)

    /// How many units each side has.
    var counts: (first: Int, second: Int) {
        let second = units.count(where: \.isSecond)
        return (units.count - second, second)
    }

    /// The unit that a run's stalls count for.
    func unit(of run: UniqueID, isSecond: Bool) -> Int? {
        numbers[SideRun(run: run, isSecond: isSecond)]
    }

    /// - Returns: Nil if the units are too few for a judgement; `reason` then says how few.
    static func make(
        _ first: [ComparedRun], _ second: [ComparedRun], areWatched: Bool
    ) -> (placements: UnitPlacements?, reason: String?) {
        let hosts = (Set(first.map(\.host)), Set(second.map(\.host)))
        guard !hosts.0.isEmpty, !hosts.1.isEmpty else {
            return (nil, hosts.0.isEmpty && hosts.1.isEmpty ? "no hosts" : "no hosts on a side")
        }
        let byHost = UnitPlacements(.host, first, second, areWatched: areWatched)
        if byHost.tells { return (byHost.placed, nil) }
        // Runs of one host share it: they are compared only with runs of the same host.
        if hosts.0 == hosts.1 {
            let byRun = UnitPlacements(.run, first, second, areWatched: areWatched)
            if byRun.tells { return (byRun.placed, nil) }
            if hosts.0.count == 1 { return (nil, Self.words(byRun.counts, "run")) }
        }
        return (nil, Self.words((hosts.0.count, hosts.1.count), "host"))
    }

    /// `3 hosts`, `1 host and 5 hosts`.
    private static func words(_ counts: (first: Int, second: Int), _ noun: String) -> String {
        func counted(_ count: Int) -> String { "\(count) \(noun)" + (count == 1 ? "" : "s") }
        return counts.first == counts.second
            ? counted(counts.first) : "\(counted(counts.first)) and \(counted(counts.second))"
    }

    private init(
        _ kind: Kind, _ first: [ComparedRun], _ second: [ComparedRun], areWatched: Bool
    ) {
        self.kind = kind
        for (runs, isSecond) in [(first, false), (second, true)] {
            add(runs, isSecond: isSecond, areWatched: areWatched)
        }
        sizes = counts
        putTogether()
        let sides = [false, true].map { side in units.filter { $0.isSecond == side } }
        let means = sides.map { side in
            side.reduce(0) { $0 + $1.watched } / Double(max(side.count, 1))
        }
        for index in units.indices {
            units[index].exposure = units[index].watched / means[units[index].isSecond ? 1 : 0]
        }
        makeStrata()
        isEven = areEven(means)
    }

    private mutating func add(_ runs: [ComparedRun], isSecond: Bool, areWatched: Bool) {
        for (host, runs) in Dictionary(grouping: runs, by: \.host).sorted(by: { $0.key < $1.key }) {
            for (index, run) in runs.sorted(by: { $0.run.words < $1.run.words }).enumerated() {
                if kind == .run || index == 0 {
                    units.append(
                        ComparedUnit(
                            host: host, run: kind == .run ? run.run.description : "",
                            isSecond: isSecond, exposure: 0, watched: 0))
                }
                let number = units.count - 1
                // Unknown watched time is taken to be the same on both sides: a side is one hour.
                if areWatched { units[number].watched += (run.watched ?? .zero) / .seconds(3600) }
                numbers[SideRun(run: run.run, isSecond: isSecond)] = number
            }
        }
        guard !areWatched else { return }
        let own = units.indices.filter { units[$0].isSecond == isSecond }
        for index in own { units[index].watched = 1 / Double(own.count) }
    }

    /// Puts units together where there are many: a host with the same other hosts on both sides, and runs with others
    /// of their host. As many on one side as on the other: one host and the mean of twelve do not vary alike, and could
    /// not change places.
    private mutating func putTogether() {
        let (first, second) = counts
        guard max(first, second) > Self.limit else { return }
        let parts = kind == .host ? partsOfHosts() : partsOfRuns()
        var merged: [ComparedUnit] = []
        var known: [UnitBlock: Int] = [:]
        var moved: [Int] = []
        for (unit, block) in zip(units, parts) {
            let number = known[block] ?? merged.count
            if number == merged.count {
                known[block] = number
                // By the name of its first host, which does not depend on the side.
                var unit = unit
                unit.watched = 0
                merged.append(unit)
            }
            merged[number].watched += unit.watched
            moved.append(number)
        }
        units = merged
        numbers = numbers.mapValues { moved[$0] }
    }

    /// By the hashes of their names: canaries may be each sixteenth host.
    private func partsOfHosts() -> [UnitBlock] {
        let hosts = [false, true].map { side in
            Set(units.lazy.filter { $0.isSecond == side }.map(\.host))
        }
        let shared = hosts[0].intersection(hosts[1])
        let own = hosts.map { $0.subtracting(shared) }
        let size = Self.size(for: max(own[0].count, own[1].count), limit: Self.limit)
        let sharedParts = Self.parts(
            shared, size: Self.size(for: shared.count, limit: Self.limit))
        let ownParts = own.map { Self.parts($0, size: size) }
        // Hosts on both sides stay apart from those on one.
        return units.map { unit in
            let part = sharedParts[unit.host]
            return UnitBlock(
                host: part ?? ownParts[unit.isSecond ? 1 : 0][unit.host]!, isShared: part != nil,
                isSecond: unit.isSecond)
        }
    }

    private func partsOfRuns() -> [UnitBlock] {
        var places: [String: Int] = [:]
        for unit in units where places[unit.host] == nil { places[unit.host] = places.count }
        var counts: [UnitBlock: Int] = [:]
        let hosts = units.map { unit in
            UnitBlock(host: places[unit.host]!, isShared: true, isSecond: unit.isSecond)
        }
        for host in hosts { counts[host, default: 0] += 1 }
        var seen: [UnitBlock: Int] = [:]
        return hosts.map { host in
            var other = host
            other.isSecond.toggle()
            let size = Self.size(
                for: max(counts[host]!, counts[other] ?? 0),
                limit: max(Self.limit / places.count, 2))
            var block = host
            let run = seen[host, default: 0]
            seen[host] = run + 1
            block.part = run % Self.partCount(of: counts[host]!, size: size)
            return block
        }
    }

    /// How many are put together so that no more than `limit` are left.
    private static func size(for count: Int, limit: Int) -> Int {
        max(1, (count + limit - 1) / limit)
    }

    private static func partCount(of count: Int, size: Int) -> Int {
        max(1, Int((Double(count) / Double(size)).rounded()))
    }

    /// The part of each host: as many in each as in the others, or one more.
    private static func parts(_ hosts: Set<String>, size: Int) -> [String: Int] {
        let hashes = hosts.map { host in
            var hash = ContentHash()
            hash.combine(host)
            return (hash: hash.value, host: host)
        }
        var parts: [String: Int] = [:]
        let count = partCount(of: hosts.count, size: size)
        for (place, one) in hashes.sorted(by: <).enumerated() { parts[one.host] = place % count }
        return parts
    }

    private mutating func makeStrata() {
        var byHost: [String: [Int]] = [:]
        for index in units.indices { byHost[units[index].host, default: []].append(index) }
        var single: [Int] = []
        for (_, members) in byHost.sorted(by: { $0.key < $1.key }) {
            if Set(members.map { units[$0].isSecond }).count == 2 {
                strata.append(members)
            } else {
                single += members
            }
        }
        if !single.isEmpty { strata.append(single) }
        // An order that does not depend on which side is the first.
        strata = strata.map { members in
            members.sorted { left, right in
                let (left, right) = (units[left], units[right])
                return (left.host, left.run, left.watched) < (right.host, right.run, right.watched)
            }
        }
    }

    /// Whether enough placements differ from the actual one.
    private var tells: Bool {
        let placements = strata.reduce(0) { sum, members in
            let second = Double(members.count(where: { units[$0].isSecond }))
            let all = Double(members.count)
            return sum + lgamma(all + 1) - lgamma(second + 1) - lgamma(all - second + 1)
        }
        let (first, second) = counts
        return placements >= log(Self.leastPlacements) && first >= 3 && second >= 3
    }

    private func areEven(_ means: [Double]) -> Bool {
        guard means[0] > 0, means[1] > 0, max(means[0], means[1]) < 1.5 * min(means[0], means[1])
        else { return false }
        for side in [false, true] {
            let own = units.filter { $0.isSecond == side }.map(\.exposure)
            let squares = own.reduce(0) { $0 + $1 * $1 }
            guard squares < 1.5 * Double(own.count) else { return false }
        }
        return true
    }

    /// With the random placements.
    private var placed: UnitPlacements {
        var placed = self
        placed.exposureChanges = Array(repeating: 0, count: Self.count)
        placed.exposure = units.reduce(0) { $0 + $1.exposure }
        var random = SplitMix(state: 0x5ca1_ab1e)
        let wasSecond = units.map(\.isSecond)
        let exposures = units.map(\.exposure)
        var isSecond = wasSecond
        var moves = Array(repeating: 0.0, count: units.count * Self.count)
        moves.withUnsafeMutableBufferPointer { moves in
            for members in strata {
                var draw = Draw(members, units)
                for place in 0..<Self.count {
                    for unit in members { isSecond[unit] = false }
                    draw.next(&random) { isSecond[$0] = true }
                    var change = placed.exposureChanges[place]
                    for unit in members where isSecond[unit] != wasSecond[unit] {
                        moves[unit * Self.count + place] = 1
                        change += isSecond[unit] ? exposures[unit] : -exposures[unit]
                    }
                    placed.exposureChanges[place] = change
                }
            }
        }
        placed.moves = moves
        // A rest of rounding is no change.
        for place in placed.exposureChanges.indices
        where abs(placed.exposureChanges[place]) < 1e-9 * placed.exposure {
            placed.exposureChanges[place] = 0
        }
        return placed
    }
}

/// Random placements of the units of a stratum: as many as are on a side stay on it. The same draws put the same units
/// on the other side if the sides are exchanged, so that `diff B A` mirrors `diff A B`.
private struct Draw {
    private var order: [Int]
    private let size: Int
    private let drawsSecond: Bool

    init(_ members: [Int], _ units: [ComparedUnit]) {
        order = members
        let second = members.count(where: { units[$0].isSecond })
        let first = members.count - second
        size = min(first, second)
        drawsSecond = first == second ? units[members[0]].isSecond : second < first
    }

    /// Calls `place` with each unit on the second side.
    mutating func next(_ random: inout SplitMix, _ place: (Int) -> Void) {
        order.withUnsafeMutableBufferPointer { order in
            for place in 0..<size {
                order.swapAt(place, place + random.number(below: order.count - place))
            }
            for unit in drawsSecond ? order[..<size] : order[size...] { place(unit) }
        }
    }
}

/// The same numbers in every process: an answer must not depend on when it is asked for.
private struct SplitMix {
    var state: UInt64

    mutating func number(below bound: Int) -> Int {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        mixed ^= mixed >> 31
        return Int(mixed.multipliedFullWidth(by: UInt64(bound)).high)
    }
}
