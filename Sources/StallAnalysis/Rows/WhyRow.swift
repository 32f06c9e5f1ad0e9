// How a report was grouped, as JSON: the schema of `why --json`.

internal import StallModel
package import StallQuery

/// `why` as JSON. Key names are a contract.
package struct WhyRow: Encodable {
    package struct Stack: Encodable {
        var sampleCount: Int
        var weightMs: Double
        var frames: [Frame]
    }
    package struct Frame: Encodable {
        @Nullable var function: String?
        @Nullable var image: String?
        /// The function without parts that change from build to build.
        var symbolKey: String
        var `class`: String
        var rule: String
        /// 1 for the frame that names the group, 2 and 3 for its callers.
        @Nullable var key: Int?
    }
    package let schema = "stallctl.why/1"
    package var id: String
    package var signature: String
    package var family: String
    package var title: String
    package var frames: [String]
    package var withoutAppFrame: Bool
    @Nullable package var wait: String?
    package var stacks: [Stack]

    package init(_ explanation: Explanation) {
        id = explanation.report.id.description
        signature = hexadecimal(explanation.signature.hash)
        family = hexadecimal(explanation.signature.family)
        title = explanation.title
        frames = explanation.signature.keyFrames
        withoutAppFrame = explanation.signature.isWithoutAppFrame
        wait = explanation.signature.wait?.rawValue
        stacks = explanation.stacks.map { stack in
            Stack(
                sampleCount: stack.sampleCount, weightMs: stack.weight.milliseconds,
                frames: stack.frames.map { frame in
                    Frame(
                        function: frame.classified.frame.function,
                        image: frame.classified.frame.imagePath,
                        symbolKey: frame.classified.key.text,
                        class: frame.classified.frameClass.rawValue, rule: frame.rule,
                        key: frame.keyNumber)
                })
        }
    }
}
