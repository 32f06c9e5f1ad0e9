// The classified frames of a store's stacks: each function is read and classified once, whatever stacks it is on.

internal import StallModel

/// Classifies the stacks that stalls of some programs show.
final class StackClassifier {
    private let functions: StackFunctions
    private var homes: FrameHomes
    /// By program and function. Where there is one program, functions are classified as they are read, and their texts
    /// are not held.
    private var classified: [BuildID?: [ClassifiedFrame?]] = [:]
    private var frames: [Frame] = []
    /// Functions that were inlined into a merged one.
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
    ///   - isPlain: Functions that were inlined into a merged one keep their own class.
    func frames(
        ofStack stack: Int32, executable: BuildID?, isPlain: Bool = false
    ) -> [ClassifiedFrame] {
        let numbers = functions[stack]
        var found = numbers.map { frame($0, executable) }
        guard !isPlain else { return found }
        for (index, number) in zip(found.indices, numbers).reversed().dropFirst()
        where found[index].frame.isInlined && found[index + 1].key.role == .merged {
            let key = Merged(function: number, executable: executable)
            let frame =
                merged[key]
                ?? ClassifiedFrame(
                    found[index].frame, executable: executable, isMerged: true, homes: &homes)
            merged[key] = frame
            found[index] = frame
        }
        return found
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
