// Watched time in sentences.

internal import StallModel
internal import StallQuery

extension Duration {
    /// ` in 1d 02h watched`, ` in 25 s watched`.
    var watchedClause: String { " in \(compact) watched" }
}

/// States which stalls the rates cover, if watched time is recorded for only some of the loops; otherwise nil.
///
/// - Parameter lost: The own time lost in all of them.
func unwatchedSentence(_ watched: StallTotals, ofCount count: Int, lost: Duration) -> String? {
    guard count > watched.count else { return nil }
    return
        "Rates cover the \(counted(watched.count, "stall")) (\(watched.own.compact) lost) in loops with recorded "
        + "watched time, not the other \(counted(count - watched.count, "stall")) "
        + "(\((lost - watched.own).compact))."
}
