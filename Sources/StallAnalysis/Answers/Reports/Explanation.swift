// Explains why a report is in its group: how the rules classified each frame, and which frames name the group.

package import StallModel
import StallQuery

package struct Explanation {
    /// One distinct stack of the report.
    package struct Stack {
        package var sampleCount: Int
        package var weight: Duration
        package var frames: [Explained]
    }

    /// One frame of a stack.
    package struct Explained {
        package var classified: ClassifiedFrame
        /// 1 for the frame that names the group, 2 and 3 for its callers; otherwise nil.
        package var keyNumber: Int?
        /// The frame runs the loop that called the callout, so its class does not matter.
        var isBelowLoop: Bool

        package var rule: String {
            ([classified.rule] + classified.notes).joined(separator: "; ")
                + (isBelowLoop ? ", outside of the loop's callout" : "")
        }
    }

    package var report: StallReport
    package var signature: Signature
    package var title: String { signature.group.title(under: report.cause?.cause) }
    /// Sorted by weight, heaviest first.
    package var stacks: [Stack]

    package init(_ report: StallReport, rules: GroupingRules = .builtIn) {
        let signature = report.signature(by: DefaultGrouper(rules: rules))
        self.report = report
        self.signature = signature
        stacks = Timeline(report: report, signature: signature).stacks.map { stack in
            Stack(
                sampleCount: stack.sampleCount, weight: stack.weight,
                frames: Self.explain(
                    stack.frames.map {
                        ClassifiedFrame($0, executable: report.run.buildID, rules: rules)
                    }, signature))
        }
    }

    /// Finds the key frames on a stack, innermost first: each of them once, within the loop's callout.
    private static func explain(
        _ frames: [ClassifiedFrame], _ signature: Signature
    ) -> [Explained] {
        var isFound: Set<Int> = []
        var isBelowLoop = false
        return frames.map { classified in
            isBelowLoop = isBelowLoop || classified.isLoop
            let isCandidate = classified.counts || signature.isWithoutAppFrame
            let index = signature.keyFrames.firstIndex(of: classified.key.display)
            let isKey =
                isCandidate && !isBelowLoop && index.map { isFound.insert($0).inserted } == true
            return Explained(
                classified: classified, keyNumber: isKey ? index.map { $0 + 1 } : nil,
                isBelowLoop: isBelowLoop && classified.counts)
        }
    }
}
