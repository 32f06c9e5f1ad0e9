// `show` as text: a summary sentence, the circumstances, a timeline, and the stacks, heaviest first.

internal import StallAnalysis
internal import StallModel
import StallQuery

struct ReportView {
    var report: StallReport
    var stackLimit: Int
    var rules = GroupingRules.builtIn
    var terminal: Terminal
    /// Where traces are shown; nil: nowhere.
    var traces = UserSettings.current.trace

    var grouper: DefaultGrouper { DefaultGrouper(rules: rules) }
    var signature: Signature { report.signature(by: grouper) }

    var lines: [String] {
        let timeline = Timeline(report: report, signature: signature)
        let sentences =
            [sentence] + [report.declaration].compactMap(\.self)
            + report.causeLines(by: grouper, on: terminal) + circumstances
        var lines = sentences.flatMap { $0.wrapped(to: terminal.columns, indentation: 2) }
        lines += [""] + timeline.lines(on: terminal) + [""]
        for (index, stack) in timeline.stacks.prefix(stackLimit).enumerated() {
            lines += stackLines(stack, number: index + 1, of: timeline) + [""]
        }
        if timeline.stacks.count > stackLimit {
            let rest = timeline.stacks.count - stackLimit
            let hint = "\(counted(rest, "more stack")): --stacks \(timeline.stacks.count)"
            lines += [terminal.paint(hint, .faint), ""]
        }
        for thread in report.threads { lines += threadLines(thread) + [""] }
        if report.skippedThreadCount > 0 {
            let count = counted(report.skippedThreadCount, "more thread")
            let line = "\(count) not captured: no buffer space or no time was left"
            lines += line.wrapped(to: terminal.columns) + [""]
        }
        return Array(lines.dropLast())
    }

    /// As Markdown, for an issue tracker.
    var markdownLines: [String] {
        let lines = lines
        return ["**\(lines[0].markdown)**", ""] + markdownFence(Array(lines.dropFirst()))
            + ["", "Repeat with `stallctl show \(report.id)`."]
    }

    /// `main stalled for 1.84 s at 14:03:22.417 (photos 2.3.0, pid 4711, web-2), in a timer callout
    /// of mode default`; of a profile `main: 12 samples of a profiler over 1.84 s at ...`; of a call that the app
    /// forbids `main: a violation at ...`
    var sentence: String {
        let isKnown = !report.duration.isUnknownLength
        let isNoStall = report.verdict == .sampled || report.verdict == .blocking
        let (verb, preposition) =
            switch report.state {
            case .open where !isNoStall: (" stalled so far for ", "since")
            case .hang where !isNoStall: (isKnown ? " hung for at least " : " hung for ", "on")
            default: (" stalled for ", "on")
            }
        let stall = verb + report.duration.lengthClause
        let profile =
            ": \(counted(report.samples.count, "sample")) of a profiler"
            + (isKnown ? " over \(report.duration.precise)" : "")
        let other = report.verdict == .blocking ? ": a violation" : profile
        let mode = report.mode.isEmpty ? nil : "mode \(report.mode)"
        let place = [report.phase.clause, mode].compactMap(\.self)
            .joined(separator: " of ")
        return terminal.paint(report.loop.printable + (isNoStall ? other : stall), .strong)
            + " \(preposition) \(report.start.sentenceText(on: terminal))"
            + (process.isEmpty ? "" : " (\(process))".printable)
            + (place.isEmpty ? "" : ", ") + (report.phase == .unknown && mode != nil ? "in " : "")
            + place.printable + (isNoStall ? "" : report.outcome.clause)
    }

    /// `photos 2.3.0, pid 4711, web-2, iOS 17.4.1, iPhone14,2`; without what is unknown.
    private var process: String {
        let run = report.run
        let app = [run.app, run.version].filter { !$0.isEmpty }.joined(separator: " ")
        let pid = run.pid > 0 ? "pid \(run.pid)" : ""
        let machine = [run.host, run.os ?? "", run.device ?? ""]
        return ([app, pid] + machine).filter { !$0.isEmpty }.joined(separator: ", ")
    }

    /// The circumstances of the stall, one sentence per line.
    private var circumstances: [String] {
        var lines: [String] = []
        if let activity = report.activity, activity != report.declaredReason {
            lines.append("While: \(activity.printable)")
        }
        if let context = report.cause?.traceContext, let address = context.address(in: traces) {
            lines.append("Trace: \(address)")
        }
        if let sentence = report.verdict.sentence { lines.append(sentence) }
        let measures = self.measures
        if !measures.isEmpty { lines.append(measures) }
        if report.delayedTime > .zero {
            let share = percent(report.delayedTime, of: report.duration)
            lines.append(
                "Its own time was \((report.duration - report.delayedTime).precise): for "
                    + "\(report.delayedTime.precise) (\(share)) it waited for a CPU or was stopped."
            )
        }
        if !signature.keyFrames.isEmpty {
            let title = signature.group.title(under: report.cause?.cause)
            lines.append("Grouped as: \(title.printable)")
        }
        if report.wasLeftUnwritten {
            lines.append("The process ended before the agent could write the stacks.")
        } else if report.samples.isEmpty, report.state == .ended, report.threshold > .zero {
            lines.append(
                "It was detected afterwards: the watchdog was not scheduled during the stall.")
        }
        lines.append("Report \(report.id)")
        return lines
    }

    /// The CPU time, the threshold and the delay of detection; of another program's report those that it has.
    private var measures: String {
        let hasThreshold = report.threshold > .zero
        var sentences: [String] = []
        if !report.wasLeftUnwritten, hasThreshold || report.cpuTime > .zero {
            let share =
                report.duration.isUnknownLength
                ? "" : " (\(percent(report.cpuTime, of: report.duration)))"
            let cpuTime =
                report.verdict == .blocking ? report.cpuTime.preciseCall : report.cpuTime.precise
            sentences.append("The thread used \(cpuTime) of CPU\(share).")
        }
        if hasThreshold {
            let detection =
                report.wasLeftUnwritten
                ? "" : "; the stall was detected \(report.detectionDelay.compact) late"
            sentences.append("The threshold was \(report.threshold.precise)\(detection).")
        }
        return sentences.joined(separator: " ")
    }

    private func stackLines(
        _ stack: Timeline.Stack, number: Int, of timeline: Timeline
    ) -> [String] {
        let isTimed = report.isTimed
        var title = "Stack \(number): \(counted(stack.sampleCount, "sample"))"
        if timeline.totalWeight > .zero, report.verdict != .blocking {
            let share = percent(stack.weight, of: timeline.totalWeight)
            title += ", \(stack.weight.precise) (\(share))"
        }
        if isTimed { title += ", first seen at \(stack.firstOffset.precise)" }
        let naming = stack.frames.firstIndex(where: timeline.isNaming)
        return title.wrapped(to: terminal.columns)
            + frameLines(
                stack.frames, naming: naming, isTruncated: stack.isTruncated,
                in: isTimed ? timeline : nil)
    }

    private func threadLines(_ thread: ThreadSnapshot) -> [String] {
        let title =
            (terminal.paint("Thread \(thread.label.printable)", .strong) + thread.role.clause)
            .wrapped(to: terminal.columns)
        if let failure = thread.failure {
            return title
                + "no stack: \(failure.printable)".wrapped(to: terminal.columns.map { $0 - 5 })
                .map { "     " + $0 }
        }
        let app = report.appFunction(of: thread, by: grouper)
        let naming = thread.frames.firstIndex { SymbolKey(frame: $0).display == app }
        return title
            + frameLines(thread.frames, naming: naming, isTruncated: thread.isTruncated)
    }

    /// - Parameter timeline: Provides the times at which each function was on the stack.
    private func frameLines(
        _ frames: [Frame], naming: Int?, isTruncated: Bool, in timeline: Timeline? = nil
    ) -> [String] {
        // On a narrow terminal only the time line above shows this.
        let timeline = (terminal.columns ?? .max) >= 110 ? timeline : nil
        // Shown where it differs from the caller's; the outermost function is expected in every sample.
        let presences = frames.map { timeline?.presence(of: $0) }
        let callers = Array(presences.dropFirst()) + [timeline?.whole]
        let times = presences.indices.map {
            presences[$0] == callers[$0] ? "" : presences[$0]?.text ?? ""
        }
        let digits = String(max(0, frames.count - 1)).count + 1
        let marks = frames.indices.map {
            ($0 == naming ? "> " : "  ") + "#\($0)".padded(to: digits, .leading)
        }
        let callMerged = frames.callMerged
        func table(_ places: FramePlaces) -> Table {
            var table = Table(
                columns: [
                    .init(""), .init("FUNCTION"), .init("IMAGE", spare: 1),
                    .init("SOURCE", spare: 2), .init("ON THE STACK", spare: 1),
                ], flexibleColumn: 1, othersFirst: 16)
            table.rows = frames.enumerated().map { index, frame in
                // The line of one of several functions is not that of the others.
                var place = frame
                if callMerged[index] { (place.file, place.line) = (nil, nil) }
                return [
                    .init(marks[index], style: index == naming ? .pointing : .faint),
                    .init(
                        frame.title + notes(on: frame, callsMerged: callMerged[index]),
                        style: index == naming ? .strong : nil),
                    .init(places.image(of: frame)),
                    .init(
                        places.source(of: place), link: place.file.flatMap(Hyperlink.file)),
                    .init(times[index], style: .faint),
                ]
            }
            return table
        }
        let columns = terminal.columns ?? .max
        let places = FramePlaces.allCases.first { table($0).naturalWidth <= columns }
        var lines = Array(table(places ?? .either).lines(for: terminal).dropFirst())
        if isTruncated { lines.append("     (stack truncated)") }
        return lines
    }

    private func notes(on frame: Frame, callsMerged: Bool) -> String {
        let notes = [
            frame.isInlined ? "inlined" : nil, frame.kind == .asyncResume ? "awaiting" : nil,
            frame.isGuessed ? "guessed" : nil,
            callsMerged || SymbolKey(frame: frame).role == .merged ? mergedWords : nil,
        ].compactMap(\.self)
        return notes.isEmpty ? "" : " (\(notes.joined(separator: ", ")))"
    }
}

extension Timeline.Presence {
    /// `from 0.31 s to the end, 96 %`
    fileprivate var text: String {
        let share = "\(Int((share * 100).rounded())) %"
        if until == from { return "at \(from.precise), \(share)" }
        return "from \(from.precise) to \(until?.precise ?? "the end"), \(share)"
    }
}

/// How a stack's frames are located; the first that fits the terminal is used.
private enum FramePlaces: CaseIterable {
    /// The image, and the source file with its path.
    case paths
    /// The image, and the source file's name.
    case names
    /// The source file's name, or the image if it is not known.
    case either

    func image(of frame: Frame) -> String { self == .either ? "" : frame.imageName ?? "?" }

    func source(of frame: Frame) -> String {
        switch self {
        case .paths:
            frame.file.map { file in frame.line.map { "\(file):\($0)" } ?? file } ?? ""
        case .names: frame.sourceText
        case .either: frame.file == nil ? frame.imageName ?? "?" : frame.sourceText
        }
    }
}

extension Frame {
    /// `Sync.swift:88`, or empty.
    var sourceText: String {
        guard let file else { return "" }
        let name = file.split(separator: "/").last.map(String.init) ?? file
        return line.map { "\(name):\($0)" } ?? name
    }
}

extension StallReport {
    /// Whether its samples are shown in time: a call that may block has one stack.
    var isTimed: Bool { !duration.isUnknownLength && verdict != .blocking }

    /// The next process found the stall in shared memory left by its own process; only its start and duration are
    /// known.
    fileprivate var wasLeftUnwritten: Bool {
        samples.isEmpty && state != .open && threshold > .zero && detectionDelay == .zero
    }
}

extension TraceContext {
    /// The address of this trace; nil if the template wants a span that is not known.
    func address(in template: String?) -> String? {
        guard let template, span != nil || !template.contains("{span}") else { return nil }
        return template.replacing("{trace}", with: trace).replacing("{span}", with: span ?? "")
    }
}
