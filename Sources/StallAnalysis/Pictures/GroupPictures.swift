// The data of the pictures of groups, collected in one pass over the stalls: memory grows with groups, days and
// different stacks, not with stalls.

package import StallModel
package import StallQuery

/// How often, and for how long.
package struct CountAndTime: Hashable, Sendable {
    package var count = 0
    package var time = Duration.zero

    mutating func add(_ duration: Duration) {
        count += 1
        time += duration
    }
}

/// A waiting function and the function that it waited for.
package struct LockEdge: Hashable, Sendable {
    package var loop: String
    package var waiter: String
    package var holder: String
    package var isDeadlock: Bool
}

/// The pictures' data of one group.
package struct GroupPicture: Sendable {
    package var flame: FlameTree
    /// By the part of the time.
    package var trend: [Int: CountAndTime] = [:]
    /// By the bin of `PicturedTime.bins`.
    package var bins: [Int]
    package var locks: [(edge: LockEdge, total: CountAndTime)] = []
    package var versions: [(name: String, total: CountAndTime)] = []
    package var hosts: [(name: String, total: CountAndTime)] = []
    package var systems: [(name: String, total: CountAndTime)] = []
    package var devices: [(name: String, total: CountAndTime)] = []
    /// The stalls that the store still has.
    package var seen = CountAndTime()
    /// The longest of them, and on which side it is.
    package var longest: (id: UniqueID, side: Int)?
}

/// The axis of time of all pictures: days, or hours of a short time.
package struct PicturedTime: Sendable {
    package var start: UnixTime
    package var unit: TrendUnit
    package var count: Int
    /// When each app's version was first seen.
    package var versions: [(name: String, first: UnixTime)] = []

    /// The upper bounds of the durations' bins, in milliseconds; the last bin has none.
    package static let bins: [Int64] = [
        100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 300_000, 3_600_000,
    ]

    package init(_ span: (first: UnixTime, last: UnixTime)?) {
        let hour: Int64 = 3_600_000_000
        let first = max(0, span?.first.microseconds ?? 0)
        let last = max(first, span?.last.microseconds ?? 0)
        unit = last - first > 72 * hour ? .day : .hour
        let step = unit == .day ? 24 * hour : hour
        start = UnixTime(microseconds: first / step * step)
        // A mistaken clock must not make a picture of a million days.
        count = Int(min((last - start.microseconds) / step + 1, 3660))
    }

    package var step_us: Int64 { unit == .day ? 86_400_000_000 : 3_600_000_000 }

    func part(of time: UnixTime) -> Int {
        Int(
            min(
                max((max(time.microseconds, 0) - start.microseconds) / step_us, 0),
                Int64(count) - 1))
    }

    static func bin(of duration: Duration) -> Int {
        let milliseconds = duration.nanoseconds / 1_000_000
        return bins.firstIndex { milliseconds < $0 } ?? bins.count
    }
}

/// Collects the pictures of some groups, of one side or of two.
package struct GroupPictures {
    private struct Place: Hashable {
        var group: Int32
        var side: Int32
        var executable: Int32
        var stack: Int64
    }

    private struct Collected {
        var withoutStack: [Duration]
        var trend: [Int: CountAndTime] = [:]
        var bins = Array(repeating: 0, count: PicturedTime.bins.count + 1)
        var locks: [LockEdge: CountAndTime] = [:]
        var versions: [String: CountAndTime] = [:]
        var hosts: [String: CountAndTime] = [:]
        var systems: [String: CountAndTime] = [:]
        var devices: [String: CountAndTime] = [:]
        var seen = CountAndTime()
        var longest: (id: UniqueID, side: Int, duration: Duration)?
    }

    /// More of a group's stacks than this are drawn as one: the lightest of thousands are no picture.
    private static let stackLimit = 3000
    /// Names of one kind in one group; the others are counted together.
    private static let nameLimit = 200

    package let groups: [ReportGroup]
    package private(set) var time: PicturedTime
    private let rules: GroupingRules
    private let sideCount: Int
    private var titles: GroupTitles
    private var numbers: [Int64: Int] = [:]
    private var families: [Int64: [Int]] = [:]
    private var collected: [Collected]
    private var times: [Place: Int64] = [:]
    private var executables: [BuildID?: Int32] = [:]
    private var holderNames: [Int64: String?] = [:]
    private var firstSeen: [String: UnixTime] = [:]

    package init(
        of groups: [ReportGroup], time: PicturedTime, rules: GroupingRules, sideCount: Int = 1
    ) {
        self.groups = groups
        self.time = time
        self.rules = rules
        self.sideCount = sideCount
        titles = GroupTitles(rules: rules)
        collected = groups.map { _ in
            Collected(withoutStack: Array(repeating: .zero, count: sideCount))
        }
        for (number, group) in groups.enumerated() {
            numbers[group.signature] = number
            families[group.family, default: []].append(number)
        }
    }

    /// Reads the stalls of one side.
    package mutating func collect(
        from store: any QueryableStore, _ filter: ReportFilter, side: Int = 0
    ) throws {
        holderNames.removeAll()
        titles = GroupTitles(rules: rules, storeRules: try store.rulesHash())
        // Numbers of stacks are those of one store: a side is drawn before the next one is read.
        try store.forEachStall(filter, in: .stored, limit: nil) { trace, lookup in
            try add(trace, lookup, side)
        }
    }

    private mutating func add(
        _ trace: StallTrace, _ lookup: any StoreLookup, _ side: Int
    ) throws {
        let version = "\(trace.run.app) \(trace.run.version)"
        if firstSeen.count < 1000 || firstSeen[version] != nil {
            firstSeen[version] = min(firstSeen[version] ?? trace.start, trace.start)
        }
        guard let number = number(of: try titles.group(of: trace, lookup)) else { return }
        let executable =
            executables[trace.run.buildID] ?? Int32(executables.count)
        executables[trace.run.buildID] = executable
        let parts = trace.parts
        if parts.isEmpty { collected[number].withoutStack[side] += trace.duration }
        for part in parts {
            let place = Place(
                group: Int32(number), side: Int32(side), executable: executable, stack: part.stack)
            times[place, default: 0].addSaturated(part.duration_ns)
        }
        collected[number].seen.add(trace.duration)
        // Of two sides the second one is looked at.
        if let longest = collected[number].longest, longest.side == side,
            longest.duration >= trace.duration
        {
        } else {
            collected[number].longest = (trace.id, side, trace.duration)
        }
        collected[number].trend[time.part(of: trace.start), default: CountAndTime()].add(
            trace.duration)
        collected[number].bins[PicturedTime.bin(of: trace.duration)] += 1
        Self.add(version, trace.duration, to: &collected[number].versions)
        Self.add(trace.run.host, trace.duration, to: &collected[number].hosts)
        Self.add(
            trace.run.os ?? "unknown os", trace.duration, to: &collected[number].systems)
        Self.add(
            trace.run.device ?? "unknown device", trace.duration, to: &collected[number].devices)
        if trace.cause?.cause == .lock, let holder = trace.holder {
            let function = try holderFunction(holder, trace.run.buildID, lookup)
            let thread = holder.name.map { "'\($0)'" } ?? "a thread"
            let edge = LockEdge(
                loop: trace.loop, waiter: groups[number].frames.first ?? groups[number].title,
                holder: thread + (function.map { " in \($0)" } ?? ""),
                isDeadlock: trace.cause?.holder?.isDeadlock ?? false)
            let locks = collected[number].locks
            if locks.count < Self.nameLimit || locks[edge] != nil {
                collected[number].locks[edge, default: CountAndTime()].add(trace.duration)
            }
        }
    }

    private static func add(
        _ name: String, _ duration: Duration, to names: inout [String: CountAndTime]
    ) {
        let isKnown = names.count < nameLimit || names[name] != nil
        names[isKnown ? name : "others", default: CountAndTime()].add(duration)
    }

    /// The group's number; of cut stacks that of the whole ones that they are the beginning of.
    private func number(of group: ReportGroup) -> Int? {
        if let number = numbers[group.signature] { return number }
        guard group.isCut else { return nil }
        return families[group.family]?.first { groups[$0].frames.starts(with: group.frames) }
    }

    private mutating func holderFunction(
        _ holder: TracedThread, _ executable: BuildID?, _ lookup: any StoreLookup
    ) throws -> String? {
        guard let stack = holder.stack else { return nil }
        if let known = holderNames[stack] { return known }
        let signature = DefaultGrouper(rules: rules).signature(
            of: [(try lookup.frames(ofStack: stack), .seconds(1))], executable: executable)
        let name = signature.isWithoutAppFrame ? nil : signature.keyFrames.first
        if holderNames.count > 10_000 { holderNames.removeAll() }
        holderNames[stack] = .some(name)
        return name
    }

    /// The collected data of each group.
    ///
    /// - Parameters:
    ///   - stores: Where the stacks of each side are read from.
    ///   - nodeLimit: The most calls that are drawn of a group.
    package func pictures(
        from stores: [any QueryableStore], nodeLimit: Int
    ) throws -> [GroupPicture] {
        var stacks: [[(key: Place, time: Int64)]] = groups.map { _ in [] }
        for (key, time) in times { stacks[Int(key.group)].append((key, time)) }
        let builds = Dictionary(uniqueKeysWithValues: executables.map { ($0.value, $0.key) })
        return try groups.indices.map { number in
            let part = collected[number]
            var flame = FlameTree(sideCount: sideCount)
            for side in 0..<sideCount {
                let own = stacks[number].filter { $0.key.side == side }.sorted {
                    ($1.time, $0.key.stack, $0.key.executable)
                        < ($0.time, $1.key.stack, $1.key.executable)
                }
                var sets = StackSets()
                for (key, time) in own.prefix(Self.stackLimit) {
                    sets.add(
                        [WeightedStack(stack: key.stack, weight: .nanoseconds(1))],
                        lasting: .nanoseconds(time), executable: builds[key.executable]!)
                }
                if part.withoutStack[side] > .zero {
                    sets.add([], lasting: part.withoutStack[side], executable: nil)
                }
                var all = TreeSelection()
                all.frames = .all
                let frames = try stores[side].frames(
                    ofStacks: Set(own.prefix(Self.stackLimit).map(\.key.stack)))
                flame.add(
                    CallTree(
                        sets, frames: frames, direction: .topDown, selection: all, rules: rules),
                    side: side)
                let rest = own.dropFirst(Self.stackLimit).reduce(Int64(0)) {
                    $0.addingSaturated($1.time)
                }
                flame.addRoot(FlameTree.rest, .nanoseconds(rest), side: side)
                flame.addTotal(.nanoseconds(rest), side: side)
            }
            return GroupPicture(
                flame: flame.drawn(limit: nodeLimit), trend: part.trend, bins: part.bins,
                locks: Self.sorted(part.locks, by: \.waiter).map { ($0.name, $0.total) },
                versions: Self.sorted(part.versions, by: \.self),
                hosts: Self.sorted(part.hosts, by: \.self),
                systems: Self.sorted(part.systems, by: \.self),
                devices: Self.sorted(part.devices, by: \.self), seen: part.seen,
                longest: part.longest.map { ($0.id, $0.side) })
        }
    }

    /// When each version was first seen, the earliest first.
    package var versionsSeen: [(name: String, first: UnixTime)] {
        firstSeen.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map { ($0.key, $0.value) }
    }

    private static func sorted<Name: Hashable>(
        _ totals: [Name: CountAndTime], by name: (Name) -> String
    ) -> [(name: Name, total: CountAndTime)] {
        totals.sorted { ($1.value.time, name($0.key)) < ($0.value.time, name($1.key)) }
            .map { ($0.key, $0.value) }
    }
}
