// Rules of grouping that a test can work out in its head.

package import StallModel
package import StallQuery

/// A stall belongs to the function that is innermost for the longest time; its caller names it too.
package struct PlainGrouper: ReportGrouper {
    package var rulesHash: Int64
    /// Leaves out what follows the first space of a name: other rules, for tests that change them.
    package var cutsNames: Bool

    package init(rulesHash: Int64 = 1, cutsNames: Bool = false) {
        self.rulesHash = rulesHash
        self.cutsNames = cutsNames
    }

    package var rulesText: String { cutsNames ? "cut" : "" }

    package func hasRules(ofText text: String) -> Bool { text == rulesText }

    /// The hundreds of a hash stand for the version of built-in rules.
    package func following(_ stored: StoredRules) -> any ReportGrouper {
        guard stored.hash != rulesHash, let text = stored.text else { return self }
        let isOfThisVersion = stored.hash / 100 == rulesHash / 100
        return PlainGrouper(
            rulesHash: isOfThisVersion ? stored.hash : rulesHash, cutsNames: text == "cut")
    }

    private final class Stack: GroupedStack {
        let names: [String]
        init(_ names: [String]) { self.names = names }
    }

    package func stack(_ frames: [Frame], executable: BuildID?) -> any GroupedStack {
        Stack(frames.prefix(2).map(name))
    }

    package func group(
        of samples: [(stack: any GroupedStack, weight: Duration)], cause: CauseClass?
    ) -> ReportGroup {
        var weights: [[String]: Duration] = [:]
        for sample in samples {
            weights[(sample.stack as! Stack).names, default: .zero] += sample.weight
        }
        let names = weights.max { ($0.value, $1.key.joined()) < ($1.value, $0.key.joined()) }?.key
        let frames = names ?? []
        var (family, signature) = (ContentHash(), ContentHash())
        family.combine(frames.first)
        for frame in frames { signature.combine(frame) }
        signature.combine(cause.map { $0.word })
        return ReportGroup(
            signature: signature.value, family: family.value,
            title: frames.joined(separator: " <- "), frames: frames)
    }

    private func name(_ frame: Frame) -> String {
        let title = frame.title
        return cutsNames ? String(title.prefix { $0 != " " }) : title
    }
}
