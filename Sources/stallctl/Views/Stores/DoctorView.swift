// The results of `doctor`, as text and as JSON.

internal import StallDoctor

struct DoctorView {
    var examination: MachineExamination
    var terminal: Terminal

    var lines: [String] {
        var lines = examination.findings.flatMap(lines(of:))
        if let program = examination.program {
            let sentence = "stallctl run can watch \(program.name)".printable
            lines += line(program.obstacle == nil ? .works : .fails, sentence, program.obstacle)
        }
        for failure in examination.failures {
            lines += line(.fails, failure.printable, nil)
        }
        guard !examination.lacks.isEmpty || !examination.agentLines.isEmpty else { return lines }
        if !examination.lacks.isEmpty { lines += ["", "Missing here:"] }
        for lack in examination.lacks {
            lines.append("  \(lack.what): \(lack.effect)".printable)
            if let remedy = lack.remedy { lines.append("    \(remedy)".printable) }
        }
        if !examination.agentLines.isEmpty { lines += ["", "The agent logged:"] }
        return lines + examination.agentLines.map { "  \($0)".printable }
    }

    private func lines(of finding: Finding) -> [String] {
        line(finding.verdict, finding.guarantee.sentence, finding.detail)
            + reasons(for: finding).map { "         \($0)".printable }
    }

    private func line(_ verdict: Verdict, _ sentence: String, _ detail: String?) -> [String] {
        let word = verdict.word.padded(to: 7, .leading)
        let style: TextStyle? = verdict == .works ? nil : .alarming
        return ["\(terminal.paint(word, style))  \(sentence)"]
            + (detail.map { ["         \($0)".printable] } ?? [])
    }

    private func reasons(for finding: Finding) -> [String] {
        guard finding.verdict != .works else { return [] }
        return examination.lacks.filter { $0.guarantees.contains(finding.guarantee) }.map(\.what)
    }
}

extension Verdict {
    /// In a column of seven characters.
    fileprivate var word: String {
        switch self {
        case .works: "works"
        case .limited: "partly"
        case .fails: "fails"
        case .untried: "untried"
        }
    }
}

extension MachineExamination {
    /// One of `doctor --json`.
    struct Row: Encodable {
        let schema = "stallctl.doctor/1"
        /// A guarantee (`blocked`), or `program`, `command`, `machine` (something is missing), `agent` (a log line).
        var subject: String
        /// `works`, `limited`, `fails`, `untried`.
        var verdict: String
        /// The guarantee, the missing thing or the log line.
        var text: String
        /// The wrong observation, or the loss.
        var detail: String?
        var remedy: String?
    }

    var rows: [Row] {
        var rows = findings.map {
            Row(
                subject: $0.guarantee.rawValue, verdict: $0.verdict.rawValue,
                text: $0.guarantee.sentence, detail: $0.detail)
        }
        if let program {
            let verdict: Verdict = program.obstacle == nil ? .works : .fails
            rows.append(
                Row(
                    subject: "program", verdict: verdict.rawValue, text: program.name,
                    detail: program.obstacle))
        }
        rows += failures.map {
            Row(subject: "command", verdict: Verdict.fails.rawValue, text: $0)
        }
        rows += lacks.map {
            Row(
                subject: "machine", verdict: Verdict.limited.rawValue, text: $0.what,
                detail: $0.effect, remedy: $0.remedy)
        }
        return rows
            + agentLines.map {
                Row(subject: "agent", verdict: Verdict.limited.rawValue, text: $0)
            }
    }
}
