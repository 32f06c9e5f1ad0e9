import CLinux
import Dispatch
import Glibc
import StallModel
import Testing

@testable import StallAgent

/// Goal: what is read from Dispatch's queues agrees with their documentation.
/// Method: real queues in known states; nothing here depends on time.
@Suite struct QueueLookTests {
    init() { stall_queue_prepare() }

    func poll(_ queue: DispatchQueue) -> stall_queue_snapshot {
        withExtendedLifetime(queue) { stall_queue_read(queue.dispatchObject!) }
    }
    func drainer(_ queue: DispatchQueue) -> Int32 {
        withExtendedLifetime(queue) { stall_queue_find_drainer(queue.dispatchObject!) }
    }

    @Test func `a queue shows the thread that runs its items`() {
        let queue = DispatchQueue(label: "test")
        #expect(poll(queue).is_known && poll(queue).is_empty && poll(queue).drainer == 0)
        queue.sync { #expect(poll(queue).drainer == stall_gettid()) }
        let worker = DispatchSemaphore(value: 0)
        queue.async {
            #expect(poll(queue).drainer == stall_gettid())
            worker.signal()
        }
        worker.wait()
        queue.sync {}
        #expect(poll(queue).drainer == 0)
    }

    @Test func `the queue that targets another finds its thread there`() {
        let target = DispatchQueue(label: "target")
        let queue = DispatchQueue(label: "test", target: target)
        #expect(drainer(queue) == 0)
        target.sync { #expect(drainer(queue) == stall_gettid() && poll(queue).drainer == 0) }
        let onGlobal = DispatchQueue(label: "test", target: .global())
        #expect(drainer(onGlobal) == 0 && drainer(.global()) == 0)
    }

    @Test func `waiting items are seen, and which of them is first`() {
        let queue = DispatchQueue(label: "test")
        queue.suspend()
        #expect(poll(queue).is_suspended && poll(queue).is_empty)
        queue.async {}
        let first = poll(queue)
        #expect(!first.is_empty && first.head != 0)
        queue.async {}
        #expect(poll(queue).head == first.head)
        queue.resume()
        queue.sync { #expect(poll(queue).head == 0 && poll(queue).is_empty) }
        #expect(!poll(queue).is_suspended)
    }

    @Test func `a queue that was never activated counts as suspended, whatever its kind`() {
        let kinds: [DispatchQueue.Attributes] = [
            .initiallyInactive, [.initiallyInactive, .concurrent],
        ]
        for kind in kinds {
            let queue = DispatchQueue(label: "test", attributes: kind)
            #expect(poll(queue).is_suspended)
            queue.activate()
            #expect(!poll(queue).is_suspended)
        }
        #expect(!poll(.main).is_suspended && !poll(.global()).is_suspended)
    }

    @Test func `of a concurrent queue only barriers have a thread`() {
        let queue = DispatchQueue(label: "test", attributes: .concurrent)
        queue.sync { #expect(poll(queue).drainer == 0) }
        queue.sync(flags: .barrier) { #expect(poll(queue).drainer == stall_gettid()) }
    }

    @Test func `Swift's pool is a queue that tasks can name`() async {
        let queue = await Task.detached { UInt(bitPattern: stall_current_queue()) }.value
        let again = await Task.detached { UInt(bitPattern: stall_current_queue()) }.value
        #expect(queue != 0 && queue == again)
    }
}

/// Goal: marks never mislead, however they are misused.
@Suite struct MarkTests {
    @Test func `the outermost pair counts, and ends without a begin are ignored`() {
        let beacon = SharedBeacon()!
        var mark = stall_mark(beacon: beacon.pointer, thread: stall_this_thread(), depth: 0)
        func status() -> Int32 { Int32(stall_beacon_word(beacon.pointer) >> 56) }
        stall_mark_end(&mark)
        #expect(status() == STALL_LOOP_IDLE)
        stall_mark_begin(&mark)
        let word = stall_beacon_word(beacon.pointer)
        #expect(status() == STALL_LOOP_BUSY)
        stall_mark_begin(&mark)
        stall_mark_end(&mark)
        #expect(stall_beacon_word(beacon.pointer) == word, "nested work is the outer's")
        stall_mark_end(&mark)
        #expect(status() == STALL_LOOP_WAITING)
        stall_mark_end(&mark)
        stall_mark_begin(&mark)
        #expect(status() == STALL_LOOP_BUSY)
    }

    @Test func `marks of another thread are ignored`() {
        let beacon = SharedBeacon()!
        var mark = stall_mark(beacon: beacon.pointer, thread: stall_this_thread() &+ 8, depth: 0)
        stall_mark_begin(&mark)
        #expect(mark.depth == 0 && stall_beacon_word(beacon.pointer) == 0)
    }
}
