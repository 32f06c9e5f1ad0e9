// What was seen of a stall, in order of time: how its samples cover it, and the different stacks
// among them.

internal import StallAnalysis
internal import StallModel

struct Timeline {
    /// Samples with the same functions at the same lines, whichever instructions of them.
    struct Stack {
        var frames: [Frame]
        var isTruncated: Bool
        var sampleCount: Int
        var weight: Duration
        var firstOffset: Duration
    }

    /// What a reader sees of a frame.
    private struct Line: Hashable {
        let title: String
        let imagePath: String?
        let file: String?
        let line: Int?
        let isInlined: Bool
        let isAwaiting: Bool

        init(_ frame: Frame) {
            title = frame.title
            imagePath = frame.imagePath
            file = frame.file
            line = frame.line
            isInlined = frame.isInlined
            isAwaiting = frame.kind == .asyncResume
        }
    }

    private let report: StallReport
    private let signature: Signature
    /// The samples that may be blamed and have a stack.
    private let samples: [Sample]

    init(report: StallReport, signature: Signature) {
        self.report = report
        self.signature = signature
        samples = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
    }

    /// The heaviest first; the earlier one first among equals.
    var stacks: [Stack] {
        var stacks: [Stack] = []
        var numbers: [[Line]: Int] = [:]
        for sample in samples {
            let lines = sample.frames.map(Line.init)
            if let number = numbers[lines] {
                stacks[number].sampleCount += 1
                stacks[number].weight += sample.weight
                stacks[number].isTruncated = stacks[number].isTruncated || sample.isTruncated
            } else {
                numbers[lines] = stacks.count
                stacks.append(
                    Stack(
                        frames: sample.frames, isTruncated: sample.isTruncated, sampleCount: 1,
                        weight: sample.weight, firstOffset: sample.offset))
            }
        }
        return stacks.enumerated()
            .sorted { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }
            .map(\.element)
    }

    /// When a function was on the stack.
    struct Presence: Equatable {
        /// The first sample that it was on, and the last one; nil when that was the last of all.
        var from: Duration
        var until: Duration?
        /// Of the time that samples stand for, 0 to 1. Less than all of it from `from` on when it came and went.
        var share: Double
    }

    /// On the stack of every sample.
    var whole: Presence? {
        samples.first.map { Presence(from: $0.offset, until: nil, share: 1) }
    }

    /// When the function of this frame was on the stack, whichever line of it ran.
    func presence(of frame: Frame) -> Presence? {
        func isSame(_ other: Frame) -> Bool {
            other.title == frame.title && other.imagePath == frame.imagePath
        }
        let present = samples.filter { $0.frames.contains(where: isSame) }
        guard let first = present.first, let last = present.last, totalWeight > .zero else {
            return nil
        }
        let weight = present.reduce(Duration.zero) { $0 + $1.weight }
        return Presence(
            from: first.offset, until: last.offset == samples.last?.offset ? nil : last.offset,
            share: weight / totalWeight)
    }

    /// Every function that was on the stack, the longest first; the innermost first among equals.
    var functions: [(frame: Frame, presence: Presence)] {
        var seen: Set<String> = []
        let frames = stacks.flatMap(\.frames).filter {
            seen.insert("\($0.imagePath ?? "") \($0.title)").inserted
        }
        let all = frames.compactMap { frame in presence(of: frame).map { (frame, $0) } }
        return all.enumerated().sorted {
            ($1.element.1.share, $0.offset) < ($0.element.1.share, $1.offset)
        }.map(\.element)
    }

    var totalWeight: Duration { samples.reduce(.zero) { $0 + $1.weight } }

    /// A scale, a bar, and what the samples say; only words when there is no sample to draw.
    var lines: [String] {
        let others = otherSamples
        guard !samples.isEmpty, report.duration > .zero else {
            return ["No stack was taken." + (others.isEmpty ? "" : " " + others)]
        }
        return [scale, bar + "  " + finding + (others.isEmpty ? "" : " " + others)]
    }

    private static let quarterWidth = 10

    /// `0.00      0.46      0.92      1.38      1.84 s`
    private var scale: String {
        let inSeconds = report.duration >= .seconds(1)
        let text = (0...4).map { quarter in
            let part = report.duration * quarter / 4
            return part.decimal(
                unit: inSeconds ? 1_000_000_000 : 1_000_000, digits: inSeconds ? 2 : 0)
        }
        return text.map { $0.padded(to: Self.quarterWidth, .leading) }.joined()
            .trimmingTrailingSpaces
            + (inSeconds ? " s" : " ms")
    }

    /// A cell for each fortieth of the stall: `=` with the naming function on the stack, `-`
    /// without.
    private var bar: String {
        let count = 4 * Self.quarterWidth
        var cells: [Character] = Array(repeating: "-", count: count)
        var begin = Duration.zero
        for sample in report.samples where !sample.isLate {
            let end = begin + sample.weight
            for cell in cells.indices where isNamed(sample) {
                let middle = report.duration * (2 * cell + 1) / (2 * count)
                if begin <= middle, middle < end { cells[cell] = "=" }
            }
            begin = end
        }
        let quarters = (0..<4).map {
            String(cells[$0 * Self.quarterWidth + 1..<($0 + 1) * Self.quarterWidth])
        }
        return "|" + quarters.joined(separator: "|") + "|"
    }

    /// `9 samples, waitForWorker() on the stack from 0.12 s to the end (93 %).`
    private var finding: String {
        let count = counted(samples.count, "sample")
        let named = samples.filter(isNamed)
        guard let name = signature.keyFrames.first, let first = named.first, let last = named.last
        else { return "\(count)." }
        let weight = named.reduce(.zero) { $0 + $1.weight }
        let end = last.offset == samples.last?.offset ? "the end" : last.offset.precise
        return
            "\(count), \(name.printable) on the stack from \(first.offset.precise) to \(end) "
            + "(\(percent(weight, of: totalWeight)))."
    }

    /// Samples that nothing is concluded from, and why.
    private var otherSamples: String {
        let late = report.samples.count(where: \.isLate)
        let failures = report.samples.filter { !$0.isLate && $0.frames.isEmpty }.compactMap(
            \.failure)
        let returned = samples.count { $0.method == .lateSignal }
        var parts: [String] = []
        if returned > 0 {
            parts.append("\(returned) of one system call, taken when it returned.")
        }
        if late > 0 { parts.append("\(late) more came too late to be blamed.") }
        if let reason = failures.first {
            parts.append("\(failures.count) without a stack: \(reason.printable).")
        }
        return parts.joined(separator: " ")
    }

    private func isNamed(_ sample: Sample) -> Bool { sample.frames.contains(where: isNaming) }

    /// Whether the frame is the function that names the group, itself or a closure in it.
    func isNaming(_ frame: Frame) -> Bool {
        SymbolKey(frame: frame).display == signature.keyFrames.first
    }
}
