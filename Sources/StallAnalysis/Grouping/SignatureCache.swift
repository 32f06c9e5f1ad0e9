// Many reports share few stacks, so signatures are cached: here for one query, in DefaultGrouper for all.

package import StallModel
package import StallQuery
internal import Synchronization

/// Classifies each frame once, and groups equal sets of stacks once.
struct SignatureCache {
    private struct Stall: Hashable {
        var stacks: [WeightedStack]
        var executable: BuildID?
    }

    private let frames: [Int64: [Frame]]
    private let rules: GroupingRules
    private var classified: ClassifiedFrames
    private var stacks: [Key: ClassifiedStack] = [:]
    private var groups: [Stall: ReportGroup] = [:]

    private struct Key: Hashable {
        var stack: Int64
        var executable: BuildID?
    }

    /// - Parameter frames: The frames of all stacks of the reports, innermost first.
    init(frames: [Int64: [Frame]], rules: GroupingRules) {
        self.frames = frames
        self.rules = rules
        classified = ClassifiedFrames(rules: rules)
    }

    mutating func group(of report: ReportSummary, in run: ProcessRun?) -> ReportGroup {
        let stall = Stall(stacks: report.stacks, executable: run?.buildID)
        if let known = groups[stall] { return known }
        let answer = StallAnalysis.signature(of: stacks(of: stall), rules: rules).group
        groups[stall] = answer
        return answer
    }

    /// Each function that counts on the report's stacks, with its share of the report's time.
    mutating func functions(
        of report: ReportSummary, in run: ProcessRun?
    ) -> [(group: ReportGroup, share: Double)] {
        let stacks = stacks(of: Stall(stacks: report.stacks, executable: run?.buildID))
        let total = stacks.reduce(0) { $0 + max($1.weight, 1) }
        // A function is its name: of two in different images with one name, the time counts once.
        var weights: [String: Double] = [:]
        for stack in stacks {
            for title in Set(stack.frames.callout.filter(\.counts).map(\.step.title)) {
                weights[title, default: 0] += max(stack.weight, 1)
            }
        }
        return weights.map { (ReportGroup(function: $0), $1 / total) }
    }

    private mutating func stacks(of stall: Stall) -> [WeightedFrames] {
        stall.stacks.map { stack in
            let key = Key(stack: stack.stack, executable: stall.executable)
            let known =
                stacks[key]
                ?? classified.classify(
                    frames[stack.stack] ?? [], executable: stall.executable)
            stacks[key] = known
            return WeightedFrames(stack: known, weight: Double(stack.weight.nanoseconds))
        }
    }
}

/// Groups by rules; used by the store's ingest.
///
/// **Thread safety:** any number of threads; they share a cache of classified frames.
package final class DefaultGrouper: ReportGrouper {
    package let rules: GroupingRules
    private let classified: Mutex<ClassifiedFrames>

    package init(rules: GroupingRules = .builtIn) {
        self.rules = rules
        classified = Mutex(ClassifiedFrames(rules: rules))
    }

    package var rulesHash: Int64 { rules.hash }
    package var rulesText: String { rules.text }

    package func hasRules(ofText text: String) -> Bool {
        text == rules.text || (try? GroupingRules(ofStore: text))?.hash == rules.hash
    }

    package func following(_ stored: StoredRules) -> any ReportGrouper {
        let force = RulesInForce(of: stored, among: [rules])
        return force.rules.hash == rules.hash ? self : DefaultGrouper(rules: force.rules)
    }

    package func stack(_ frames: [Frame], executable: BuildID?) -> any GroupedStack {
        classified.withLock { $0.classify(frames, executable: executable) }
    }

    /// The signature of one stall, from the frames and the weight of each of its stacks.
    package func signature(
        of stacks: [(frames: [Frame], weight: Duration)], executable: BuildID?
    ) -> Signature {
        let stacks = classified.withLock { classified in
            stacks.map { frames, weight in
                WeightedFrames(
                    stack: classified.classify(frames, executable: executable),
                    weight: Double(weight.nanoseconds))
            }
        }
        return StallAnalysis.signature(of: stacks, rules: rules)
    }

    package func group(
        of samples: [(stack: any GroupedStack, weight: Duration)], cause: CauseClass?
    ) -> ReportGroup {
        let stacks = samples.compactMap { sample in
            (sample.stack as? ClassifiedStack).map {
                WeightedFrames(stack: $0, weight: Double(sample.weight.nanoseconds))
            }
        }
        return StallAnalysis.signature(of: stacks, rules: rules).group
    }
}

/// Classified frames, by what determines their class besides the rules, which are always the same.
struct ClassifiedFrames {
    /// A frame that was classified. Its texts are the answer's: comparing it with a frame copies none of them.
    private struct Known {
        var answer: ClassifiedFrame
        var executable: BuildID?
        var isMerged: Bool

        func fits(_ frame: Frame, _ executable: BuildID?, isMerged: Bool) -> Bool {
            self.isMerged == isMerged && answer.frame == frame && self.executable == executable
        }
    }

    /// The size at which the cache is cleared, to bound memory.
    private static let capacity = 200_000

    /// By their hashes, of which few are of several frames.
    private var known: [Int: [Known]] = [:]
    private var count = 0
    private var homes: FrameHomes

    init(rules: GroupingRules) { homes = FrameHomes(rules: rules) }

    mutating func classify(
        _ frame: Frame, executable: BuildID?, isMerged: Bool = false
    ) -> ClassifiedFrame {
        let hash = Self.hash(of: frame)
        for candidate in known[hash] ?? []
        where candidate.fits(frame, executable, isMerged: isMerged) {
            return candidate.answer
        }
        if count == Self.capacity { (known, count) = ([:], 0) }
        let answer = ClassifiedFrame(
            frame, executable: executable, isMerged: isMerged, homes: &homes)
        known[hash, default: []].append(
            Known(answer: answer, executable: executable, isMerged: isMerged))
        count += 1
        return answer
    }

    /// Frames that differ mostly differ in this; hashing all of a frame's texts would take longer than the look-up.
    private static func hash(of frame: Frame) -> Int {
        var hasher = Hasher()
        hasher.combine(frame.rawName ?? frame.function)
        hasher.combine(frame.offset)
        return hasher.finalize()
    }

    mutating func classify(_ frames: [Frame], executable: BuildID?) -> ClassifiedStack {
        var classified = frames.map { classify($0, executable: executable) }
        let callMerged = frames.callMerged { classified[$0].key.role == .merged }
        for index in frames.indices where callMerged[index] {
            classified[index] = classify(frames[index], executable: executable, isMerged: true)
        }
        // Functions inlined into a merged body also have the names of only one of the merged functions.
        for index in frames.indices.reversed().dropFirst()
        where frames[index].isInlined && classified[index + 1].key.role == .merged {
            classified[index] = classify(
                frames[index], executable: executable, isMerged: true)
        }
        return ClassifiedStack(classified)
    }
}
