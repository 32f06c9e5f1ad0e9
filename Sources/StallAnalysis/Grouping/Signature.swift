// The identity of a stall's group: the app functions that account for it. Computed from all samples of a stall, because
// the innermost function of a single sample is arbitrary.

package import StallModel
package import StallQuery

/// The group of a stall, and how it was computed.
package struct Signature: Hashable, Sendable {
    package var group: ReportGroup
    /// The user's merge or split rule that applied, with file and line.
    package var rule: String?

    package init(
        hash: Int64, keyFrames: [String], title: String, family: Int64? = nil,
        wait: WaitClass? = nil, isWithoutAppFrame: Bool = false, isCut: Bool = false
    ) {
        group = ReportGroup(
            signature: hash, family: family ?? hash, title: title, frames: keyFrames, wait: wait,
            isWithoutAppFrame: isWithoutAppFrame, isCut: isCut)
    }

    package fileprivate(set) var hash: Int64 {
        get { group.signature }
        set { group.signature = newValue }
    }
    /// Up to three functions, the one that accounts for the stall first, then its callers.
    package fileprivate(set) var keyFrames: [String] {
        get { group.frames }
        set { group.frames = newValue }
    }
    /// For display: `sleep in sleepInTimer() <- Timeline.tick()`.
    package fileprivate(set) var title: String {
        get { group.title }
        set { group.title = newValue }
    }
    /// The hash of the first key frame alone: groups stalls of one function, whatever called it.
    package fileprivate(set) var family: Int64 {
        get { group.family }
        set { group.family = newValue }
    }
    package var wait: WaitClass? { group.wait }
    package var isWithoutAppFrame: Bool { group.isWithoutAppFrame }
    package fileprivate(set) var isCut: Bool {
        get { group.isCut }
        set { group.isCut = newValue }
    }

    /// Appended to a title without app functions.
    static let noAppFrameMark = " (no app frame)"
    /// Appended to a title whose callers are missing because the stacks were truncated.
    static let cutMark = " <- …"
}

/// Computes the signature of one stall from its stacks, each with its weight. Late samples must be excluded.
package func signature(
    of stacks: [(frames: [Frame], weight: Duration)], executable: BuildID? = nil,
    rules: GroupingRules = .builtIn
) -> Signature {
    DefaultGrouper(rules: rules).signature(of: stacks, executable: executable)
}

/// Increment when the input of the hash changes.
let signatureVersion: UInt64 = 1
/// Increment when frame classes or the dominant path change: stored groups are then computed again. 2: merged
/// functions, nested loops that wait, names by their image. 3: functions that call merged ones and have no symbol.
let classificationVersion: UInt64 = 3

func signature(of stacks: [WeightedFrames], rules: GroupingRules) -> Signature {
    let path = DominantPath(stacks)
    guard let first = path.keyFrames.first else {
        return Signature(
            hash: hash(of: []), keyFrames: [], title: ReportGroup.titleWithoutStack,
            isWithoutAppFrame: true)
    }
    let wait = dominantWait(stacks)
    var names = path.keyFrames.map(\.title)
    var signature = Signature(
        hash: hash(of: path.keyFrames), keyFrames: names, title: "", family: hash(of: [first]),
        wait: wait, isWithoutAppFrame: path.isWithoutAppFrame,
        isCut: path.isCut && first.isNamed && names.count < DominantPath.keyFrameCount)
    if let rule = rules.groupRule(fitting: path, stacks) {
        signature.apply(rule, path, stacks, rules, shown: &names)
    }
    if path.callsMerged, signature.rule == nil { names.insert(mergedWords, at: 0) }
    signature.title = names.prefix(2).joined(separator: " <- ")
    if let wait { signature.title = "\(wait.rawValue) in \(signature.title)" }
    if signature.isWithoutAppFrame { signature.title += Signature.noAppFrameMark }
    if signature.isCut { signature.title += Signature.cutMark }
    return signature
}

private func hash(of frames: [PathStep]) -> Int64 {
    var hash = ContentHash()
    hash.combine(signatureVersion)
    hash.combine(frames.first?.owner)
    for frame in frames {
        hash.combine(frame.title)
        // Locations without a name are distinguished by build.
        hash.combine(frame.buildID.map { $0.description })
    }
    return hash.value
}

/// The kind of wait of most samples, outside of app code; nil if mostly running.
private func dominantWait(_ stacks: [WeightedFrames]) -> WaitClass? {
    var weights: [WaitClass: Double] = [:]
    for stack in stacks {
        guard let wait = stack.stack.wait else { continue }
        weights[wait, default: 0] += stack.weight
    }
    let total = stacks.reduce(0) { $0 + $1.weight }
    return weights.first { $0.value > total / 2 }?.key
}

// MARK: - Merges and splits

extension GroupingRules {
    /// The first of the user's merges and splits that matches the group.
    fileprivate func groupRule(
        fitting path: DominantPath, _ stacks: [WeightedFrames]
    ) -> GroupingRule? {
        guard !groupRules.isEmpty, let first = path.keyFrames.first,
            let frame = stacks.lazy.flatMap(\.frames).first(where: { $0.step == first })
        else { return nil }
        let text = path.keyFrames.map(\.title).joined(separator: " <- ")
        let facts = FrameFacts(
            imagePath: frame.frame.imagePath, imageName: frame.frame.imageName,
            module: frame.module,
            names: [first.title], kinds: [])
        return groupRules.first { $0.paths.fit(text) && $0.fits(facts) }
    }
}

extension GroupingRules {
    /// The final name of a merged group, which may be merged again.
    fileprivate func mergedName(of name: String) -> String {
        var name = name
        var rest = groupRules
        while let index = rest.firstIndex(where: { !$0.paths.isEmpty && $0.paths.fit(name) }),
            case .merge(let next) = rest.remove(at: index).action
        {
            name = next
        }
        return name
    }
}

extension Signature {
    /// - Parameter names: The functions in the title.
    fileprivate mutating func apply(
        _ rule: GroupingRule, _ path: DominantPath, _ stacks: [WeightedFrames],
        _ rules: GroupingRules, shown names: inout [String]
    ) {
        self.rule = rule.file.map { "\($0):\(rule.line)" }
        var hash = ContentHash()
        switch rule.action {
        case .merge(let name):
            let name = rules.mergedName(of: name)
            hash.combine("merge")
            hash.combine(name)
            names = name.split(separator: " <- ").map(String.init)
            keyFrames = names
            isCut = false
            (self.hash, family) = (hash.value, hash.value)
            return
        case .split(.callee):
            let callee = path.callee(in: stacks)
            hash.combine(callee)
            if let callee { names[0] += " -> " + callee }
        case .split(.callers):
            for step in path.functions { hash.combine(step.title) }
        case .split(.wait):
            hash.combine(wait?.rawValue)
        case .classify, .wait, .base, .keep, .stop, .allow: return
        }
        hash.combine(UInt64(bitPattern: self.hash))
        self.hash = hash.value
    }
}
