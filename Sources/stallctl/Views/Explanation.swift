// Why a report is in its group: what the rules made of each frame, and which frames name the group.

internal import StallAnalysis
internal import StallModel

struct Explanation {
    /// One different stack of the report.
    struct Stack {
        var sampleCount: Int
        var weight: Duration
        var frames: [Explained]
    }

    /// One frame of a stack.
    struct Explained {
        var classified: ClassifiedFrame
        /// 1 for the frame that names the group, 2 and 3 for its callers; nil for all others.
        var keyNumber: Int?
        /// It runs the loop that ran the callout; what it is says nothing about the stall.
        var isBelowLoop: Bool

        var rule: String {
            ([classified.rule] + classified.notes).joined(separator: "; ")
                + (isBelowLoop ? ", outside of the loop's callout" : "")
        }
    }

    var report: StallReport
    var signature: Signature
    var title: String { signature.title(under: report.cause?.cause) }
    /// The heaviest first.
    var stacks: [Stack]

    init(_ report: StallReport, rules: GroupingRules = .builtIn) {
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

    /// Finds the key frames on a stack, innermost first: each of them once, inside of the loop's
    /// callout.
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

/// `why` for people.
struct WhyView {
    var explanation: Explanation
    var terminal: Terminal

    var lines: [String] {
        let signature = explanation.signature
        var lines = [
            "Report \(explanation.report.id) is in group "
                + terminal.paint(explanation.title.printable, .strong),
            "signature \(hexadecimal(signature.hash)), family \(hexadecimal(signature.family))",
        ]
        if let rule = signature.rule { lines.append("by \(rule)".printable) }
        if signature.isWithoutAppFrame {
            lines.append("Mostly, none of the app's functions was on the stack.")
        }
        let total = explanation.stacks.reduce(Duration.zero) { $0 + $1.weight }
        for stack in explanation.stacks {
            let share = percent(stack.weight, of: total)
            lines += [
                "", "\(counted(stack.sampleCount, "sample")), \(stack.weight.precise) (\(share))",
            ]
            lines += table(of: stack).lines(for: terminal)
        }
        return lines
    }

    private func table(of stack: Explanation.Stack) -> Table {
        Table(
            columns: [.init(""), .init("CLASS"), .init("FUNCTION"), .init("RULE")],
            flexibleColumn: 2,
            rows: stack.frames.map { frame in
                let isKey = frame.keyNumber != nil
                return [
                    .init(frame.keyNumber.map { "> \($0)" } ?? "", style: .pointing),
                    .init(frame.classified.frameClass.rawValue),
                    .init(frame.classified.frame.title, style: isKey ? .strong : nil),
                    .init(frame.rule, style: .faint),
                ]
            })
    }
}

/// `why` as data. Scripts depend on the names.
struct WhyRow: Encodable {
    struct Stack: Encodable {
        var sampleCount: Int
        var weightMs: Double
        var frames: [Frame]
    }
    struct Frame: Encodable {
        @Nullable var function: String?
        @Nullable var image: String?
        /// The function without what changes from build to build.
        var symbolKey: String
        var `class`: String
        var rule: String
        /// 1 for the frame that names the group, 2 and 3 for its callers.
        @Nullable var key: Int?
    }
    let schema = "stallctl.why/1"
    var id: String
    var signature: String
    var family: String
    var title: String
    var frames: [String]
    var withoutAppFrame: Bool
    @Nullable var wait: String?
    var stacks: [Stack]

    init(_ explanation: Explanation) {
        id = explanation.report.id.description
        signature = hexadecimal(explanation.signature.hash)
        family = hexadecimal(explanation.signature.family)
        title = explanation.title
        frames = explanation.signature.keyFrames
        withoutAppFrame = explanation.signature.isWithoutAppFrame
        wait = explanation.signature.wait?.rawValue
        stacks = explanation.stacks.map { stack in
            Stack(
                sampleCount: stack.sampleCount, weightMs: stack.weight.milliseconds,
                frames: stack.frames.map { frame in
                    Frame(
                        function: frame.classified.frame.function,
                        image: frame.classified.frame.imagePath,
                        symbolKey: frame.classified.key.text,
                        class: frame.classified.frameClass.rawValue, rule: frame.rule,
                        key: frame.keyNumber)
                })
        }
    }
}
