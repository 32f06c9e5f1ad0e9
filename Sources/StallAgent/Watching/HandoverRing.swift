// Hands the watchdog's records to the recorder as plain memory. The watchdog neither allocates, frees, locks nor waits:
// without room a record is left out, and the watchdog learns that.
//
//     watchdog: begin, append ..., commit  ->  records in one block of memory  ->  recorder: next ... release

internal import Glibc
internal import Synchronization

/// The kind of a record. The value after the header has the type of the same name in HandoverRecords.swift.
enum RecordKind: UInt8 {
    /// Padding up to the end of the memory.
    case gap
    case sample, late, observation, owner, suspect
    case thread, round, incident, measure, discard, unwatched, openWork
}

/// A ring of records between one writer thread and one reader thread.
final class HandoverRing: @unchecked Sendable {
    // Unchecked because the compiler does not see the ownership: `draft` and `fits` are the writer's, a record belongs
    // to the writer until it is committed and to the reader until it is released.
    private struct Header {
        /// Length of header, value and tails, rounded up to lines.
        var length: UInt32
        var valueLength: UInt32
        var firstTail: UInt32
        var secondTail: UInt32
        var sender: UInt
        var kind: RecordKind
    }

    /// One record, valid until it is released.
    struct Record {
        let kind: RecordKind
        /// The writer: the address of a `TargetMonitor`.
        let sender: UInt
        let value: UnsafeRawPointer
        let tails: (UnsafeRawBufferPointer, UnsafeRawBufferPointer)
    }

    private static let line = 32
    private let capacity: Int
    private let memory: UnsafeMutableRawPointer
    /// Total bytes since the start; the remainder by `capacity` is the position in memory.
    private let written = Atomic<Int>(0)
    private let read = Atomic<Int>(0)
    private let dropped = Atomic<Int>(0)
    private let unannounced = Atomic<UInt>(0)
    private var draft = 0
    private var fits = true
    private var reserve = 0

    /// Nil without memory. Only used pages are ever touched.
    init?(capacity: Int = 1 << 20) {
        let memory = mmap(
            nil, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
            0)
        guard let memory, memory != MAP_FAILED else { return nil }
        self.memory = memory
        self.capacity = capacity
    }

    deinit { munmap(memory, capacity) }

    // MARK: The writer's side

    /// Begins a group of records that is committed as a whole or not at all.
    ///
    /// - Parameter reserve: How much room to leave for more important records.
    func begin(reserve: Int = 0) {
        draft = written.load(ordering: .relaxed)
        fits = true
        self.reserve = reserve
        // The ring is empty: reuse the beginning, so that half of the memory is rarely touched. The skipped part counts
        // as occupied until the reader has passed it, so there must be as much again.
        let place = draft % capacity
        if place > capacity / 2, draft == read.load(ordering: .acquiring) { addGap() }
    }

    /// Appends a record to the group: a value that is plain memory, and two tails.
    func append<Value>(
        _ kind: RecordKind, _ value: Value, from sender: UInt,
        _ first: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        _ second: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) {
        let valueLength = Self.rounded(MemoryLayout<Value>.size)
        let firstLength = Self.rounded(first.count)
        let length =
            Self.rounded(MemoryLayout<Header>.size) + valueLength + firstLength
            + Self.rounded(second.count)
        if draft % capacity + length > capacity { addGap() }
        guard hasRoom(length + reserve) else { return }
        let start = memory + draft % capacity
        start.initializeMemory(
            as: Header.self,
            to: Header(
                length: UInt32(length), valueLength: UInt32(valueLength),
                firstTail: UInt32(first.count), secondTail: UInt32(second.count), sender: sender,
                kind: kind))
        let body = start + Self.rounded(MemoryLayout<Header>.size)
        body.initializeMemory(as: Value.self, to: value)
        if let from = first.baseAddress { memcpy(body + valueLength, from, first.count) }
        if let from = second.baseAddress {
            memcpy(body + valueLength + firstLength, from, second.count)
        }
        draft += length
    }

    /// Publishes the group; false if it did not fit.
    func commit() -> Bool {
        guard fits else { return false }
        written.store(draft, ordering: .sequentiallyConsistent)
        return true
    }

    /// The occupied share of the memory, in percent.
    var load: Int {
        (written.load(ordering: .relaxed) - read.load(ordering: .relaxed)) * 100 / capacity
    }

    /// Counts a stall that could not be handed over.
    func countDropped() { dropped.wrappingAdd(1, ordering: .relaxed) }

    /// Adds a sender whose last record did not fit to a list, for which it has room.
    func addUnannounced(_ sender: UInt, setNext: (UInt) -> Void) {
        var first = unannounced.load(ordering: .relaxed)
        while true {
            setNext(first)
            let (isDone, now) = unannounced.compareExchange(
                expected: first, desired: sender, ordering: .releasing)
            if isDone { return }
            first = now
        }
    }

    private func addGap() {
        let length = capacity - draft % capacity
        guard hasRoom(length) else { return }
        (memory + draft % capacity).initializeMemory(
            as: Header.self,
            to: Header(
                length: UInt32(length), valueLength: 0, firstTail: 0, secondTail: 0, sender: 0,
                kind: .gap))
        draft += length
    }

    private func hasRoom(_ length: Int) -> Bool {
        fits = fits && draft + length - read.load(ordering: .acquiring) <= capacity
        return fits
    }

    private static func rounded(_ length: Int) -> Int { (length + line - 1) & ~(line - 1) }

    // MARK: The reader's side

    /// The oldest record that was not released; nil if there is none.
    func next() -> Record? {
        while true {
            let at = read.load(ordering: .relaxed)
            guard at < written.load(ordering: .acquiring) else { return nil }
            let start = UnsafeRawPointer(memory + at % capacity)
            let header = start.load(as: Header.self)
            guard header.kind != .gap else {
                release()
                continue
            }
            let value = start + Self.rounded(MemoryLayout<Header>.size)
            let first = value + Int(header.valueLength)
            return Record(
                kind: header.kind, sender: header.sender, value: value,
                tails: (
                    UnsafeRawBufferPointer(start: first, count: Int(header.firstTail)),
                    UnsafeRawBufferPointer(
                        start: first + Self.rounded(Int(header.firstTail)),
                        count: Int(header.secondTail))
                ))
        }
    }

    /// Whether nothing waits to be read.
    var isEmpty: Bool {
        read.load(ordering: .relaxed) == written.load(ordering: .sequentiallyConsistent)
    }

    /// Releases the memory of the oldest record.
    func release() {
        let at = read.load(ordering: .relaxed)
        let header = UnsafeRawPointer(memory + at % capacity).load(as: Header.self)
        read.store(at + Int(header.length), ordering: .releasing)
    }

    /// The first sender of the list of `addUnannounced`, which is empty from now on; 0 for none. Whatever they wrote
    /// before is in the ring.
    func takeUnannounced() -> UInt { unannounced.exchange(0, ordering: .acquiring) }

    /// The number of stalls since the last call that could not be handed over.
    func takeDropped() -> Int { dropped.exchange(0, ordering: .relaxed) }
}
