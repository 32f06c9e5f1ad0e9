// What to fix first: stalls grouped and ordered. Only stalls that the app itself caused are ranked; a process that was
// stopped or starved says nothing about its functions.

package import StallModel

/// What makes a group worse than another.
package enum RankingOrder: String, CaseIterable, Sendable {
    case total, count, p95, max
}

/// What stalls of one group have in common.
package enum GroupKey: String, CaseIterable, Sendable {
    /// The accounting function and its callers.
    case signature
    /// The accounting function in its module.
    case family
    /// The accounting function by its name alone.
    case function
    case loop, version, host, app
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
    package var max: Duration
    package var apps: [String]
    package var versions: [String]
    package var firstSeen: UnixTime
    package var lastSeen: UnixTime
    /// The longest stall of the group.
    package var example: UniqueID

    package init(
        signature: Signature, title: String, frames: [String], count: Int, total: Duration,
        p50: Duration, p95: Duration, max: Duration, apps: [String], versions: [String],
        firstSeen: UnixTime, lastSeen: UnixTime, example: UniqueID
    ) {
        self.signature = signature
        self.title = title
        self.frames = frames
        self.count = count
        self.total = total
        self.p50 = p50
        self.p95 = p95
        self.max = max
        self.apps = apps
        self.versions = versions
        self.firstSeen = firstSeen
        self.lastSeen = lastSeen
        self.example = example
    }
}

/// Groups the reports whose verdict is `stalled` and orders the groups, the worst first.
///
/// - Parameters:
///   - runs: The process runs that the reports point into.
///   - frames: The frames of the reports' stacks, innermost first.
package func rank(
    _ reports: [ReportSummary], runs: [ProcessRun], frames: [Int64: [Frame]],
    by order: RankingOrder = .total, group key: GroupKey = .signature,
    rules: GroupingRules = .builtIn
) -> [Hotspot] {
    var signatures = SignatureCache(frames: frames, rules: rules)
    var groups: [Signature: [ReportSummary]] = [:]
    for report in reports where report.verdict == .stalled {
        let run = runs.indices.contains(report.run) ? runs[report.run] : nil
        let signature = key.signature(of: report, in: run) {
            signatures.signature(of: report, in: run)
        }
        groups[signature, default: []].append(report)
    }
    let hotspots = joined(groups).map { signature, reports in
        Hotspot(signature, reports, runs: runs)
    }
    return hotspots.sorted(by: order.isWorse)
}

/// Groups with one hash, and the groups of cut stacks with the group of whole stacks that they are the beginning of.
private func joined(_ groups: [Signature: [ReportSummary]]) -> [(Signature, [ReportSummary])] {
    let byWeight = groups.sorted { left, right in
        let (leftTotal, rightTotal) = (totalDuration(left.value), totalDuration(right.value))
        return (rightTotal, left.key.title, left.key.hash) < (
            leftTotal, right.key.title, right.key.hash
        )
    }
    var numbers: [Int64: Int] = [:]
    var joined: [(signature: Signature, reports: [ReportSummary])] = []
    // Whole stacks first. What stalls of one group waited for may differ, so that their titles do: the heaviest speaks.
    for (signature, reports) in byWeight.filter({ !$0.key.isCut }) + byWeight.filter(\.key.isCut) {
        let number =
            numbers[signature.hash]
            ?? (signature.isCut
                ? joined.firstIndex { signature.isBeginning(of: $0.signature) } : nil)
        if let number {
            joined[number].reports += reports
        } else {
            numbers[signature.hash] = joined.count
            joined.append((signature, reports))
        }
    }
    return joined
}

private func totalDuration(_ reports: [ReportSummary]) -> Duration {
    reports.reduce(.zero) { $0 + $1.duration }
}

extension RankingOrder {
    /// Equal groups are ordered by what people see, so that the same data always ranks the same.
    fileprivate func isWorse(_ left: Hotspot, _ right: Hotspot) -> Bool {
        switch self {
        case .count where left.count != right.count: left.count > right.count
        case .p95 where left.p95 != right.p95: left.p95 > right.p95
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
        case .signature: signature()
        case .family: signature().narrowed { $0.family }
        case .function: signature().narrowed { contentHash("function", $0.keyFrames.first) }
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

    /// The same functions as far as this one goes.
    fileprivate func isBeginning(of other: Signature) -> Bool {
        family == other.family && other.keyFrames.starts(with: keyFrames)
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
    fileprivate init(_ signature: Signature, _ reports: [ReportSummary], runs: [ProcessRun]) {
        let durations = reports.map(\.duration).sorted()
        let runs = Set(reports.map(\.run)).compactMap { runs.indices.contains($0) ? runs[$0] : nil }
        let longest = reports.max { ($0.duration, $1.start) < ($1.duration, $0.start) }!
        self.init(
            signature: signature, title: signature.title, frames: signature.keyFrames,
            count: reports.count, total: totalDuration(reports), p50: quantile(0.5, of: durations),
            p95: quantile(0.95, of: durations), max: longest.duration,
            apps: Set(runs.map(\.app)).sorted(), versions: Set(runs.map(\.version)).sorted(),
            firstSeen: reports.map(\.start).min()!, lastSeen: reports.map(\.start).max()!,
            example: longest.id)
    }
}

/// The smallest of the durations that at least this part of them does not exceed (nearest rank, no interpolation).
package func quantile(_ part: Double, of sorted: [Duration]) -> Duration {
    guard !sorted.isEmpty else { return .zero }
    let rank = Int((part * Double(sorted.count)).rounded(.up))
    return sorted[min(Swift.max(rank, 1), sorted.count) - 1]
}
