// What timers would cost as records in one allocation instead of objects: docs/decisions/0012. Not part of the loop; it
// has the loop's heap and lock, and no modes, tolerances or intervals, which would only make it slower.

import Foundation

final class TimerSlab {
    /// Names a timer for as long as it waits; a later one in the same slot has another generation.
    struct Handle {
        var slot: UInt32
        var generation: UInt32
    }

    private struct Record {
        var handler: (() -> Void)?
        var generation: UInt32
        /// In the heap; of a free record the next free one.
        var position: UInt32
    }

    private struct Entry {
        var instant: UInt64
        var sequence: UInt32
        var slot: UInt32

        @inline(__always) static func < (left: Entry, right: Entry) -> Bool {
            left.instant != right.instant
                ? left.instant < right.instant
                : Int32(truncatingIfNeeded: left.sequence &- right.sequence) < 0
        }
    }

    private let records: UnsafeMutablePointer<Record>
    /// Aligned so that the four children of an entry share a cache line.
    private let entries: UnsafeMutablePointer<Entry>
    private var recordCount: UInt32 = 0
    private var firstFree = UInt32.max
    private(set) var count: UInt32 = 0
    private var sequence: UInt32 = 0
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let isLocked: Bool

    init(capacity: Int, isLocked: Bool) {
        self.isLocked = isLocked
        records = .allocate(capacity: capacity)
        entries =
            UnsafeMutableRawPointer.allocate(
                byteCount: (capacity + 3) * MemoryLayout<Entry>.stride, alignment: 64
            ).bindMemory(to: Entry.self, capacity: capacity + 3) + 3
        mutex = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        records.deinitialize(count: Int(recordCount))
        records.deallocate()
        (entries - 3).deallocate()
        mutex.deallocate()
    }

    @inline(__always) private func withLock<Result>(_ body: () -> Result) -> Result {
        if isLocked { pthread_mutex_lock(mutex) }
        defer { if isLocked { pthread_mutex_unlock(mutex) } }
        return body()
    }

    func insert(at instant: UInt64, _ handler: @escaping () -> Void) -> Handle {
        withLock {
            var slot = firstFree
            if slot != .max {
                firstFree = records[Int(slot)].position
                records[Int(slot)].handler = handler
            } else {
                slot = recordCount
                recordCount += 1
                (records + Int(slot)).initialize(
                    to: Record(handler: handler, generation: 0, position: 0))
            }
            count += 1
            siftUp(newEntry(slot, instant), from: count - 1)
            return Handle(slot: slot, generation: records[Int(slot)].generation)
        }
    }

    func cancel(_ handle: Handle) -> Bool {
        let handler: (() -> Void)? = withLock {
            guard records[Int(handle.slot)].generation == handle.generation else { return nil }
            return take(handle.slot)
        }
        return handler != nil
    }

    func move(_ handle: Handle, to instant: UInt64) -> Bool {
        withLock {
            let record = records + Int(handle.slot)
            guard record.pointee.generation == handle.generation else { return false }
            place(newEntry(handle.slot, instant), from: record.pointee.position)
            return true
        }
    }

    /// Calls the handlers of all that are due, in order.
    func fire(upTo instant: UInt64) {
        while let handler = withLock({
            count > 0 && entries[0].instant <= instant ? take(entries[0].slot) : nil
        }) {
            handler()
        }
    }

    /// Frees a record. The handler may hold the last reference to anything, so it is dropped without the lock.
    @inline(__always) private func take(_ slot: UInt32) -> (() -> Void)? {
        let record = records + Int(slot)
        let handler = record.pointee.handler.take()
        let position = record.pointee.position
        record.pointee.generation &+= 1
        record.pointee.position = firstFree
        firstFree = slot
        count -= 1
        if position != count { place(entries[Int(count)], from: position) }
        return handler
    }

    @inline(__always) private func newEntry(_ slot: UInt32, _ instant: UInt64) -> Entry {
        defer { sequence &+= 1 }
        return Entry(instant: instant, sequence: sequence, slot: slot)
    }

    private func place(_ entry: Entry, from position: UInt32) {
        if position > 0 && entry < entries[Int((position - 1) / 4)] {
            siftUp(entry, from: position)
        } else {
            siftDown(entry, from: position)
        }
    }

    private func siftUp(_ entry: Entry, from start: UInt32) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 4
            guard entry < entries[Int(parent)] else { break }
            store(entries[Int(parent)], at: position)
            position = parent
        }
        store(entry, at: position)
    }

    private func siftDown(_ entry: Entry, from start: UInt32) {
        var position = start
        while true {
            let child = 4 * position + 1
            guard child < count else { break }
            var least = child
            for other in child + 1..<max(child + 1, min(child + 4, count))
            where entries[Int(other)] < entries[Int(least)] { least = other }
            guard entries[Int(least)] < entry else { break }
            store(entries[Int(least)], at: position)
            position = least
        }
        store(entry, at: position)
    }

    @inline(__always) private func store(_ entry: Entry, at position: UInt32) {
        entries[Int(position)] = entry
        records[Int(entry.slot)].position = position
    }
}
