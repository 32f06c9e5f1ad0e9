// The classified frames of a store's stacks: each function is read and classified once, whatever stacks it is on.

internal import StallModel
internal import StallQuery

/// Classifies the stacks that stalls of some programs show.
final class StackClassifier {
    private let functions: StackFunctions
    private var homes: FrameHomes
    /// By program and function. Where there is one program, functions are classified as they are read, and their texts
    /// are not held.
    private var classified: [BuildID?: [ClassifiedFrame?]] = [:]
    private var frames: [Frame] = []
    /// Functions that were inlined into a merged one, and those without a symbol that call one.
    private var merged: [Merged: ClassifiedFrame] = [:]

    private struct Merged: Hashable {
        var function: Int32
        var executable: BuildID?
    }

    init(
        _ store: any QueryableStore, stacks: [Int64], executables: [BuildID?], rules: GroupingRules
    ) throws {
        var homes = FrameHomes(rules: rules)
        let only = executables.count == 1 ? executables : []
        var known: [ClassifiedFrame?] = []
        var frames: [Frame] = []
        functions = try store.functions(ofStacks: stacks) { frame in
            guard let executable = only.first else {
                frames.append(frame)
                return Int32(frames.count - 1)
            }
            known.append(
                ClassifiedFrame(
                    frame, executable: executable, isLean: !frame.isInlined, homes: &homes))
            return Int32(known.count - 1)
        }
        self.homes = homes
        self.frames = frames
        if let executable = only.first { classified[executable] = known }
    }

    var pathCount: Int { functions.pathCount }

    /// Stacks of one number have the same frames.
    func path(ofStack stack: Int32) -> Int32 { functions.path(ofStack: stack) }

    /// - Parameters:
    ///   - stack: Index into the stacks that this was made for.
    ///   - isPlain: Functions that were inlined into a merged one, or call one, keep their own class.
    func frames(
        ofStack stack: Int32, executable: BuildID?, isPlain: Bool = false
    ) -> [ClassifiedFrame] {
        let numbers = functions[stack]
        var found = numbers.map { frame($0, executable) }
        guard !isPlain else { return found }
        // Most stacks have no merged function.
        guard found.contains(where: { $0.key.role == .merged }) else { return found }
        let callMerged = found.map(\.frame).callMerged { found[$0].key.role == .merged }
        for (index, number) in zip(found.indices, numbers) where callMerged[index] {
            found[index] = mergedFrame(found[index].frame, number, executable)
        }
        for (index, number) in zip(found.indices, numbers).reversed().dropFirst()
        where found[index].frame.isInlined && found[index + 1].key.role == .merged {
            found[index] = mergedFrame(found[index].frame, number, executable)
        }
        return found
    }

    private func mergedFrame(
        _ frame: Frame, _ number: Int32, _ executable: BuildID?
    ) -> ClassifiedFrame {
        let key = Merged(function: number, executable: executable)
        if let known = merged[key] { return known }
        let frame = ClassifiedFrame(
            frame, executable: executable, isMerged: true, homes: &homes)
        merged[key] = frame
        return frame
    }

    private func frame(_ number: Int32, _ executable: BuildID?) -> ClassifiedFrame {
        if let known = classified[executable]?[Int(number)] { return known }
        let frame = ClassifiedFrame(
            frames[Int(number)], executable: executable, homes: &homes)
        classified[executable, default: Array(repeating: nil, count: frames.count)][Int(number)] =
            frame
        return frame
    }
}
