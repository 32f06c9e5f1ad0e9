// A stall's samples in time order: how they cover it, and the distinct stacks among them.

package import StallModel
package import StallQuery

package struct Timeline {
    /// Samples with the same functions at the same lines, at any instruction.
    package struct Stack {
        package var frames: [Frame]
        package var isTruncated: Bool
        package var sampleCount: Int
        package var weight: Duration
        package var firstOffset: Duration
    }

    package let report: StallReport
    package let signature: Signature
    /// The samples that are not late and have a stack.
    package let samples: [Sample]
    private let numbers: FrameNumbers
    private let numbered: NumberedSamples
    private let presences: [(function: Int32, presence: Presence)]

    package init(report: StallReport, signature: Signature) {
        self.report = report
        self.signature = signature
        samples = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
        var numbers = FrameNumbers()
        numbered = NumberedSamples(samples, by: &numbers)
        self.numbers = numbers
        presences = numbered.functions
    }

    /// Sorted by weight, heaviest first, then by time.
    package var stacks: [Stack] {
        numbered.stacks.map { stack in
            let members = stack.members.map { samples[$0] }
            return Stack(
                frames: members[0].frames, isTruncated: members.contains(where: \.isTruncated),
                sampleCount: members.count, weight: stack.weight, firstOffset: members[0].offset)
        }
    }

    package typealias Presence = NumberedSamples.Presence

    /// Whether it was on the stack of every sample.
    package var whole: Presence? {
        samples.first.map { Presence(from: $0.offset, until: nil, share: 1) }
    }

    /// When the function of this frame was on the stack, at any line.
    package func presence(of frame: Frame) -> Presence? {
        guard let function = numbers.function(of: frame) else { return nil }
        return presences.first { $0.function == function }?.presence
    }

    /// Every function on the stacks, by time; the innermost first among equals.
    package var functions: [(frame: Frame, presence: Presence)] {
        numbered.functions(of: samples)
    }

    package var totalWeight: Duration { numbered.totalWeight }

    /// Whether the frame is in the function that names the group, or in a closure of it.
    package func isNaming(_ frame: Frame) -> Bool {
        SymbolKey(frame: frame).display == signature.keyFrames.first
    }
}
