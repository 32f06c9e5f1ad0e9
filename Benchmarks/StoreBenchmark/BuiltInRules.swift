// The rules of grouping that stallctl has, so that what is measured is what runs.

import StallAnalysis
import StallModel

struct BuiltInRules: ReportGrouper {
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
