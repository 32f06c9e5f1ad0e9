// Finds the functions that account for a stall, from all of its samples: the callout that holds most of the time, and
// from there down as long as one function holds most of the remaining time.

internal import StallModel
internal import StallQuery

/// One function on the path, distinguished from others of its name. A class with a cached hash, because steps are
/// compared far more often than created.
final class PathStep: Hashable, Sendable {
    /// Shown and hashed.
    let title: String
    let owner: String
    let isNamed: Bool
    /// For a location without a name.
    let buildID: BuildID?
    private let hashValueOnce: Int

    init(_ frame: Frame, key: SymbolKey, owner: String) {
        isNamed = frame.function != nil || frame.rawName != nil
        let isMerged = key.role == .merged
        title =
            isMerged && isNamed && key != .unnamedMerged
            ? "\(mergedWords) like \(key.display)"
            : isMerged ? mergedWords : isNamed ? key.display : frame.title
        self.owner = owner
        buildID = isNamed || isMerged ? nil : frame.buildID
        var hasher = Hasher()
        hasher.combine(title)
        hasher.combine(owner)
        hasher.combine(buildID)
        hashValueOnce = hasher.finalize()
    }

    static func == (left: PathStep, right: PathStep) -> Bool {
        left === right
            || left.hashValueOnce == right.hashValueOnce && left.title == right.title
                && left.owner == right.owner && left.isNamed == right.isNamed
                && left.buildID == right.buildID
    }

    func hash(into hasher: inout Hasher) { hasher.combine(hashValueOnce) }
}

/// A stack prepared for grouping; computed once, because many stalls have the same stack.
final class ClassifiedStack: GroupedStack {
    /// Innermost first.
    let frames: [ClassifiedFrame]
    /// The functions that count, outermost first.
    fileprivate let steps: [PathStep]
    /// Truncated before the frame that runs callouts or starts the thread.
    fileprivate let isCut: Bool
    /// The kind of its wait, outside of app code; nil if running.
    let wait: WaitClass?

    init(_ frames: [ClassifiedFrame]) {
        self.frames = frames
        steps = Steps.path(frames, \.counts)
        isCut = !frames.reachBase
        let system = frames.prefix { !$0.counts && !$0.isLoop }
        let kept = frames.dropFirst(system.count).first
        wait = system.last { $0.wait != nil }?.wait ?? kept?.wait
    }
}

extension ClassifiedStack {
    /// Whether the function's innermost call enters merged code before any function with a known name.
    fileprivate func callsMerged(from step: PathStep) -> Bool {
        guard
            let index = frames.firstIndex(where: {
                $0.step == step && ($0.counts || $0.isEntryPoint)
            })
        else { return false }
        // The frame that jumped into merged code is named by the symbol, not its caller.
        return !frames[index].frame.isGuessed
            && frames[..<index].contains { $0.frameClass == .merged }
    }
}

struct WeightedFrames {
    var stack: ClassifiedStack
    var weight: Double

    var frames: [ClassifiedFrame] { stack.frames }
}

struct DominantPath {
    static let keyFrameCount = 3

    /// Outermost first.
    private let path: [PathStep]
    /// The accounting function first, then its callers: at most three.
    let keyFrames: [PathStep]
    /// The same, with all callers.
    var functions: [PathStep] { Self.functions(on: path, limit: .max) }
    let isWithoutAppFrame: Bool
    /// The accounting function mostly called a merged function, whose own name is unknown.
    private(set) var callsMerged = false
    /// Every stack on the path was truncated before the frame that runs callouts: callers are missing.
    let isCut: Bool

    init(_ stacks: [WeightedFrames]) {
        let stacks = stacks.filter { !$0.frames.isEmpty }
        let app = Steps.aligned(stacks.map(Steps.init))
        let appWeight = app.reduce(0) { $0 + ($1.steps.isEmpty ? 0 : $1.weight) }
        // A stack truncated before it reached the app is no evidence about the app.
        let total = app.reduce(0) { $0 + ($1.steps.isEmpty && $1.isCut ? 0 : $1.weight) }
        if appWeight > 0, appWeight >= total * 0.4 {
            let (path, members) = Self.dominant(app.filter { !$0.steps.isEmpty })
            self.path = path
            keyFrames = Self.functions(on: path, limit: Self.keyFrameCount)
            isCut = members.allSatisfy(\.isCut)
            isWithoutAppFrame = false
            callsMerged = Self.callMerged(stacks, from: keyFrames.first)
            return
        }
        // Code in `main` itself counts as main's, whatever it calls.
        let isInEntry = stacks.contains { $0.frames.callout.contains(where: \.isEntryPoint) }
        let merged = isInEntry ? [] : stacks.map { Steps(from: $0) { $0.frameClass == .merged } }
        if !merged.isEmpty,
            merged.reduce(0, { $0 + ($1.steps.isEmpty ? 0 : $1.weight) }) >= total * 0.4,
            case let (path, members) = Self.dominant(merged.filter { !$0.steps.isEmpty }),
            !path.isEmpty
        {
            self.path = path
            keyFrames = Self.functions(on: path, limit: Self.keyFrameCount)
            isCut = members.allSatisfy(\.isCut)
            isWithoutAppFrame = false
            return
        }
        // Mostly no app frames: use what the system did, or at least where.
        let classes: [(ClassifiedFrame) -> Bool] = [
            // An app may be installed where packages are.
            { $0.isScript && $0.frameClass == .system && $0.isOfPackage },
            { $0.isScript && $0.frameClass == .system },
            // Inlined functions are known only with a library's debug information, and the group is the same without.
            \.isEntryPoint, { $0.frameClass == .system && !$0.frame.isInlined },
            { $0.frameClass != .kernel && !$0.frame.isInlined }, { _ in true },
        ]
        let found = classes.lazy.map { isWanted in
            Self.dominant(stacks.map { Steps(from: $0, isWanted) }.filter { !$0.steps.isEmpty })
                .path
        }.first { !$0.isEmpty }
        path = found ?? []
        keyFrames = Self.functions(on: path, limit: Self.keyFrameCount)
        isCut = false
        isWithoutAppFrame = true
        if isInEntry { callsMerged = Self.callMerged(stacks, from: keyFrames.first) }
    }

    /// Whether a function mostly calls merged code.
    private static func callMerged(_ stacks: [WeightedFrames], from first: PathStep?) -> Bool {
        guard let first else { return false }
        let merged = stacks.reduce(0) {
            $0 + ($1.stack.callsMerged(from: first) ? $1.weight : 0)
        }
        return merged > stacks.reduce(0) { $0 + $1.weight } / 2
    }

    /// Innermost first, each function once, so that neither the depth of a recursion nor A B A B makes another group. A
    /// caller without a name is only a call site, of which its function may have many.
    private static func functions(on path: [PathStep], limit: Int) -> [PathStep] {
        var frames: [PathStep] = []
        for step in path.reversed() where !frames.contains(step) {
            if frames.count == limit || !frames.isEmpty && !step.isNamed { break }
            frames.append(step)
        }
        return frames
    }

    /// The function, of any image, that the accounting function was calling in most samples.
    func callee(in stacks: [WeightedFrames]) -> String? {
        guard let first = keyFrames.first else { return nil }
        var weights: [String: Double] = [:]
        for stack in stacks {
            guard let index = stack.frames.firstIndex(where: { $0.step == first }),
                let callee = stack.frames[..<index].last(where: { $0.key.role == .function })
            else { continue }
            weights[callee.key.display, default: 0] += stack.weight
        }
        return weights.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
    }

    /// Outermost first: the heaviest callout, then down while one child certainly holds most of it.
    private static func dominant(_ stacks: [Steps]) -> (path: [PathStep], members: [Steps]) {
        var path: [PathStep] = []
        guard var (step, members) = heaviestChild(of: stacks, at: 0) else { return ([], []) }
        let weight = members.reduce(0) { $0 + $1.weight }
        let needed = weight * requiredShare(of: members)
        while true {
            path.append(step)
            // Usually all samples take the same path.
            path += commonSteps(of: members, from: path.count)
            guard let child = heaviestChild(of: members, at: path.count),
                child.members.reduce(0, { $0 + $1.weight }) >= needed
            else { return (path, members) }
            (step, members) = child
        }
    }

    private static func commonSteps(of stacks: [Steps], from depth: Int) -> ArraySlice<PathStep> {
        guard let first = stacks.first else { return [] }
        let end = stacks.dropFirst().reduce(first.steps.count) { end, stack in
            first.commonEnd(with: stack, from: depth, to: end)
        }
        return first.steps[depth..<max(depth, end)]
    }

    private static func heaviestChild(
        of stacks: [Steps], at depth: Int
    ) -> (step: PathStep, members: [Steps])? {
        var weights: [PathStep: Double] = [:]
        for stack in stacks where stack.steps.count > depth {
            weights[stack.steps[depth], default: 0] += stack.weight
        }
        // Ties go to the one seen first, not to the dictionary's order.
        guard let most = weights.values.max(),
            let step = stacks.lazy.filter({ $0.steps.count > depth }).map({ $0.steps[depth] })
                .first(where: { weights[$0] == most })
        else { return nil }
        return (step, stacks.filter { $0.steps.count > depth && $0.steps[depth] == step })
    }

    /// The share of the time that a function must hold to account for the stall instead of its caller: 60 % with many
    /// samples, more with few, because a few may hit one helper by chance.
    private static func requiredShare(of stacks: [Steps]) -> Double {
        let sum = stacks.reduce(0) { $0 + $1.weight }
        let squares = stacks.reduce(0) { $0 + $1.weight * $1.weight }
        // The effective number of samples of equal weight.
        let count = squares > 0 ? sum * sum / squares : 1
        return min(1, 0.6 + 0.6 / count.squareRoot()) * (1 - 1e-9)
    }
}

/// A stack reduced to the functions that count, outermost first, recursion folded.
private struct Steps {
    var steps: [PathStep]
    var weight: Double
    /// The stack is truncated before the frame that runs callouts or starts the thread.
    var isCut: Bool

    /// Keyed by the functions that count.
    init(_ stack: WeightedFrames) {
        steps = stack.stack.steps
        weight = max(stack.weight, 1)
        isCut = stack.stack.isCut
    }

    init(from stack: WeightedFrames, _ isWanted: (ClassifiedFrame) -> Bool) {
        self.init(stack)
        steps = Self.path(stack.frames, isWanted)
    }

    static func path(
        _ frames: [ClassifiedFrame], _ isWanted: (ClassifiedFrame) -> Bool
    ) -> [PathStep] {
        // A closure is its function's code, whatever calls it. Optimizers remove its frame in the middle of a stack, so
        // it does not count there; at the end of the stack the function itself is running.
        var steps: [PathStep] = []
        var returnedTo: PathStep?
        for frame in frames.callout.reversed() where isWanted(frame) {
            let step = frame.step
            if frame.isClosure, steps.contains(step) {
                returnedTo = step
            } else {
                append(step, to: &steps)
                returnedTo = nil
            }
        }
        if let returnedTo { append(returnedTo, to: &steps) }
        return steps
    }

    /// A step already on the path leads back there: recursion and cycles are one round.
    private static func append(_ step: PathStep, to steps: inout [PathStep]) {
        if let index = steps.firstIndex(of: step) {
            steps.removeSubrange((index + 1)...)
        } else {
            steps.append(step)
        }
    }

    /// Adds to truncated stacks the callers that complete stacks of the same stall show.
    static func aligned(_ stacks: [Steps]) -> [Steps] {
        guard stacks.contains(where: \.isCut) else { return stacks }
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

    /// The length of the common prefix. Uses pointers: taking a step out of an array retains and releases it, which
    /// costs more than comparing.
    func commonEnd(with other: Steps, from depth: Int, to end: Int) -> Int {
        steps.withUnsafeBufferPointer { own in
            other.steps.withUnsafeBufferPointer { others in
                var depth = depth
                let end = min(end, own.count, others.count)
                while depth < end, own[depth] == others[depth] { depth += 1 }
                return depth
            }
        }
    }

    private func callers(of step: PathStep) -> ArraySlice<PathStep>? {
        steps.firstIndex(of: step).map { steps[..<$0] }
    }
}

extension [ClassifiedFrame] {
    /// The frames of the innermost callout, innermost first: up to the frame that runs callouts, then the async
    /// callers, which follow the physical stack that ends in an executor.
    var callout: [ClassifiedFrame] {
        if let stop = firstIndex(where: \.isStop), !self[..<stop].contains(where: \.isLoop) {
            return Array(self[...stop])
        }
        let physical = prefix { $0.frame.kind != .asyncResume }
        return Array(physical.prefix(innermostCalloutEnd) + self[physical.count...])
    }

    /// The end of the innermost callout. A waiting loop that was run within another loop's callout runs none itself:
    /// `Process.waitUntilExit()` does that, and its caller is what waits.
    private var innermostCalloutEnd: Int {
        let physical = prefix { $0.frame.kind != .asyncResume }
        guard let loop = physical.firstIndex(where: \.isLoop) else { return physical.count }
        guard physical[..<loop].isWaitOfLoop else { return loop }
        let outside = physical[loop...].drop { !$0.counts && $0.frameClass != .merged }
        guard let caller = outside.first, !caller.isEntryPoint else { return loop }
        return outside.firstIndex(where: \.isLoop) ?? physical.count
    }
}

extension ArraySlice<ClassifiedFrame> {
    /// A loop's own wait for events: no callout, and no app code.
    fileprivate var isWaitOfLoop: Bool {
        contains { $0.wait == .poll }
            && allSatisfy { frame in
                frame.wait == .poll || frame.frameClass == .base && !frame.key.text.isCallout
                    || frame.frameClass == .monitor
            }
    }
}

extension String {
    /// The functions through which CoreFoundation and Dispatch call callouts.
    fileprivate var isCallout: Bool {
        [
            "CALLING_OUT", "CALLBACK", "_callout", "DoTimer", "DoSource", "DoBlock", "DoObserver",
            "call_block",
        ]
        .contains { contains($0) }
    }
}

extension [ClassifiedFrame] {
    /// libc does not export its thread entry: without symbols, a location in libc at the very end.
    fileprivate var reachBase: Bool {
        if contains(where: { $0.frameClass == .base || $0.isStop }) { return true }
        guard let last = last(where: { $0.frame.kind != .asyncResume })?.frame else {
            return false
        }
        return last.function == nil && last.imageName?.hasPrefix("libc.") == true
    }
}

extension ClassifiedFrame {
    fileprivate var isClosure: Bool { key.text != key.display }
}
