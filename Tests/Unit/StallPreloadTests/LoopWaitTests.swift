import CLinux
import CStallPreload
import Foundation
import Glibc
import Testing

/// Goal: of the waits of a thread that was not declared a loop, those of its loop are found, and no rest is taken for
/// work.
/// Method: calls as the interposed functions note them, of real descriptors; nothing waits.
@Suite struct LoopWaitTests {
    /// A thread, the descriptors that it opened, and the places in its stack that it waits from.
    final class Thread {
        var waits = thread_waits()
        private var opened: [Int32] = []

        deinit { for file in opened { close(file) } }

        func opens(_ file: Int32) -> Int32 {
            opened.append(file)
            return file
        }

        func event() -> Int32 { opens(eventfd(0, 0)) }
        func set() -> Int32 { opens(epoll_create1(0)) }
        func pair() -> Int32 {
            var pair: [Int32] = [0, 0]
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair)
            _ = opens(pair[1])
            return opens(pair[0])
        }

        func closes(_ file: Int32) {
            opened.removeAll { $0 == file }
            close(file)
        }

        /// Whether the loop rests in a poll of these descriptors.
        func poll(_ files: Int32..., at frame: UInt = 0x7FFF_0000, caller: UInt64 = 1) -> Bool {
            let polled = files.map { pollfd(fd: $0, events: 1, revents: 0) }
            return polled.withUnsafeBytes { bytes in
                note(
                    door_identity(kind: 2, key: caller), bytes.baseAddress, files.count,
                    MemoryLayout<pollfd>.stride, frame, caller)
            }
        }

        func epoll(_ set: Int32, at frame: UInt = 0x7FFF_0000) -> Bool {
            note(door_identity(kind: 1, key: UInt64(set)), nil, 0, 0, frame, 9)
        }

        func note(
            _ identity: door_identity, _ descriptors: UnsafeRawPointer?, _ count: Int,
            _ stride: Int, _ frame: UInt, _ caller: UInt64
        ) -> Bool {
            var call = wait_call(
                call: identity, descriptors: descriptors?.assumingMemoryBound(to: Int32.self),
                count: count, stride: stride, place: door_place(frame: frame, caller: caller))
            return waits_note(&waits, &call)
        }
    }

    @Test func `a wait for an epoll set or for several descriptors is a loop's from the first one`()
    {
        let thread = Thread()
        #expect(thread.poll(thread.event(), thread.event()))
        let other = Thread()
        #expect(other.epoll(other.set()))
    }

    @Test func `a wait for one source of events is a loop's when it has come back three times`() {
        let thread = Thread()
        let event = thread.event()
        #expect((0..<4).map { _ in thread.poll(event) } == [false, false, true, true])
    }

    /// As Foundation's run loops do, on the main thread and on others.
    @Test func `a poll of an epoll set's descriptor is a wait for the set`() {
        let thread = Thread()
        let (set, port) = (thread.set(), thread.event())
        _ = thread.poll(set, caller: 2)
        for _ in 0..<50 {
            #expect(thread.epoll(set))
            #expect(!thread.poll(port, caller: 3))
            #expect(thread.poll(set, caller: 2))
        }
        #expect(thread.waits.loop.returns >= ENOUGH_RETURNS)
        // The loop's work: another set, and a poll of that.
        let other = thread.set()
        #expect(!thread.poll(other, at: 0x7FFE_0000, caller: 4))
        #expect(!thread.epoll(other, at: 0x7FFE_0000))
        #expect(thread.poll(set, caller: 2))
    }

    @Test func `a wait for one connection, for nothing, or at an address that is none, is work`() {
        let thread = Thread()
        let connection = thread.pair()
        for _ in 0..<100 {
            #expect(!thread.poll(connection))
            #expect(!thread.poll())
            #expect(!thread.poll(-1))
            let wrong = UnsafeRawPointer(bitPattern: -1)
            #expect(!thread.note(door_identity(kind: 2, key: 5), wrong, 1, 8, 0x7FFF_0000, 5))
        }
    }

    @Test func `another wait in a callout of an epoll loop is work`() {
        let thread = Thread()
        let (set, connection) = (thread.set(), thread.pair())
        let (one, two) = (thread.event(), thread.event())
        for _ in 0..<50 {
            for _ in 0..<3 { #expect(thread.epoll(set)) }
            #expect(!thread.poll(connection, caller: 2))
            #expect(!thread.poll(one, two, caller: 3))
        }
    }

    @Test func `what a program waits for before its loop makes the loop's rests no work`() {
        let thread = Thread()
        let (connection, one, two) = (thread.pair(), thread.event(), thread.event())
        for _ in 0..<10 { #expect(!thread.poll(connection, caller: 2)) }
        for _ in 0..<10 { #expect(thread.poll(one, two, caller: 3)) }
        let set = thread.set()
        for _ in 0..<10 { #expect(thread.epoll(set)) }
    }

    @Test func `after a loop was left for another one, only the first rests are in doubt`() {
        let thread = Thread()
        let (first, second) = (thread.set(), thread.set())
        for _ in 0..<10 { #expect(thread.epoll(first)) }
        #expect((0..<5).map { _ in thread.epoll(second) } == [false, false, true, true, true])
        // The first one again: an inner loop had only replaced it.
        #expect(thread.epoll(first))
        #expect(thread.epoll(second))
    }

    @Test func `a loop that closed its descriptors is over, and the next one is a loop at once`() {
        let thread = Thread()
        let set = thread.set()
        for _ in 0..<10 { #expect(thread.epoll(set)) }
        #expect(!waits_are_over(&thread.waits))
        thread.closes(set)
        #expect(waits_are_over(&thread.waits))
        // The number is used again, for a file of the agent's for example.
        let reused = thread.opens(open("/dev/null", O_RDONLY))
        #expect(reused == set)
        #expect(waits_are_over(&thread.waits))
        #expect(thread.poll(thread.event(), thread.event()))
    }

    @Test func `only returns to the same place of the stack count`() {
        let thread = Thread()
        let set = thread.set()
        for depth in 0..<10 { #expect(thread.epoll(set, at: 0x7FFF_0000 - UInt(depth) * 64)) }
        #expect(thread.waits.loop.returns == 1 && thread.waits.loop.total == 10)
        for _ in 0..<3 { #expect(thread.epoll(set, at: 0x7FFF_1000)) }
        #expect(thread.waits.loop.returns == 3)
    }

    @Test func `descriptors that come and go do not make another loop`() {
        let thread = Thread()
        let wake = thread.event()
        for _ in 0..<20 { #expect(thread.poll(wake, thread.event())) }
        #expect(thread.waits.loop.total == 20)
    }
}
