// What was seen of a stall, in order of time: how its samples cover it, and the different stacks
// among them.

package import StallModel

package struct Timeline {
    /// Samples with the same functions at the same lines, whichever instructions of them.
    package struct Stack {
        package var frames: [Frame]
        package var isTruncated: Bool
        package var sampleCount: Int
        package var weight: Duration
        package var firstOffset: Duration
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

    package let report: StallReport
    package let signature: Signature
    /// The samples that may be blamed and have a stack.
    package let samples: [Sample]

    package init(report: StallReport, signature: Signature) {
        self.report = report
        self.signature = signature
        samples = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
    }

    /// The heaviest first; the earlier one first among equals.
    package var stacks: [Stack] {
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
    package struct Presence: Equatable {
        /// The first sample that it was on, and the last one; nil when that was the last of all.
        package var from: Duration
        package var until: Duration?
        /// Of the time that samples stand for, 0 to 1. Less than all of it from `from` on when it came and went.
        package var share: Double
    }

    /// On the stack of every sample.
    package var whole: Presence? {
        samples.first.map { Presence(from: $0.offset, until: nil, share: 1) }
    }

    /// When the function of this frame was on the stack, whichever line of it ran.
    package func presence(of frame: Frame) -> Presence? {
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
    package var functions: [(frame: Frame, presence: Presence)] {
        var seen: Set<String> = []
        let frames = stacks.flatMap(\.frames).filter {
            seen.insert("\($0.imagePath ?? "") \($0.title)").inserted
        }
        let all = frames.compactMap { frame in presence(of: frame).map { (frame, $0) } }
        return all.enumerated().sorted {
            ($1.element.1.share, $0.offset) < ($0.element.1.share, $1.offset)
        }.map(\.element)
    }

    package var totalWeight: Duration { samples.reduce(.zero) { $0 + $1.weight } }

    /// Whether the frame is the function that names the group, itself or a closure in it.
    package func isNaming(_ frame: Frame) -> Bool {
        SymbolKey(frame: frame).display == signature.keyFrames.first
    }
}
