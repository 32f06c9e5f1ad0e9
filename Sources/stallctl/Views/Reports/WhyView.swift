// `why` as text.

internal import StallAnalysis
internal import StallModel
internal import StallQuery

/// `why` as text.
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
            lines.append("For most of the stall, no app function was on the stack.")
        }
        lines = lines.flatMap { $0.wrapped(to: terminal.columns, indentation: 2) }
        let total = explanation.stacks.reduce(Duration.zero) { $0 + $1.weight }
        for stack in explanation.stacks {
            let share =
                total > .zero
                ? ", \(explanation.report.verdict.length(stack.weight)) (\(percent(stack.weight, of: total)))"
                : ""
            lines += ["", counted(stack.sampleCount, "sample") + share]
            lines += table(of: stack).lines(for: terminal)
        }
        return lines
    }

    private func table(of stack: Explanation.Stack) -> Table {
        Table(
            columns: [.init(""), .init("CLASS", spare: 1), .init("FUNCTION"), .init("RULE")],
            flexibleColumn: 2, othersFirst: (terminal.columns ?? .max) < 60 ? 16 : 24,
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
