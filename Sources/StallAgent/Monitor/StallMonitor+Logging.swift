// One line per stall in the app's log, because every container has standard output.

public import Logging
internal import StallModel

extension StallMonitor {
    /// Logs a line for every stall whose report has become durable, through the configuration's logger: `stall`, with
    /// these metadata.
    ///
    /// | key | |
    /// |---|---|
    /// | `stall.id`, `stall.loop`, `stall.duration_ms`, `stall.verdict`, `stall.state` | always |
    /// | `stall.activity`, `stall.cause` | if known |
    /// | `stall.facts` | open requests and spans, what ``onSuspicion(_:)`` returned, pod, namespace, container |
    /// | `stall.frames` | the names of up to eight innermost functions of the stack that stood for most of the stall |
    ///
    /// - Parameters:
    ///   - level: The log level of the lines.
    ///   - state: `.ended` for one line per stall, `.open` for one while it lasts.
    public func logStalls(level: Logger.Level = .warning, at state: StallState = .ended) {
        let logger = configuration.logger
        onStall(at: state) { report in
            logger.log(level: level, "stall", metadata: report.logMetadata)
        }
    }

    /// The earlier name of ``logStalls(level:at:)``.
    @available(*, deprecated, renamed: "logStalls(level:at:)")
    public func logsStalls(level: Logger.Level = .warning, at state: StallState = .ended) {
        logStalls(level: level, at: state)
    }
}

extension StallReport {
    /// The metadata of one line.
    var logMetadata: Logger.Metadata {
        var metadata: Logger.Metadata = [
            "stall.id": "\(id)", "stall.loop": "\(loop)", "stall.verdict": "\(verdict)",
            "stall.state": "\(state)",
            "stall.duration_ms": "\(Int(duration / .milliseconds(1)))",
        ]
        if let activity { metadata["stall.activity"] = "\(activity)" }
        if let cause { metadata["stall.cause"] = "\(cause.cause.word)" }
        let facts = cause?.contextFacts ?? []
        if !facts.isEmpty { metadata["stall.facts"] = .array(facts.map { "\($0)" }) }
        let frames = dominantFunctions
        if !frames.isEmpty { metadata["stall.frames"] = .array(frames.map { "\($0)" }) }
        return metadata
    }

    private var dominantFunctions: [String] {
        var weights: [[Frame]: Duration] = [:]
        for sample in samples where !sample.isLate && !sample.frames.isEmpty {
            weights[sample.frames, default: .zero] += sample.weight
        }
        let frames = weights.max { $0.value < $1.value }?.key ?? []
        return frames.lazy.compactMap(\.function).prefix(8).map { $0 }
    }
}

extension StallCause {
    /// The facts besides the kernel's evidence: open requests, the hooks' facts, where the process runs.
    var contextFacts: [String] {
        let context: Set<EvidenceName> = [
            .request, .span, .openRequest, .openSpan, .pod, .namespace, .container,
            .containerID,
        ]
        return evidence.filter { fact in
            EvidenceName(rawValue: fact.name).map(context.contains) ?? true
        }.map { "\($0.name) \($0.value)" }
    }
}
