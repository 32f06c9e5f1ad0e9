import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: a stream is cut into the messages that made it, however it arrives, and holds no more than it must.
/// Method: random messages, split at random; seeds are printed with a failure.
@Suite struct MessageFramesTests {
    private static func frames(of messages: [[UInt8]]) -> [UInt8] {
        messages.flatMap { MessageFrames.header($0.count) + $0 }
    }

    /// All messages that are whole.
    private static func take(_ frames: inout MessageFrames) -> [[UInt8]] {
        var taken: [[UInt8]] = []
        while case .message(let message) = frames.next() { taken.append(message) }
        return taken
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func `random splits of a stream give the messages that made it`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let messages = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
            let size = [0, 1, 3, 4, 5, 200, 3_000].randomElement(using: &random)!
            return (0..<Int.random(in: 0...size, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
        }
        var rest = Self.frames(of: messages)[...]
        var frames = MessageFrames(longest: 3_000)
        var taken: [[UInt8]] = []
        while !rest.isEmpty {
            let most = [1, 5, 1_000, 10_000].randomElement(using: &random)!
            let part = rest.prefix(Int.random(in: 1...most, using: &random))
            part.withUnsafeBytes { frames.append($0) }
            rest = rest.dropFirst(part.count)
            if Bool.random(using: &random) {
                let hasNext = frames.hasNext
                let before = taken.count
                taken += Self.take(&frames)
                #expect(hasNext == (taken.count > before))
            }
        }
        taken += Self.take(&frames)
        #expect(taken == messages)
        #expect(frames.isBetweenMessages)
        #expect(frames.next() == .incomplete)
    }

    /// Whatever comes, what is handed out is never longer than the limit, and what was cut is what the bytes say.
    @Test(arguments: 0..<300 as Range<UInt64>)
    func `random bytes end in a message that is too long, or incomplete`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let bytes = (0..<Int.random(in: 0..<3_000, using: &random)).map { _ in
            Bool.random(using: &random) ? 0 : UInt8.random(in: 0...9, using: &random)
        }
        var frames = MessageFrames(longest: 600)
        bytes.withUnsafeBytes { frames.append($0) }
        var offset = 0
        while case .message(let message) = frames.next() {
            #expect(message.count <= 600)
            #expect(message == Array(bytes[offset + 4..<offset + 4 + message.count]))
            offset += 4 + message.count
        }
        let header = bytes[offset...].prefix(4)
        let length = header.reduce(0) { $0 << 8 | Int($1) }
        if header.count == 4 && length > 600 {
            #expect(frames.next() == .tooLong(length))
        } else {
            #expect(frames.next() == .incomplete)
            #expect(bytes.count - offset < 4 + length || header.count < 4)
        }
    }

    /// The memory in which it has arrived is handed out, and had no more room than it needs.
    @Test func `a long message is not copied, and what comes behind it is kept`() {
        let message = (0..<2_500_000).map { UInt8(truncatingIfNeeded: $0) }
        var rest = Self.frames(of: [message, [7, 8]])[...]
        var frames = MessageFrames(longest: 2_500_000)
        var most = 0
        while !rest.isEmpty {
            let part = rest.prefix(65_536)
            rest = rest.dropFirst(part.count)
            part.withUnsafeBytes { frames.append($0) }
            most = max(most, frames.bytes.capacity)
        }
        #expect(most <= 2_500_000 + 100_000)
        let arrived = frames.bytes.withUnsafeBytes { $0.baseAddress }
        guard case .message(let first) = frames.next() else {
            Issue.record("no message")
            return
        }
        #expect(first.withUnsafeBytes { $0.baseAddress } == arrived)
        #expect(first == message)
        #expect(frames.next() == .message([7, 8]))
        #expect(frames.isBetweenMessages && frames.bytes.capacity == 0)
    }

    /// An app that keeps its messages keeps no more than them.
    @Test func `a short message does not keep the memory of what came with it`() {
        var frames = MessageFrames(longest: 60_000)
        let many = Self.frames(of: (0..<100).map { _ in [UInt8](repeating: 1, count: 500) })
        many.withUnsafeBytes { frames.append($0) }
        for message in Self.take(&frames) { #expect(message.capacity < 1_100) }
    }

    @Test func `the largest length is refused, not added to`() {
        var frames = MessageFrames(longest: 10)
        [UInt8](repeating: 255, count: 4).withUnsafeBytes { frames.append($0) }
        #expect(frames.next() == .tooLong(4_294_967_295))
        #expect(frames.hasNext)
        #expect(MessageFrames.header(4_294_967_295) == [255, 255, 255, 255])
        #expect(MessageFrames.header(258) == [0, 0, 1, 2])
    }
}
