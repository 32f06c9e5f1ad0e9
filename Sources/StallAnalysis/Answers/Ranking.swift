// What to fix first: stalls grouped and ordered. Only stalls that the app itself caused are ranked; a process that was
// stopped or starved says nothing about its functions.

package import StallModel

/// What makes a group worse than another.
package enum RankingOrder: String, CaseIterable, Sendable {
    case total, count, p95, max
    /// The time lost per watched hour.
    case rate
}

/// What stalls of one group have in common.
package enum GroupKey: String, CaseIterable, Sendable {
    /// The accounting function and its callers.
    case signature
    /// The accounting function in its module.
    case family
    /// The accounting function by its name alone.
    case function
    /// Each of the app's functions that was on the stacks: a stall counts in several groups, with the part of it that
    /// the function was there.
    case inclusive
    case cause, loop, version, host, app
}

/// A group of stalls.
package struct Hotspot: Hashable, Sendable {
    package var signature: Signature
    package var title: String
    /// The functions that name it, the accounting one first; empty for groups that are not made by functions.
    package var frames: [String]
    package var count: Int
    package var total: Duration
    package var p50: Duration
    package var p95: Duration
    package var p99: Duration
    package var max: Duration
    /// The sum of the squares of the durations, in seconds: how uneven they are.
    package var squares: Double
    /// The time lost in equal parts of the window that was asked about, the earliest first.
    package var trend: [StallTotals]
    /// The stalls of loops whose watched time is recorded: what the rate is of.
    package var watched: StallTotals
    /// The time lost by cause; stalls without one are absent.
    package var causes: [CauseClass: Duration]
    /// The milliseconds that loops whose watched time is recorded lost per hour of it; nil when nobody told.
    package var ratePerHour: Double?
    package var apps: [String]
    package var versions: [String]
    package var firstSeen: UnixTime
    package var lastSeen: UnixTime
    /// The longest stall of the group; nil when no report of it is left.
    package var example: UniqueID?

    package init(
        signature: Signature, title: String, frames: [String], count: Int, total: Duration,
        p50: Duration, p95: Duration, p99: Duration, max: Duration, squares: Double = 0,
        trend: [StallTotals] = [], watched: StallTotals = StallTotals(),
        causes: [CauseClass: Duration] = [:], apps: [String],
        versions: [String],
        firstSeen: UnixTime, lastSeen: UnixTime, example: UniqueID?
    ) {
        self.signature = signature
        self.title = title
        self.frames = frames
        self.count = count
        self.total = total
        self.p50 = p50
        self.p95 = p95
        self.p99 = p99
        self.max = max
        self.squares = squares
        self.trend = trend
        self.watched = watched
        self.causes = causes
        self.apps = apps
        self.versions = versions
        self.firstSeen = firstSeen
        self.lastSeen = lastSeen
        self.example = example
    }
}

extension Hotspot {
    /// The cause that took the most of the time, when there is one.
    package var cause: CauseClass? { causesByTime.first?.cause }

    /// The time lost by cause, the most first.
    package var causesByTime: [(cause: CauseClass, total: Duration)] {
        causes.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
            .map { ($0.key, $0.value) }
    }
}

/// Groups the reports whose verdict is `stalled` and orders the groups, the worst first.
///
/// - Parameters:
///   - runs: The process runs that the reports point into.
///   - frames: The frames of the reports' stacks, innermost first.
///   - buckets: How each group's trend is divided.
package func rank(
    _ reports: [ReportSummary], runs: [ProcessRun], frames: [Int64: [Frame]],
    by order: RankingOrder = .total, group key: GroupKey = .signature, buckets: TimeBuckets? = nil,
    rules: GroupingRules = .builtIn
) -> [Hotspot] {
    var signatures = SignatureCache(frames: frames, rules: rules)
    var groups: [Signature: [Stall]] = [:]
    for (index, report) in reports.enumerated() where report.verdict == .stalled {
        let run = runs.indices.contains(report.run) ? runs[report.run] : nil
        if key == .inclusive {
            for (signature, share) in signatures.functions(of: report, in: run) {
                let part = Double(report.duration.nanoseconds) * share
                groups[signature, default: []].append(
                    Stall(report: index, duration: .nanoseconds(Int64(part.rounded()))))
            }
        } else {
            let signature = key.signature(of: report, in: run) {
                signatures.signature(of: report, in: run)
            }
            groups[signature, default: []].append(Stall(report: index, duration: report.duration))
        }
    }
    let hotspots = joined(groups).map { signature, stalls in
        Hotspot(signature, stalls, key: key, reports: reports, runs: runs, buckets: buckets)
    }
    return sorted(hotspots, by: order)
}

/// Orders groups, the worst first.
package func sorted(_ hotspots: [Hotspot], by order: RankingOrder) -> [Hotspot] {
    hotspots.sorted(by: order.isWorse)
}

/// A report's part in a group.
private struct Stall {
    /// Index into the reports.
    var report: Int
    var duration: Duration
}

/// Groups with one hash, and the groups of cut stacks with the group of whole stacks that they are the beginning of.
private func joined(_ groups: [Signature: [Stall]]) -> [(Signature, [Stall])] {
    // What stalls of one group waited for may differ, and some stacks may be cut, so that titles do: of whole stacks the
    // heaviest speaks.
    let weighed = groups.map { (signature: $0, stalls: $1, total: totalDuration($1)) }
    let variants = weighed.sorted { left, right in
        if left.signature.isCut != right.signature.isCut { return right.signature.isCut }
        return (right.total, left.signature.title) < (left.total, right.signature.title)
    }
    var numbers: [Int64: Int] = [:]
    var joined: [(signature: Signature, stalls: [Stall])] = []
    for (signature, stalls, _) in variants {
        if let number = numbers[signature.hash] {
            joined[number].stalls += stalls
        } else {
            numbers[signature.hash] = joined.count
            joined.append((signature, stalls))
        }
    }
    let joins = joinsOfCutGroups(
        joined.map { signature, stalls in
            JoinableGroup(
                signature: signature.hash, family: signature.family, frames: signature.keyFrames,
                isCut: signature.isCut, total: totalDuration(stalls))
        })
    for (cut, whole) in joins { joined[whole].stalls += joined[cut].stalls }
    return joined.indices.filter { joins[$0] == nil }.map { joined[$0] }
}

private func totalDuration(_ stalls: [Stall]) -> Duration {
    stalls.reduce(.zero) { $0 + $1.duration }
}

extension RankingOrder {
    /// Equal groups are ordered by what people see, so that the same data always ranks the same.
    fileprivate func isWorse(_ left: Hotspot, _ right: Hotspot) -> Bool {
        switch self {
        case .count where left.count != right.count: left.count > right.count
        case .p95 where left.p95 != right.p95: left.p95 > right.p95
        case .rate where left.ratePerHour != right.ratePerHour:
            (left.ratePerHour ?? 0) > (right.ratePerHour ?? 0)
        case .max where left.max != right.max: left.max > right.max
        default:
            left.total != right.total
                ? left.total > right.total
                : (left.title, left.signature.hash) < (right.title, right.signature.hash)
        }
    }
}

extension GroupKey {
    fileprivate func signature(
        of report: ReportSummary, in run: ProcessRun?, _ signature: () -> Signature
    ) -> Signature {
        switch self {
        case .signature, .inclusive: signature()
        case .family: signature().narrowed { $0.family }
        case .function: signature().narrowed { contentHash("function", $0.keyFrames.first) }
        case .cause: Signature(fact: report.cause?.word, kind: "cause")
        case .loop: Signature(fact: report.loop, kind: "loop")
        case .version: Signature(fact: run.map { "\($0.app) \($0.version)" }, kind: "version")
        case .host: Signature(fact: run?.host, kind: "host")
        case .app: Signature(fact: run?.app, kind: "app")
        }
    }
}

extension Signature {
    /// The group of the accounting function alone, whoever called it and whatever it waited for.
    fileprivate func narrowed(_ hash: (Signature) -> Int64) -> Signature {
        let frames = Array(keyFrames.prefix(1))
        return Signature(
            hash: hash(self), keyFrames: frames, title: frames.first ?? title, family: family,
            isWithoutAppFrame: isWithoutAppFrame)
    }

    /// The signature that a stored group was made from, or of what it was added up by.
    ///
    /// - Parameter name: What makes the group where no function does.
    package init(_ group: ReportGroup, key: GroupKey, name: String) {
        switch key {
        case .cause, .loop, .version, .host, .app:
            self.init(fact: name.isEmpty ? nil : name, kind: key.rawValue)
        case .signature, .family, .function, .inclusive:
            let signature = Signature(group)
            switch key {
            case .family: self = signature.narrowed { $0.family }
            case .function:
                self = signature.narrowed { contentHash("function", $0.keyFrames.first) }
            default: self = signature
            }
        }
    }

    /// The group of one function, wherever it is on a stack.
    init(function step: PathStep) {
        self.init(
            hash: contentHash("function", step.title), keyFrames: [step.title], title: step.title)
    }

    fileprivate init(fact: String?, kind: String) {
        self.init(hash: contentHash(kind, fact), keyFrames: [], title: fact ?? "unknown \(kind)")
    }
}

private func contentHash(_ kind: String, _ text: String?) -> Int64 {
    var hash = ContentHash()
    hash.combine(kind)
    hash.combine(text)
    return hash.value
}

extension Hotspot {
    fileprivate init(
        _ signature: Signature, _ stalls: [Stall], key: GroupKey, reports: [ReportSummary],
        runs: [ProcessRun], buckets: TimeBuckets?
    ) {
        // In order, so that sums of fractions are the same whatever order the reports came in.
        let stalls = stalls.sorted { $0.duration < $1.duration }
        let durations = stalls.map(\.duration)
        let runs = Set(stalls.map { reports[$0.report].run })
            .compactMap { runs.indices.contains($0) ? runs[$0] : nil }
        let longest = stalls.max {
            ($0.duration, reports[$1.report].start) < ($1.duration, reports[$0.report].start)
        }!
        let starts = stalls.lazy.map { reports[$0.report].start }
        var (totals, watched) = (StallTotals(), StallTotals())
        var trend = Array(repeating: StallTotals(), count: buckets?.count ?? 0)
        var causes: [CauseClass: Duration] = [:]
        for stall in stalls {
            totals.add(stall.duration)
            if reports[stall.report].isWatched { watched.add(stall.duration) }
            if let cause = reports[stall.report].cause {
                causes[cause, default: .zero] += stall.duration
            }
            guard let bucket = buckets?.index(of: reports[stall.report].start) else { continue }
            trend[bucket].add(stall.duration)
        }
        self.init(
            signature: signature, title: signature.title, frames: signature.keyFrames,
            count: totals.count, total: totals.total, p50: quantile(0.5, of: durations),
            p95: quantile(0.95, of: durations), p99: quantile(0.99, of: durations),
            max: longest.duration,
            squares: totals.squares, trend: trend, watched: watched, causes: causes,
            apps: Set(runs.map(\.app)).sorted(), versions: Set(runs.map(\.version)).sorted(),
            firstSeen: starts.min()!, lastSeen: starts.max()!,
            example: reports[longest.report].id)
        title = signature.title(under: cause, in: key)
    }
}

/// The smallest of the durations that at least this part of them does not exceed (nearest rank, no interpolation).
package func quantile(_ part: Double, of sorted: [Duration]) -> Duration {
    guard !sorted.isEmpty else { return .zero }
    let rank = Int((part * Double(sorted.count)).rounded(.up))
    return sorted[min(Swift.max(rank, 1), sorted.count) - 1]
}
