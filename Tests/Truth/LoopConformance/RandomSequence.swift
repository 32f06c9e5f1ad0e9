// A random sequence of operations on a loop, as a value: it can be run on any loop, and shortened.
//
// Nothing in it depends on time, or on which of several ready descriptors the kernel returns first: a sequence has
// timers, or wake-ups from callouts, or descriptors, but not two of these. If the Linux CFRunLoop forgets that a source
// was handled (the last one of a pass was invalidated, or served by a nested run), EventRunLoop does not, so sources do
// neither.

internal import TestSupport

package struct RandomSequence: Sendable {
    enum Flavour: CaseIterable, Sendable { case timers, wakeUps, descriptors }

    /// What the script and the callbacks do. Items, blocks and modes are given by number.
    enum Action: Sendable {
        case add(item: Int, mode: Int)
        case remove(item: Int, mode: Int)
        case invalidate(item: Int)
        case signal(item: Int)
        case redate(item: Int, isLater: Bool)
        case write(item: Int)
        case perform(block: Int, modes: [Int])
        case addCommonMode(Int)
        case wakeUp
        case stop
        /// One iteration, without sleep.
        case poll(mode: Int, once: Bool)
        /// A run that sleeps, until what the flavour has for it stops it.
        case sleep(mode: Int, once: Bool)
        /// The same from another thread, which is waited for.
        indirect case elsewhere(Action)
    }

    struct ObserverShape: Sendable {
        var activities: UInt
        var repeats: Bool
        var order: Int
    }

    static let modes = ["default", "m", "c", "common"]
    static let sourceCount = 3
    static let observerCount = 3
    static let blockCount = 4

    var flavour: Flavour
    var observers: [ObserverShape]
    /// By timer: whether it is due from the start, and whether it repeats.
    var timers: [(isDue: Bool, repeats: Bool)]
    var script: [Action]
    /// By callback: what it does at its first, second ... call.
    var reactions: [String: [[Action]]]

    /// Items are numbered: sources, observers, then what the flavour adds.
    static let firstObserver = sourceCount
    static let firstExtra = sourceCount + observerCount
    static let extraCount = 3
}

// MARK: - Generation

extension RandomSequence {
    package init(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let flavour = Flavour.allCases.randomElement(using: &random)!
        self.flavour = flavour
        // Different orders: the real loop adds common items to a new common mode in the order of a hash table.
        observers = [-1, 0, 1].shuffled(using: &random).map { order in
            ObserverShape(
                activities: random.chance(3)
                    ? 0x0fff_ffff : UInt.random(in: 1...255, using: &random),
                repeats: !random.chance(4), order: order)
        }
        timers = (0..<Self.extraCount).map { _ in (random.chance(2), random.chance(2)) }
        script = (0..<Int.random(in: 4...14, using: &random)).map { _ in
            Self.action(flavour, in: .script, &random)
        }
        // A sequence that never runs shows nothing.
        script.append(.poll(mode: 0, once: random.chance(2)))
        reactions = [:]
        for name in Self.callbackNames where random.chance(2) {
            reactions[name] = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                (0..<Int.random(in: 0...2, using: &random)).map { _ in
                    Self.action(flavour, in: name.hasPrefix("s") ? .source : .callback, &random)
                }
            }
        }
    }

    private static let callbackNames =
        (0..<sourceCount).map { "s\($0)" } + (0..<observerCount).map { "o\($0)" }
        + (0..<extraCount).map { "x\($0)" } + (0..<blockCount).map { "b\($0)" }

    private enum Context { case script, source, callback }

    private static func action(
        _ flavour: Flavour, in context: Context, _ random: inout SeededGenerator
    ) -> Action {
        let extras = flavour == .wakeUps ? 0 : extraCount
        let item = Int.random(in: 0..<firstExtra + extras, using: &random)
        let mode = Int.random(in: 0..<modes.count, using: &random)
        let realMode = Int.random(in: 0..<3, using: &random)
        let once = random.chance(2)
        switch Int.random(in: 0..<(context == .script ? 20 : 15), using: &random) {
        case 0...2: return .add(item: item, mode: mode)
        case 3: return .remove(item: item, mode: mode)
        case 4:
            if context == .source && item < sourceCount { return .signal(item: item) }
            return .invalidate(item: item)
        case 5, 6: return .signal(item: Int.random(in: 0..<sourceCount, using: &random))
        case 7, 8:
            let several = [[0], [1], [3], [0, 1], [1, 2], [2, 3]].randomElement(using: &random)!
            return .perform(block: Int.random(in: 0..<blockCount, using: &random), modes: several)
        case 9: return .addCommonMode(realMode)
        case 10, 11:
            switch flavour {
            case .timers: return .redate(item: firstExtra + item % extraCount, isLater: once)
            case .wakeUps: return once ? .wakeUp : .stop
            case .descriptors: return .write(item: firstExtra + item % extraCount)
            }
        case 12:
            return context == .source
                ? .signal(item: item % sourceCount) : .poll(mode: realMode, once: once)
        case 13, 14: return .signal(item: item % sourceCount)
        case 15, 16, 17: return .poll(mode: realMode, once: once)
        case 18: return .sleep(mode: realMode, once: once)
        default:
            let inner = action(flavour, in: .source, &random)
            if case .write = inner { return inner }
            return .elsewhere(inner)
        }
    }
}

// MARK: - Shortening

extension RandomSequence {
    /// All sequences with one action less.
    func shorter() -> [RandomSequence] {
        var all: [RandomSequence] = []
        for index in script.indices {
            var copy = self
            copy.script.remove(at: index)
            all.append(copy)
        }
        for (name, calls) in reactions {
            for (call, actions) in calls.enumerated() {
                for index in actions.indices {
                    var copy = self
                    copy.reactions[name]![call].remove(at: index)
                    all.append(copy)
                }
            }
        }
        return all
    }
}

extension RandomSequence: CustomStringConvertible {
    package var description: String {
        let lines =
            ["flavour \(flavour)", "observers \(observers)", "timers \(timers)"]
            + script.map { "  \($0)" }
            + reactions.sorted { $0.key < $1.key }.filter { !$0.value.joined().isEmpty }
            .map { "  \($0.key): \($0.value)" }
        return lines.joined(separator: "\n")
    }
}

extension SeededGenerator {
    fileprivate mutating func chance(_ oneIn: Int) -> Bool {
        Int.random(in: 0..<oneIn, using: &self) == 0
    }
}
