// The functions that account for a stall, from all of its samples: the callout that holds most of the time, and from
// there down as long as one function holds most of what is left.

internal import StallModel

/// One function on the way, told apart from others of its name.
struct PathStep: Hashable {
    /// What is shown.
    let title: String
    /// What is hashed.
    let text: String
    let owner: String
    /// Of a place that has no name.
    let buildID: BuildID?

    init(_ frame: ClassifiedFrame) {
        let isNamed = frame.frame.function != nil || frame.frame.rawName != nil
        title = isNamed ? frame.key.display : frame.frame.title
        text = title
        owner = frame.owner
        buildID = isNamed ? nil : frame.frame.buildID
    }
}

struct DominantPath {
    /// The accounting function first, then its callers; at most three.
    let keyFrames: [PathStep]
    let isWithoutAppFrame: Bool

    init(_ stacks: [WeightedFrames]) {
        let stacks = stacks.filter { !$0.frames.isEmpty }
        let app = stacks.map { Steps(from: $0, \.isAppFrame) }
        let appWeight = app.reduce(0) { $0 + ($1.steps.isEmpty ? 0 : $1.weight) }
        let total = app.reduce(0) { $0 + $1.weight }
        if appWeight > 0, appWeight >= total * 0.4 {
            keyFrames = Self.keyFrames(on: Self.dominant(app.filter { !$0.steps.isEmpty }))
            isWithoutAppFrame = false
            return
        }
        // Nothing of the app's, mostly: what the system did, or at least where.
        let classes: [(ClassifiedFrame) -> Bool] = [
            \.isEntryPoint, { $0.frameClass == .system }, { $0.frameClass != .kernel },
            { _ in true },
        ]
        let found = classes.lazy.map { isWanted in
            Self.dominant(stacks.map { Steps(from: $0, isWanted) }.filter { !$0.steps.isEmpty })
        }.first { !$0.isEmpty }
        keyFrames = Self.keyFrames(on: found ?? [])
        isWithoutAppFrame = true
    }

    /// Leaf first, every function once: neither the depth of a recursion nor A B A B makes another group.
    private static func keyFrames(on path: [PathStep]) -> [PathStep] {
        var frames: [PathStep] = []
        for step in path.reversed() where !frames.contains(step) {
            frames.append(step)
            if frames.count == 3 { break }
        }
        return frames
    }

    /// Root first: the heaviest callout, then down while one child is sure to hold most of it.
    private static func dominant(_ stacks: [Steps]) -> [PathStep] {
        var path: [PathStep] = []
        guard var (step, members) = heaviestChild(of: stacks, at: 0) else { return [] }
        let weight = members.reduce(0) { $0 + $1.weight }
        let needed = weight * requiredShare(of: members)
        while true {
            path.append(step)
            guard let child = heaviestChild(of: members, at: path.count),
                child.members.reduce(0, { $0 + $1.weight }) >= needed
            else { return path }
            (step, members) = child
        }
    }

    private static func heaviestChild(
        of stacks: [Steps], at depth: Int
    ) -> (step: PathStep, members: [Steps])? {
        let deeper = stacks.filter { $0.steps.count > depth }
        let children = Dictionary(grouping: deeper) { $0.steps[depth] }
        // Equal weights: the one that was seen first, whatever order the dictionary has.
        var best: (step: PathStep, members: [Steps], weight: Double)?
        var seen: Set<PathStep> = []
        for step in deeper.map({ $0.steps[depth] }) where seen.insert(step).inserted {
            let members = children[step] ?? []
            let weight = members.reduce(0) { $0 + $1.weight }
            if weight > best?.weight ?? -1 { best = (step, members, weight) }
        }
        return best.map { ($0.step, $0.members) }
    }

    /// The share of the time that a function must hold to be blamed instead of its caller: 60 % when there are many
    /// samples, more when there are few, since a few may fall on one helper by chance.
    private static func requiredShare(of stacks: [Steps]) -> Double {
        let sum = stacks.reduce(0) { $0 + $1.weight }
        let squares = stacks.reduce(0) { $0 + $1.weight * $1.weight }
        // How many samples of equal weight would say as much.
        let count = squares > 0 ? sum * sum / squares : 1
        return min(1, 0.6 + 0.6 / count.squareRoot()) * (1 - 1e-9)
    }
}

/// A stack reduced to the functions that count, root first, recursion folded.
private struct Steps {
    var steps: [PathStep] = []
    var weight: Double

    init(from stack: WeightedFrames, _ isWanted: (ClassifiedFrame) -> Bool) {
        weight = max(stack.weight, 1)
        let callout = stack.frames.prefix { !$0.isLoop }
        for frame in callout.reversed() where isWanted(frame) {
            append(PathStep(frame))
        }
    }

    /// A step that is already on the path leads back there: recursion and cycles are one round.
    private mutating func append(_ step: PathStep) {
        if let index = steps.firstIndex(of: step) {
            steps.removeSubrange((index + 1)...)
        } else {
            steps.append(step)
        }
    }
}

extension ClassifiedFrame {
    fileprivate var isAppFrame: Bool { frameClass == .app }
}
