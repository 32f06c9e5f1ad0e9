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
    let isNamed: Bool
    /// Of a place that has no name.
    let buildID: BuildID?

    init(_ frame: ClassifiedFrame) {
        isNamed = frame.frame.function != nil || frame.frame.rawName != nil
        title = isNamed ? frame.key.display : frame.frame.title
        text = title
        owner = frame.owner
        buildID = isNamed ? nil : frame.frame.buildID
    }
}

struct DominantPath {
    static let keyFrameCount = 3

    /// The accounting function first, then all its callers.
    let functions: [PathStep]
    /// The first of them: at most three.
    var keyFrames: [PathStep] { Array(functions.prefix(Self.keyFrameCount)) }
    let isWithoutAppFrame: Bool
    /// Every stack on the path was cut before the function that runs callouts: callers are missing.
    let isCut: Bool

    init(_ stacks: [WeightedFrames]) {
        let stacks = stacks.filter { !$0.frames.isEmpty }
        let app = Steps.aligned(stacks.map { Steps(from: $0, \.counts) })
        let appWeight = app.reduce(0) { $0 + ($1.steps.isEmpty ? 0 : $1.weight) }
        // A stack that was cut before it reached the app says nothing about the app.
        let total = app.reduce(0) { $0 + ($1.steps.isEmpty && $1.isCut ? 0 : $1.weight) }
        if appWeight > 0, appWeight >= total * 0.4 {
            let (path, members) = Self.dominant(app.filter { !$0.steps.isEmpty })
            functions = Self.functions(on: path)
            isCut = members.allSatisfy(\.isCut)
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
                .path
        }.first { !$0.isEmpty }
        functions = Self.functions(on: found ?? [])
        isCut = false
        isWithoutAppFrame = true
    }

    /// Leaf first, every function once: neither the depth of a recursion nor A B A B makes another group. A caller
    /// without a name is only a call site, of which its function may have many.
    private static func functions(on path: [PathStep]) -> [PathStep] {
        var frames: [PathStep] = []
        for step in path.reversed() where !frames.contains(step) {
            if !frames.isEmpty, !step.isNamed { break }
            frames.append(step)
        }
        return frames
    }

    /// The function that the accounting one had called in most of the samples, whoever's it is.
    func callee(in stacks: [WeightedFrames]) -> String? {
        guard let first = functions.first else { return nil }
        var weights: [String: Double] = [:]
        for stack in stacks {
            guard let index = stack.frames.firstIndex(where: { PathStep($0) == first }),
                let callee = stack.frames[..<index].last(where: { $0.key.role == .function })
            else { continue }
            weights[callee.key.display, default: 0] += stack.weight
        }
        return weights.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
    }

    /// Root first: the heaviest callout, then down while one child is sure to hold most of it.
    private static func dominant(_ stacks: [Steps]) -> (path: [PathStep], members: [Steps]) {
        var path: [PathStep] = []
        guard var (step, members) = heaviestChild(of: stacks, at: 0) else { return ([], []) }
        let weight = members.reduce(0) { $0 + $1.weight }
        let needed = weight * requiredShare(of: members)
        while true {
            path.append(step)
            guard let child = heaviestChild(of: members, at: path.count),
                child.members.reduce(0, { $0 + $1.weight }) >= needed
            else { return (path, members) }
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
    /// The stack ends before what runs callouts or began the thread.
    var isCut: Bool

    init(from stack: WeightedFrames, _ isWanted: (ClassifiedFrame) -> Bool) {
        weight = max(stack.weight, 1)
        isCut = !stack.reachesBase
        // A closure is its function's code, whoever calls it: in the middle of a stack optimizers remove its frame, so
        // that it must not count there; where the stack ends, the function itself is at work again.
        var returnedTo: PathStep?
        for frame in stack.frames.callout.reversed() where isWanted(frame) {
            let step = PathStep(frame)
            if frame.isClosure, steps.contains(step) {
                returnedTo = step
            } else {
                append(step)
                returnedTo = nil
            }
        }
        if let returnedTo { append(returnedTo) }
    }

    /// A step that is already on the path leads back there: recursion and cycles are one round.
    private mutating func append(_ step: PathStep) {
        if let index = steps.firstIndex(of: step) {
            steps.removeSubrange((index + 1)...)
        } else {
            steps.append(step)
        }
    }

    /// Gives stacks that were cut the callers that whole stacks of the same stall show.
    static func aligned(_ stacks: [Steps]) -> [Steps] {
        let whole = stacks.filter { !$0.isCut }
        return stacks.map { stack in
            guard stack.isCut, let first = stack.steps.first,
                let callers = whole.lazy.compactMap({ $0.callers(of: first) }).first
            else { return stack }
            var stack = stack
            stack.steps = callers + stack.steps
            stack.isCut = false
            return stack
        }
    }

    private func callers(of step: PathStep) -> ArraySlice<PathStep>? {
        steps.firstIndex(of: step).map { steps[..<$0] }
    }
}

extension [ClassifiedFrame] {
    /// The frames of the innermost callout, innermost first: up to what runs callouts, then the functions that await
    /// this one. Those follow the physical stack, which ends in an executor.
    var callout: [ClassifiedFrame] {
        if let stop = firstIndex(where: \.isStop), !self[..<stop].contains(where: \.isLoop) {
            return Array(self[...stop])
        }
        return prefix { !$0.isLoop && $0.frame.kind != .asyncResume }
            + filter { $0.frame.kind == .asyncResume }
    }
}

extension WeightedFrames {
    /// What begins threads is not exported by libc: without its symbols, a place in libc at the very end.
    fileprivate var reachesBase: Bool {
        if frames.contains(where: { $0.frameClass == .base || $0.isStop }) { return true }
        guard let last = frames.last(where: { $0.frame.kind != .asyncResume })?.frame else {
            return false
        }
        return last.function == nil && last.imageName?.hasPrefix("libc.") == true
    }
}

extension ClassifiedFrame {
    fileprivate var isClosure: Bool { key.text != key.display }
}
