// What makes two stalls the same: the app functions that account for them. Computed from all samples of a stall,
// because the function that happens to be innermost in one sample says little.

package import StallModel

/// Names the group that a stall belongs to. The hash is the same in every process and store.
package struct Signature: Hashable, Sendable {
    package var hash: Int64
    /// Up to three functions, the one that accounts for the stall first, then its callers.
    package var keyFrames: [String]
    /// What people read: `sleep in sleepInTimer() <- Timeline.tick()`.
    package var title: String
    /// The first key frame alone, hashed: groups stalls of one function whoever called it.
    package var family: Int64
    package var wait: WaitClass?
    /// The key frames are not the app's: none of its functions was on the stacks.
    package var isWithoutAppFrame: Bool
    /// The stacks were cut before the callers: it names the group of a whole stack with the same function.
    package var isCut: Bool

    package init(
        hash: Int64, keyFrames: [String], title: String, family: Int64? = nil,
        wait: WaitClass? = nil, isWithoutAppFrame: Bool = false, isCut: Bool = false
    ) {
        self.hash = hash
        self.keyFrames = keyFrames
        self.title = title
        self.family = family ?? hash
        self.wait = wait
        self.isWithoutAppFrame = isWithoutAppFrame
        self.isCut = isCut
    }
}

/// The signature of one stall from the stacks seen in it, each with the time it stands for. Late samples do not belong
/// here.
package func signature(
    of stacks: [(frames: [Frame], weight: Duration)], executable: BuildID? = nil
) -> Signature {
    signature(
        of: stacks.map { stack in
            WeightedFrames(
                frames: stack.frames.map { ClassifiedFrame($0, executable: executable) },
                weight: Double(stack.weight.nanoseconds))
        })
}

struct WeightedFrames {
    /// Innermost first.
    var frames: [ClassifiedFrame]
    var weight: Double
}

/// Version 1 of the rules. A change of what enters the hash must change this number.
private let rulesVersion: UInt64 = 1

func signature(of stacks: [WeightedFrames]) -> Signature {
    let path = DominantPath(stacks)
    guard let first = path.keyFrames.first else {
        return Signature(
            hash: hash(of: []), keyFrames: [], title: "no stack was taken", isWithoutAppFrame: true)
    }
    let names = path.keyFrames.map(\.title)
    let wait = dominantWait(stacks)
    var title = names.prefix(2).joined(separator: " <- ")
    if let wait { title = "\(wait.rawValue) in \(title)" }
    if path.isWithoutAppFrame { title += " (no app frame)" }
    return Signature(
        hash: hash(of: path.keyFrames), keyFrames: names, title: title, family: hash(of: [first]),
        wait: wait, isWithoutAppFrame: path.isWithoutAppFrame, isCut: path.isCut)
}

private func hash(of frames: [PathStep]) -> Int64 {
    var hash = ContentHash()
    hash.combine(rulesVersion)
    hash.combine(frames.first?.owner)
    for frame in frames {
        hash.combine(frame.text)
        // Without a name only the build tells places apart.
        hash.combine(frame.buildID.map { $0.description })
    }
    return hash.value
}

/// What the samples mostly waited for, outside of the app's code; nil when they mostly ran.
private func dominantWait(_ stacks: [WeightedFrames]) -> WaitClass? {
    var weights: [WaitClass: Double] = [:]
    for stack in stacks {
        let system = stack.frames.prefix { $0.frameClass != .app && !$0.isLoop }
        guard let wait = system.last(where: { $0.wait != nil })?.wait else { continue }
        weights[wait, default: 0] += stack.weight
    }
    let total = stacks.reduce(0) { $0 + $1.weight }
    return weights.first { $0.value > total / 2 }?.key
}
