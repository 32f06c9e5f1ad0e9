// What makes two stalls the same: the app functions that account for them. Computed from all samples of a stall,
// because the function that happens to be innermost in one sample says little.

package import StallModel

/// The group that a stall belongs to, and how it was decided.
package struct Signature: Hashable, Sendable {
    package var group: ReportGroup
    /// The rule of the user's that merged or split the group, by file and line.
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
    /// What people read: `sleep in sleepInTimer() <- Timeline.tick()`.
    package fileprivate(set) var title: String {
        get { group.title }
        set { group.title = newValue }
    }
    /// The first key frame alone, hashed: groups stalls of one function, whatever called it.
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

    /// Stands in a title whose functions are not the app's.
    static let noAppFrameMark = " (no app frame)"
    /// Stands at the end of a title whose callers were cut off the stacks.
    static let cutMark = " <- …"
}

/// The signature of one stall from the stacks seen in it, each with the time it stands for. Late samples do not belong
/// here.
package func signature(
    of stacks: [(frames: [Frame], weight: Duration)], executable: BuildID? = nil,
    rules: GroupingRules = .builtIn
) -> Signature {
    DefaultGrouper(rules: rules).signature(of: stacks, executable: executable)
}

/// A change of what enters the hash must change this number.
let signatureVersion: UInt64 = 1
/// A change of what a frame is taken for, or of the way to what accounts for a stall, must change this number: groups
/// that were decided before are decided again. 2: merged functions, nested loops that wait, names by their image.
let classificationVersion: UInt64 = 2

func signature(of stacks: [WeightedFrames], rules: GroupingRules) -> Signature {
    let path = DominantPath(stacks)
    guard let first = path.keyFrames.first else {
        return Signature(
            hash: hash(of: []), keyFrames: [], title: "no stack was taken", isWithoutAppFrame: true)
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
        // Without a name only the build tells places apart.
        hash.combine(frame.buildID.map { $0.description })
    }
    return hash.value
}

/// What the samples mostly waited for, outside of the app's code; nil when they mostly ran.
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
    /// The first merge or split of the user's that fits the group.
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
    /// The name that a merged group has in the end: it may be merged once more.
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
    /// - Parameter names: The functions that the title shows.
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
        case .classify, .wait, .base, .keep, .stop: return
        }
        hash.combine(UInt64(bitPattern: self.hash))
        self.hash = hash.value
    }
}
