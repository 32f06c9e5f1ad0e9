// A report's cause as data: the value of `cause` in `show --json`. Scripts depend on the names.

internal import StallModel

struct CauseRow: Encodable {
    /// The class with the largest share: `lock`, `disk`, ...
    var `class`: String
    /// From 0 to 1.
    var confidence: Double
    /// All classes that took part, the largest first.
    var shares: [ShareRow]
    var evidence: [EvidenceRow]
    /// Who held the lock, where that could be told.
    @Nullable var lockHolder: HolderRow?

    struct ShareRow: Encodable {
        var `class`: String
        var fraction: Double
    }

    struct EvidenceRow: Encodable {
        var name: String
        var value: String
    }

    struct HolderRow: Encodable {
        var thread: Int32
        @Nullable var name: String?
        var deadlock: Bool
    }

    init(_ cause: StallCause) {
        `class` = cause.cause.word
        confidence = cause.confidence
        shares = cause.shares.map { ShareRow(class: $0.cause.word, fraction: $0.fraction) }
        evidence = cause.evidence.map { EvidenceRow(name: $0.name, value: $0.value) }
        lockHolder = cause.holder.map {
            HolderRow(thread: $0.thread.rawValue, name: $0.name, deadlock: $0.isDeadlock)
        }
    }
}
