// The bytes of messages in a stream: before each message its length, as four bytes, the most significant first.

/// Cuts a stream into messages. Holds what has arrived, never what a length only promises.
struct MessageFrames {
    static let headerSize = 4

    enum Next: Equatable {
        case message([UInt8])
        /// More bytes must arrive first.
        case incomplete
        /// A length above the limit. Nothing behind it can be read.
        case tooLong(Int)
    }

    private let longest: Int
    /// From `start` on, what was not handed out.
    private(set) var bytes: [UInt8] = []
    private var start = 0

    init(longest: Int) { self.longest = longest }

    /// Whether the stream may end here: no message has begun.
    var isBetweenMessages: Bool { start == bytes.count }

    /// Whether `next` would return something else than `incomplete`.
    var hasNext: Bool {
        guard let length else { return false }
        return length > longest || bytes.count - start - Self.headerSize >= length
    }

    /// The length of the message that comes next.
    private var length: Int? {
        guard bytes.count - start >= Self.headerSize else { return nil }
        return bytes[start..<start + Self.headerSize].reduce(0) { $0 << 8 | Int($1) }
    }

    mutating func append(_ new: UnsafeRawBufferPointer) {
        makeRoom(for: new.count)
        bytes.append(contentsOf: new)
    }

    /// The bytes that one reading may bring of the message behind the one that is arriving.
    private static let mostBehind = 64 << 10

    /// Twice the room, as an array takes by itself, but no more than the message that is arriving needs: it is handed out in
    /// this memory.
    private mutating func makeRoom(for count: Int) {
        let needed = bytes.count + count
        guard needed > bytes.capacity, let length, length <= longest else { return }
        let end = start + Self.headerSize + length + Self.mostBehind
        bytes.reserveCapacity(min(2 * needed, max(needed, end)))
    }

    /// Takes the next message out.
    mutating func next() -> Next {
        guard let length else { return .incomplete }
        guard length <= longest else { return .tooLong(length) }
        let first = start + Self.headerSize
        guard bytes.count - first >= length else {
            dropTaken(always: true)
            return .incomplete
        }
        // One that is most of what has arrived is not copied.
        if length > bytes.capacity / 2 { return .message(takeMemory(first..<first + length)) }
        let message = Array(bytes[first..<first + length])
        start = first + length
        dropTaken(always: false)
        return .message(message)
    }

    private mutating func takeMemory(_ place: Range<Int>) -> [UInt8] {
        var memory = Array(bytes[place.upperBound...])
        swap(&memory, &bytes)
        start = 0
        memory.removeLast(memory.count - place.upperBound)
        memory.removeFirst(place.lowerBound)
        return memory
    }

    /// Gives back the room of what was handed out: all at the end of what has arrived, else when it is most of it, so that
    /// each byte is moved a few times at most.
    private mutating func dropTaken(always: Bool) {
        if start == bytes.count {
            bytes = []
            start = 0
        } else if start > 0 && (always || start * 2 > bytes.count) {
            bytes.removeFirst(start)
            start = 0
        }
    }

    /// The header of a message of that length, which four bytes can hold.
    static func header(_ length: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) }
    }
}
