// Ranks functions by the time that they were anywhere on the stacks, of more stalls than can be held as reports. Stalls
// share sets of stacks: what a set's functions are is worked out once, and only listed functions get more than totals.

internal import StallModel
internal import StallQuery

/// The ranking of a table of stalls by all functions on their stacks.
struct InclusiveRanking {
    private let table: StallTable
    private let order: RankingOrder
    private let limit: Int
    /// The number of durations of a function that are held for exact quantiles; of more a histogram is.
    private let exactLimit: Int

    /// The functions' titles, by their numbers.
    private var titles: [String] = []
    /// For `addCells` alone.
    private var division = SetDivision()
    private var cells: [Cell] = []
    /// Where the buckets of each set begin.
    private var firstCell: [Int32] = [0]
    /// The functions of buckets.
    private var steps = NumberLists()
    /// The stacks of buckets, by index into their set's.
    private var members = NumberLists()
    /// In `members`: all stacks of a set.
    private let onAll: Int32
    private let kinds: StallKinds

    /// The functions of a set that are on the same of its stacks.
    fileprivate struct Cell {
        /// In `steps`.
        var steps: Int32
        /// In `members`.
        var members: Int32
    }

    /// Of all stalls with a list of functions, or with a title.
    private struct Total {
        var count: Int64 = 0
        var own_ns: Int64 = 0
        var watched_ns: Int64 = 0
        var longest_ns: Int64 = 0

        mutating func add(_ other: Total) {
            count += other.count
            own_ns.addSaturated(other.own_ns)
            watched_ns.addSaturated(other.watched_ns)
            longest_ns = max(longest_ns, other.longest_ns)
        }
    }

    init(
        _ table: StallTable, _ classifier: StackClassifier, by order: RankingOrder, limit: Int,
        exactLimit: Int
    ) {
        self.table = table
        self.order = order
        self.limit = limit
        self.exactLimit = exactLimit
        kinds = StallKinds(table)
        onAll = members.add([])
        addSets(classifier)
        division = SetDivision()
    }

    // MARK: Sets

    private mutating func addSets(_ classifier: StackClassifier) {
        var numbers: [PathStep: Int32] = [:]
        var titleNumbers: [String: Int32] = [:]
        // In `steps`, by program and path; negative where not known yet.
        var stepsOfPaths = table.sets.executables.map { _ in
            Array(repeating: Int32(-1), count: classifier.pathCount)
        }
        // A function is its name: functions of several modules with one name count once, as one.
        func number(of step: PathStep) -> Int32 {
            if let known = numbers[step] { return known }
            let title = titleNumbers[step.title] ?? Int32(titles.count)
            if title == titles.count {
                titleNumbers[step.title] = title
                titles.append(step.title)
                division.addStep()
            }
            numbers[step] = title
            return title
        }
        cells.reserveCapacity(table.sets.count * 5 / 2)
        firstCell.reserveCapacity(table.sets.count + 1)
        var own: [Int32] = []
        for set in 0..<table.sets.count {
            let program = table.sets.executableNumber(ofSet: set)
            own.removeAll(keepingCapacity: true)
            for stack in table.sets[set] {
                let path = Int(classifier.path(ofStack: stack))
                if stepsOfPaths[program][path] < 0 {
                    let frames = classifier.frames(
                        ofStack: stack, executable: table.sets.executables[program])
                    var found: [Int32] = []
                    for frame in frames.callout where frame.counts {
                        let number = number(of: frame.step)
                        if !found.contains(number) { found.append(number) }
                    }
                    stepsOfPaths[program][path] = steps.add(found)
                }
                own.append(stepsOfPaths[program][path])
            }
            addCells(own)
            firstCell.append(Int32(cells.count))
        }
    }

    /// - Parameter own: The functions on each stack of the set.
    private mutating func addCells(_ own: [Int32]) {
        guard own.count > 1 else {
            if let list = own.first, !steps[list].isEmpty {
                cells.append(Cell(steps: list, members: onAll))
            }
            return
        }
        division.divide(own, steps)
        for number in division.classes.indices.dropFirst() {
            division.select(number)
            guard !division.together.isEmpty else { continue }
            let isOnAll = division.stacks.count == own.count
            cells.append(
                Cell(
                    steps: steps.add(division.together),
                    members: isOnAll ? onAll : members.add(division.stacks)))
        }
    }

    private func cells(ofSet set: Int32) -> Range<Int> {
        Int(firstCell[Int(set)])..<Int(firstCell[Int(set) + 1])
    }

    /// Calls `body` with each stall, each list of functions on its stacks, the part of its time in which they were, and
    /// how much of that part was not the thread's own.
    private func forEachPart(
        where isWanted: (_ steps: Int32) -> Bool,
        _ body: (
            _ stall: StallTable.Stall, _ steps: Int32, _ part_ns: Int64, _ delayed_ns: Int64
        ) -> Void
    ) {
        table.forEachStall { stall, delayed, weights in
            var whole = 0.0
            for weight in weights { whole += Double(weight) }
            for cell in cells[cells(ofSet: stall.set)] where isWanted(cell.steps) {
                guard cell.members != onAll, !weights.isEmpty else {
                    body(stall, cell.steps, stall.duration_ns, delayed)
                    continue
                }
                var own = 0.0
                for member in members.numbers[members.range(of: cell.members)] {
                    own += Double(weights[Int(member)])
                }
                body(
                    stall, cell.steps,
                    Int64(nearest: Double(stall.duration_ns) * (own / whole)),
                    Int64(nearest: Double(delayed) * (own / whole)))
            }
        }
    }

    // MARK: Ranking

    /// The overview, the largest functions, and how many others there are.
    func ranking(ids: (_ source: Int64, _ seq: Int64) throws -> UniqueID?) throws
        -> Ranking
    {
        var overview = Overview(table)
        let (listed, count) = largest()
        var buckets: TimeBuckets?
        if let first = overview.first, let last = overview.last {
            buckets = Ranking.sparkline(
                from: first, through: last,
                days: table.stalls.lazy.map { (UnixTime(microseconds: $0.start_us), 1) })
        }
        let sums = sums(of: listed, buckets)
        let groups = sorted(
            try zip(listed, sums).map { title, sum in
                try sum.aggregate(
                    of: titles[Int(title)], kinds.all,
                    example: ids(Int64(sum.example.source), Int64(sum.example.seq)))
            }, by: order)
        // The millisecond and twelve random bits: other ids may share the first twelve digits.
        overview.example = groups.first?.example.map { String($0.description.prefix(16)) }
        return Ranking(
            overview: overview, groups: groups, restCount: count - groups.count, key: .inclusive,
            buckets: buckets)
    }

    /// The titles that are listed, and how many there are.
    private func largest() -> (listed: [Int32], count: Int) {
        var totals = Array(repeating: Total(), count: steps.count)
        forEachPart(where: { _ in true }) { stall, steps, part, delayed in
            let isWatched = table.facts[Int(stall.facts)].isWatched
            totals[Int(steps)].add(
                Total(
                    count: 1, own_ns: part - delayed, watched_ns: isWatched ? part : 0,
                    longest_ns: part))
        }
        var sizes = Array(repeating: Total(), count: titles.count)
        for (list, total) in totals.enumerated() where total.count > 0 {
            for step in steps[Int32(list)] { sizes[Int(step)].add(total) }
        }
        func size(_ title: Int32) -> Int64 {
            let size = sizes[Int(title)]
            return switch order {
            case .total, .p95: size.own_ns
            case .count: size.count
            case .max: size.longest_ns
            case .rate: size.watched_ns
            }
        }
        let present = titles.indices.filter { sizes[$0].count > 0 }.map { Int32($0) }
        let listed = present.sorted { left, right in
            let (one, other) = (size(left), size(right))
            if one != other { return one > other }
            let (time, otherTime) = (sizes[Int(left)].own_ns, sizes[Int(right)].own_ns)
            return time != otherTime ? time > otherTime : titles[Int(left)] < titles[Int(right)]
        }
        return (Array(listed.prefix(limit)), present.count)
    }

    /// All that is shown of the listed functions.
    private func sums(of listed: [Int32], _ buckets: TimeBuckets?) -> [InclusiveSum] {
        var places = Array(repeating: Int32(-1), count: titles.count)
        for (place, title) in listed.enumerated() { places[Int(title)] = Int32(place) }
        // Of all lists, one behind the other, and where those of each begin.
        var listedPlaces: [Int32] = []
        var firstListed: [Int32] = [0]
        for list in 0..<Int32(steps.count) {
            for step in steps[list] {
                let place = places[Int(step)]
                if place >= 0 { listedPlaces.append(place) }
            }
            firstListed.append(Int32(listedPlaces.count))
        }
        var sums = listed.map { _ in
            InclusiveSum(
                kindCount: kinds.all.count, bucketCount: buckets?.count ?? 0, exactLimit: exactLimit
            )
        }
        forEachPart(where: { firstListed[Int($0)] < firstListed[Int($0) + 1] }) {
            stall, steps, part, delayed in
            let length = DurationHistogram.bucket(ofNanoseconds: part)
            let bucket = buckets?.index(of: UnixTime(microseconds: stall.start_us))
            let range = Int(firstListed[Int(steps)])..<Int(firstListed[Int(steps) + 1])
            for place in listedPlaces[range] {
                sums[Int(place)].add(
                    part, delayed: delayed, length: length, of: stall,
                    kind: kinds.numbers[Int(stall.facts)], in: bucket)
            }
        }
        return sums
    }
}

/// How the functions of one set are divided, in the same memory for each set: stack by stack, so that those of one class
/// are on the same stacks of those seen so far. Class 0 has the functions that are on none of them.
private struct SetDivision {
    private(set) var classes: [(parent: Int32, stack: Int32)] = []
    /// The functions of the selected class, and its stacks.
    private(set) var together: [Int32] = []
    private(set) var stacks: [Int32] = []
    /// By function.
    private var classOfStep: [Int32] = []
    /// The functions of all stacks, each once.
    private var order: [Int32] = []
    /// By class, that of its functions which are on the next stack, too.
    private var parts: [Int32] = []

    /// Makes room for one more function.
    mutating func addStep() { classOfStep.append(0) }

    /// - Parameter own: The functions on each stack, in `steps`.
    mutating func divide(_ own: [Int32], _ steps: NumberLists) {
        for step in order { classOfStep[Int(step)] = 0 }
        order.removeAll(keepingCapacity: true)
        classes.removeAll(keepingCapacity: true)
        classes.append((0, -1))
        for (stack, list) in own.enumerated() {
            parts.removeAll(keepingCapacity: true)
            parts += repeatElement(0, count: classes.count)
            for position in steps.range(of: list) {
                let step = steps.numbers[position]
                let old = classOfStep[Int(step)]
                if old == 0 { order.append(step) }
                if parts[Int(old)] == 0 {
                    parts[Int(old)] = Int32(classes.count)
                    classes.append((old, Int32(stack)))
                }
                classOfStep[Int(step)] = parts[Int(old)]
            }
        }
    }

    mutating func select(_ number: Int) {
        together.removeAll(keepingCapacity: true)
        for step in order where classOfStep[Int(step)] == Int32(number) { together.append(step) }
        stacks.removeAll(keepingCapacity: true)
        var ancestor = classes[number]
        while ancestor.stack >= 0 {
            stacks.append(ancestor.stack)
            ancestor = classes[Int(ancestor.parent)]
        }
        stacks.reverse()
    }
}

/// The facts of a function's stalls besides times. A fleet has many processes and few kinds.
private struct StallKind: Hashable {
    var app, version, loop: String
    var cause: CauseClass?
    var isWatched: Bool
}

/// The kinds of the stalls of a table, and that of each of its facts.
private struct StallKinds {
    private(set) var all: [StallKind] = []
    private(set) var numbers: [Int32] = []

    init(_ table: StallTable) {
        var known: [StallKind: Int32] = [:]
        numbers = table.facts.map { facts in
            let run = table.runs[facts.run]
            let kind = StallKind(
                app: run.app, version: run.version, loop: facts.loop, cause: facts.cause,
                isWatched: facts.isWatched)
            if let number = known[kind] { return number }
            known[kind] = Int32(all.count)
            all.append(kind)
            return Int32(all.count - 1)
        }
    }
}

/// The stalls of one function.
private struct InclusiveSum {
    private var count = 0
    private var shortest_ns = Int64.max
    private var longest_ns: Int64 = -1
    private var first_us = Int64.max
    private var last_us = Int64.min
    /// Where its longest stall is stored.
    private(set) var example: (source: Int32, seq: UInt32) = (0, 0)
    private var exampleStart_us = Int64.max
    /// By kind of stall.
    private var times: [Int64]
    private var delays: [Int64]
    private var counts: [Int32]
    private var squares: [Double]
    private var histogram = DurationHistogram()
    private var durations: [Int64] = []
    private let exactLimit: Int
    private var trend: [(count: Int, total_ns: Int64, squares: Double, longest_ns: Int64)]

    init(kindCount: Int, bucketCount: Int, exactLimit: Int) {
        times = Array(repeating: 0, count: kindCount)
        delays = Array(repeating: 0, count: kindCount)
        counts = Array(repeating: 0, count: kindCount)
        squares = Array(repeating: 0, count: kindCount)
        trend = Array(repeating: (0, 0, 0, 0), count: bucketCount)
        self.exactLimit = max(exactLimit, 0)
    }

    /// - Parameters:
    ///   - delayed: How much of the part was not the thread's own.
    ///   - length: The histogram's bucket of the part.
    ///   - bucket: Of the trend.
    mutating func add(
        _ part: Int64, delayed: Int64, length: Int, of stall: StallTable.Stall, kind: Int32,
        in bucket: Int?
    ) {
        let seconds = Double(part) / 1e9
        count += 1
        shortest_ns = min(shortest_ns, part)
        let isLongest =
            part != longest_ns
            ? part > longest_ns
            : (stall.start_us, stall.source, stall.seq)
                < (exampleStart_us, example.source, example.seq)
        if isLongest {
            longest_ns = part
            example = (stall.source, stall.seq)
            exampleStart_us = stall.start_us
        }
        first_us = min(first_us, stall.start_us)
        last_us = max(last_us, stall.start_us)
        let kind = Int(kind)
        times[kind].addSaturated(part)
        delays[kind].addSaturated(delayed)
        counts[kind] += 1
        squares[kind] += seconds * seconds
        histogram.add(bucket: length, count: 1)
        if durations.count <= exactLimit { durations.append(part) }
        guard let bucket else { return }
        trend[bucket].count += 1
        trend[bucket].total_ns.addSaturated(part)
        trend[bucket].squares += seconds * seconds
        trend[bucket].longest_ns = max(trend[bucket].longest_ns, part)
    }

    func aggregate(of title: String, _ kinds: [StallKind], example: UniqueID?) -> StallAggregate {
        let seen = counts.indices.filter { counts[$0] > 0 }
        var (all, watched) = (StallTotals(), StallTotals())
        var causes: [CauseClass: Duration] = [:]
        for index in seen {
            var part = StallTotals()
            part.count = Int(counts[index])
            part.total = .nanoseconds(times[index])
            part.delayed = .nanoseconds(delays[index])
            part.squares = squares[index]
            all.add(part)
            if kinds[index].isWatched { watched.add(part) }
            if let cause = kinds[index].cause { causes[cause, default: .zero] += part.total }
        }
        all.longest = .nanoseconds(max(0, longest_ns))
        let quantiles = self.quantiles
        return StallAggregate(
            by: .inclusive, ReportGroup(function: title), totals: all, watched: watched,
            p50: quantiles[0], p95: quantiles[1], p99: quantiles[2], causes: causes,
            apps: Set(seen.map { kinds[$0].app }).sorted(),
            versions: Set(seen.map { kinds[$0].version }).sorted(),
            loops: Set(seen.map { kinds[$0].loop }).sorted(),
            first: UnixTime(microseconds: first_us), last: UnixTime(microseconds: last_us),
            example: example,
            trend: trend.map { bucket in
                var totals = StallTotals()
                totals.count = bucket.count
                totals.total = .nanoseconds(bucket.total_ns)
                totals.squares = bucket.squares
                totals.longest = .nanoseconds(bucket.longest_ns)
                return totals
            })
    }

    private var quantiles: [Duration] {
        let parts = [0.5, 0.95, 0.99]
        if durations.count == count {
            let sorted = durations.sorted().map { Duration.nanoseconds($0) }
            return parts.map { quantile($0, of: sorted) }
        }
        let bounds = (Duration.nanoseconds(shortest_ns), Duration.nanoseconds(longest_ns))
        return parts.map { min(max(histogram.quantile($0), bounds.0), bounds.1) }
    }
}

extension Overview {
    init(_ table: StallTable) {
        self.init()
        counts = table.counts
        openCount = table.openCount
        hangCount = table.hangCount
        var isSeen = Array(repeating: false, count: table.facts.count)
        var (first, last) = (Int64.max, Int64.min)
        var (lost, watchedLost, watchedCount): (Int64, Int64, Int) = (0, 0, 0)
        var (delayed, watchedDelayed): (Int64, Int64) = (0, 0)
        for (index, stall) in table.stalls.enumerated() {
            let facts = Int(stall.facts)
            isSeen[facts] = true
            first = min(first, stall.start_us)
            last = max(last, stall.start_us)
            let rest = table.delayed_ns[index] ?? 0
            lost.addSaturated(stall.duration_ns)
            delayed.addSaturated(rest)
            guard table.facts[facts].isWatched else { continue }
            watchedCount += 1
            watchedLost.addSaturated(stall.duration_ns)
            watchedDelayed.addSaturated(rest)
        }
        guard !table.stalls.isEmpty else { return }
        self.first = UnixTime(microseconds: first)
        self.last = UnixTime(microseconds: last)
        totalLost = .nanoseconds(lost)
        self.delayed = .nanoseconds(delayed)
        watched.count = watchedCount
        watched.total = .nanoseconds(watchedLost)
        watched.delayed = .nanoseconds(watchedDelayed)
        let runs = Set(isSeen.indices.filter { isSeen[$0] }.map { table.facts[$0].run })
            .map { table.runs[$0] }
        apps = Set(runs.map { "\($0.app) \($0.version)" }).sorted()
        hosts = Set(runs.map(\.host)).sorted()
    }
}
