// The source of every export for a viewer: one stall at a time, with its stacks as numbers, so that a frame is rendered
// once however many stalls show it.

package import StallModel
package import StallQuery

/// A stall on its way into a file for a viewer.
package struct ViewerStall {
    package var trace: StallTrace
    /// The name of its group, for people.
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
struct ViewerFrames {
    private(set) var frames: [Frame] = []
    /// Where to look for a frame of this hash first: its number and one, 0 where none is; a power of two of them, at least
    /// half of them free. A dictionary would hold each frame twice.
    private var slots = [Int32](repeating: 0, count: 1024)
    /// The stacks read last: where each is in `listed`, one after another; all are forgotten when there are many.
    private var stacks: [Int64: Range<Int32>] = [:]
    private var listed: [Int32] = []
    private static let listCapacity = 2_000_000

    /// The frame that stands for a stall of which there is no stack.
    static let noStack: Frame = {
        var frame = Frame(
            CodeLocation(imagePath: nil, buildID: nil, offset: 0, kind: .interrupted))
        frame.function = "[no stack]"
        return frame
    }()

    mutating func number(of frame: Frame) -> Int32 {
        if 2 * (frames.count + 1) > slots.count { widen() }
        let slot = slot(of: frame)
        if slots[slot] > 0 { return slots[slot] - 1 }
        frames.append(frame)
        slots[slot] = Int32(frames.count)
        return Int32(frames.count - 1)
    }

    /// Where the frame's number is, or belongs.
    private func slot(of frame: Frame) -> Int {
        var slot = frame.hashValue & (slots.count - 1)
        while slots[slot] > 0, frames[Int(slots[slot] - 1)] != frame {
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    private mutating func widen() {
        slots = [Int32](repeating: 0, count: 2 * slots.count)
        for (index, frame) in frames.enumerated() {
            let slot = slot(of: frame)
            slots[slot] = Int32(index + 1)
        }
    }

    /// The frames of a stack, innermost first; never none.
    mutating func numbers(of stack: Int64, in stall: ViewerStall) throws -> [Int32] {
        if let known = stacks[stack] {
            return Array(listed[Int(known.lowerBound)..<Int(known.upperBound)])
        }
        let list = try read(stack, in: stall)
        if listed.count + list.count + 16 * stacks.count > Self.listCapacity {
            stacks.removeAll(keepingCapacity: true)
            listed.removeAll(keepingCapacity: true)
        }
        // A stack of millions of frames is none.
        guard list.count <= Self.listCapacity else { return list }
        stacks[stack] = Int32(listed.count)..<Int32(listed.count + list.count)
        listed += list
        return list
    }
    /// The frames of a stack, for a writer that keeps what it makes of them.
    mutating func read(_ stack: Int64, in stall: ViewerStall) throws -> [Int32] {
        let list = try stall.frames(stack).map { number(of: $0) }
        return list.isEmpty ? [number(of: Self.noStack)] : list
    }
}
