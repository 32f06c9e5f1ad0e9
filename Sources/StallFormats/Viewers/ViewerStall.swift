// What every export for a viewer is written from: one stall at a time, with its stacks as numbers, so that a frame is rendered
// once however many stalls show it.

package import StallModel

/// A stall on its way into a file for a viewer.
package struct ViewerStall {
    package var trace: StallTrace
    /// What people call its group.
    package var title: String
    /// The frames of a stack, innermost first.
    package var frames: (Int64) throws -> [Frame]

    package init(
        _ trace: StallTrace, title: String, frames: @escaping (Int64) throws -> [Frame]
    ) {
        self.trace = trace
        self.title = title
        self.frames = frames
    }
}

/// Writes stalls into a format that a viewer opens. Nothing of a stall is kept once it is added.
package protocol ViewerWriter {
    /// In which order it wants them.
    static var order: CursorOrder { get }
    mutating func add(_ stall: ViewerStall) throws
    /// Writes what comes at the end.
    mutating func finish() throws
}

/// Where the bytes go.
package typealias ByteSink = ([UInt8]) throws -> Void

/// Different frames by numbers, in the order of their appearance; and the stacks read last as lists of them.
struct FrameNumbers {
    private(set) var frames: [Frame] = []
    private var numbers: [Frame: Int32] = [:]
    private var stacks: [Int64: [Int32]] = [:]
    private static let stackCapacity = 50_000

    /// What stands for a stall of which there is no stack.
    static let noStack: Frame = {
        var frame = Frame(
            CodeLocation(imagePath: nil, buildID: nil, offset: 0, kind: .interrupted))
        frame.function = "[no stack]"
        return frame
    }()

    mutating func number(of frame: Frame) -> Int32 {
        if let number = numbers[frame] { return number }
        let number = Int32(frames.count)
        numbers[frame] = number
        frames.append(frame)
        return number
    }

    /// The frames of a stack, innermost first; never none.
    mutating func numbers(of stack: Int64, in stall: ViewerStall) throws -> [Int32] {
        if let known = stacks[stack] { return known }
        var list = try stall.frames(stack).map { number(of: $0) }
        if list.isEmpty { list = [number(of: Self.noStack)] }
        if stacks.count == Self.stackCapacity { stacks.removeAll(keepingCapacity: true) }
        stacks[stack] = list
        return list
    }
}
