// The rules of grouping as the store calls them.

internal import StallAnalysis
internal import StallModel

/// The built-in rules.
struct StoredGrouper: ReportGrouper {
    var rulesHash: Int64 { 1 }

    func group(
        of samples: [(frames: [Frame], weight: Duration)], cause: CauseClass?, executable: BuildID?
    ) -> ReportGroup {
        let signature = signature(of: samples, executable: executable)
        return ReportGroup(
            signature: signature.hash, family: signature.family, title: signature.title,
            frames: signature.keyFrames)
    }
}
