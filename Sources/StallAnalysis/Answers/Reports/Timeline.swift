// A stall's samples in time order: how they cover it, and the distinct stacks among them.

package import StallModel

package struct Timeline {
    /// Samples with the same functions at the same lines, at any instruction.
    package struct Stack {
        package var frames: [Frame]
        package var isTruncated: Bool
        package var sampleCount: Int
        package var weight: Duration
        package var firstOffset: Duration
    }

    /// The visible properties of a frame.
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
    /// The samples that are not late and have a stack.
    package let samples: [Sample]

    package init(report: StallReport, signature: Signature) {
        self.report = report
        self.signature = signature
        samples = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
    }

    /// Sorted by weight, heaviest first, then by time.
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
        /// The first and last sample with the function; nil if that was the last sample of the stall.
        package var from: Duration
        package var until: Duration?
        /// Share of the samples' weight, 0 to 1. Less than the rest from `from` on if the function returned in between.
        package var share: Double
    }

    /// Whether it was on the stack of every sample.
    package var whole: Presence? {
        samples.first.map { Presence(from: $0.offset, until: nil, share: 1) }
    }

    /// When the function of this frame was on the stack, at any line.
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

    /// Every function on the stacks, by time; the innermost first among equals.
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

    /// Whether the frame is in the function that names the group, or in a closure of it.
    package func isNaming(_ frame: Frame) -> Bool {
        SymbolKey(frame: frame).display == signature.keyFrames.first
    }
}
