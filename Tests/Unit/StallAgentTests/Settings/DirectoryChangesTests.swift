import Glibc
import TestSupport
import Testing

@testable import StallAgent

/// Goal: what inotify says is followed, and bytes that are not inotify's do no harm: a length is checked before it is used.
/// Method: bytes as the kernel writes them, and others; the random ones come from fixed seeds.
@Suite struct DirectoryChangesTests {
    static func event(
        _ name: String, length: UInt32? = nil, mask: UInt32 = UInt32(IN_CLOSE_WRITE)
    ) -> [UInt8] {
        var text = Array(name.utf8)
        if !text.isEmpty {
            repeat { text.append(0) } while text.count % 16 != 0
        }
        let header: [UInt32] = [1, mask, 0, length ?? UInt32(text.count)]
        return header.flatMap { number in
            (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        }
            + text
    }

    @Test func `the names of all events of a read are found`() {
        let bytes = Self.event("a.json") + Self.event("") + Self.event("a name of 20 letters")
        let changes = DirectoryChanges(bytes[...])
        #expect(changes?.names == ["a.json", "a name of 20 letters"])
        #expect(changes?.mayConcern("a.json") == true)
        #expect(changes?.mayConcern("b.json") == false)
    }

    @Test func `where events were lost, every file may have changed`() {
        let bytes = Self.event("", mask: UInt32(IN_Q_OVERFLOW))
        #expect(DirectoryChanges(bytes[...])?.mayConcern("a.json") == true)
    }

    /// The last is what a read of an eventfd gives that the app has opened under the descriptor's number.
    @Test(
        arguments: [
            event("a.json", length: 17), event("a.json", length: .max),
            event("a.json", length: 1 << 31),
            event("a.json", length: 15), Array(event("a.json").dropLast()),
            Array(event("a.json").prefix(15)),
            Array(repeating: 0xff, count: 4096), [1, 0, 0, 0, 0, 0, 0, 0],
        ])
    func `bytes that are not whole events are refused`(bytes: [UInt8]) {
        #expect(DirectoryChanges(bytes[...]) == nil)
    }

    /// A slice's indexes begin where the slice does.
    @Test func `a read is a part of its buffer`() {
        let bytes = [9, 9, 9] + Self.event("a.json") + [9]
        #expect(DirectoryChanges(bytes[3..<35])?.names == ["a.json"])
    }

    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `no bytes do harm`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes = Self.event("settings.json") + Self.event("") + Self.event("another")
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(
                in: 0...255, using: &random)
        }
        bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
        guard let changes = DirectoryChanges(bytes[...]) else { return }
        #expect(changes.names.allSatisfy { $0.utf8.count <= 3 * bytes.count })
    }
}
