// A report's cause as JSON: the value of `cause` in `show --json`. Key names are a contract.

package import StallModel

package struct CauseRow: Encodable {
    /// The class with the largest share: `lock`, `disk`, ...
    package var `class`: String
    /// From 0 to 1.
    package var confidence: Double
    /// The shares of all causes, largest first.
    package var shares: [ShareRow]
    package var evidence: [EvidenceRow]
    /// The lock holder, if known.
    @Nullable package var lockHolder: HolderRow?

    package struct ShareRow: Encodable {
        var `class`: String
        var fraction: Double
    }

    package struct EvidenceRow: Encodable {
        package var name: String
        package var value: String
    }

    package struct HolderRow: Encodable {
        package var thread: Int32
        @Nullable package var name: String?
        var deadlock: Bool
    }

    package init(_ cause: StallCause) {
        `class` = cause.cause.word
        confidence = cause.confidence
        shares = cause.shares.map { ShareRow(class: $0.cause.word, fraction: $0.fraction) }
        evidence = cause.evidence.map { EvidenceRow(name: $0.name, value: $0.value) }
        lockHolder = cause.holder.map {
            HolderRow(thread: $0.thread.rawValue, name: $0.name, deadlock: $0.isDeadlock)
        }
    }
}
