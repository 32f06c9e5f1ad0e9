// A report's cause as text: a sentence, the shares of several causes, and the evidence.

internal import StallAnalysis
internal import StallModel

extension StallReport {
    /// `main waited 1.80 s for a mutex held by thread 4719 'compactor' in compactDatabase() lock, confidence 98 %`;
    /// then the evidence. Empty if there is no cause.
    func causeLines(by grouper: DefaultGrouper, on terminal: Terminal) -> [String] {
        guard let cause else { return [] }
        let confidence =
            "\(cause.cause.word), confidence \(Int((cause.confidence * 100).rounded())) %"
        var lines = [
            (call ?? causeSentence(cause, grouper)).printable + "   "
                + terminal.paint(confidence, .strong)
        ]
        if cause.shares.count > 1 {
            let shares = cause.shares.map {
                "\($0.cause.word) \(Int(($0.fraction * 100).rounded())) %"
            }
            lines.append("By cause: " + listed(shares) + ".")
        }
        let facts = cause.evidence.map { "\($0.name) \($0.value)" }
        if !facts.isEmpty {
            lines.append(
                terminal.paint(
                    "Evidence: " + facts.joined(separator: "; ").printable + ".", .faint))
        }
        return lines
    }

    /// The sentence of a report that is not ranked among stalls; nil of others. Of a violation it is in place of the
    /// cause's.
    var declaration: String? {
        switch verdict {
        case .blocking: cause == nil ? call?.printable : nil
        case .expected:
            "The app declared that it may block here"
                + (declaredReason.map { ": " + $0.printable } ?? "") + "."
        default: nil
        }
    }

    /// The reason that the app gave for an expected stall, or else what it was doing.
    var declaredReason: String? {
        verdict == .expected ? cause?.evidence(.expected) ?? activity : nil
    }

    /// `Called usleep, which may block, for 12 µs, where the app forbids it.` of a violation
    private var call: String? {
        guard verdict == .blocking else { return nil }
        return "Called \(blockingCall.map { "\($0), which" } ?? "a function that") may block, "
            + "for \(lengthClause(of: duration)), where the app forbids it."
    }

    /// A part of the duration, in a sentence.
    func lengthClause(of part: Duration) -> String {
        verdict == .blocking ? part.preciseCall : part.lengthClause
    }

    private func causeSentence(_ cause: StallCause, _ grouper: DefaultGrouper) -> String {
        let share = cause.shares.first { $0.cause == cause.cause }?.fraction ?? 1
        let (verb, object) = cause.cause.clause
        let spent = "\(loop) \(verb) \((duration * share).lengthClause)"
        if cause.cause == .lock { return spent + " for " + lockClause(cause, grouper) }
        let call = cause.evidence(.systemCall).map { " in \($0)" }
        let waits = ![.cpu, .unknown, .starved, .throttled, .stopped].contains(cause.cause)
        return spent + (object.isEmpty || object.hasPrefix(";") ? object : " " + object)
            + (waits ? call ?? "" : "")
    }

    /// `a mutex held by thread 4719 'compactor' in compactDatabase()`, and the rest of a deadlock's cycle.
    private func lockClause(_ cause: StallCause, _ grouper: DefaultGrouper) -> String {
        let lock = cause.evidence(.lock) ?? "a lock"
        guard let holder = cause.holder else {
            let process = cause.evidence(.heldBy)
            return lock + (process.map { " held by \($0)" } ?? "; the holder is not known")
        }
        let holders = threads.filter { $0.role == .holder }
        guard !holders.isEmpty else { return lock + " held by thread \(holder.label)" }
        let chain = holders.map { thread in
            "thread \(thread.label)"
                + (appFunction(of: thread, by: grouper).map { " in \($0)" } ?? "")
        }
        return lock + " held by " + chain.joined(separator: ", which waits for ")
            + (holder.isDeadlock ? ", which waits for \(loop): a deadlock" : "")
    }
}

extension ThreadSnapshot {
    /// `4719 'compactor'`.
    var label: String { "\(thread.rawValue)" + (name.map { " '\($0)'" } ?? "") }
}

extension LockHolder {
    /// `4719 'compactor'`.
    fileprivate var label: String { "\(thread.rawValue)" + (name.map { " '\($0)'" } ?? "") }
}
