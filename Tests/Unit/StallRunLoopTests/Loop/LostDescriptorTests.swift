import CLinux
import Foundation
import LoopConformance
import StallModel
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: a loop whose descriptors the app has closed touches nothing that has their numbers now, also if it never sleeps.
/// Method: processes of their own, which close the loop's and put something of the same kind there.
@Suite struct LostDescriptorTests {
    @Test(arguments: [false, true])
    func `a busy loop takes no event out of a set of the app`(isBatch: Bool) async {
        await #expect(processExitsWith: .success) { [isBatch] in
            onFreshThread {
                let loop = EventRunLoop.current
                loop.descriptorDelivery = isBatch ? .batch : .strict
                var ends: [CInt] = [0, 0]
                pipe(&ends)
                // With a descriptor it has to ask the kernel in each iteration.
                _ = try? loop.add(
                    DescriptorSource(descriptor: ends[0]) { _, _ in }, toMode: .default)
                loop.run(for: .milliseconds(1))
                let set = loop.defaultItems.poller!.epoll
                nonisolated(unsafe) var (left, theirs) = (1_000, CInt(-1))
                @Sendable func again() {
                    if left == 1_000 { theirs = takeNumber(set) { epoll_create1(0) } }
                    if left == 1_000 { addOneEvent(to: theirs) }
                    left -= 1
                    guard left > 0 else { return loop.stop() }
                    loop.post(again)
                }
                loop.post(again)
                loop.run(mode: .default, for: .seconds(20))
                guard theirs == set, left == 0 else { exit(2) }
                exit(eventsLeft(in: theirs) == 1 ? 0 : 1)
            }
        }
    }

    @Test(arguments: [false, true])
    func `a loop does not set a timer of the app`(isEmbedded: Bool) async {
        await #expect(processExitsWith: .success) { [isEmbedded] in
            EventRunLoop.hasOldWaits = !isEmbedded
            onFreshThread {
                let loop = EventRunLoop.current
                if isEmbedded { _ = try? loop.fileDescriptor() }
                nonisolated(unsafe) var calls = 0
                loop.schedule(every: .milliseconds(1)) { _ in calls += 1 }
                loop.run(for: .milliseconds(5))
                let timer = loop.timerDescriptor
                guard timer >= 0 else { exit(2) }
                nonisolated(unsafe) var theirs: CInt = -1
                loop.perform {
                    theirs = takeNumber(timer) { timerfd_create(CInt(CLOCK_MONOTONIC), 0) }
                }
                calls = 0
                for _ in 0..<200 where calls < 3 { loop.run(for: .milliseconds(5)) }
                var setting = itimerspec()
                guard theirs == timer else { exit(3) }
                guard timerfd_gettime(theirs, &setting) == 0 else { exit(10 + errno) }
                guard setting.it_value.tv_sec == 0, setting.it_value.tv_nsec == 0 else { exit(1) }
                exit(calls >= 3 ? 0 : 4)
            }
        }
    }

    /// The mark alone would say that the set is the library's.
    @Test func `a loop knows the set of another loop from its own`() async {
        await #expect(processExitsWith: .success) {
            openDispatchDescriptors()
            onFreshThread {
                let loop = EventRunLoop.current
                loop.add(LoopSource { _ in }, toMode: .default)
                runUntilItWaits(loop)
                let (set, wake) = (loop.defaultItems.poller!.epoll, loop.wake.descriptor)
                // All numbers below are taken, by then also the loop's own. No other thread gets one of them meanwhile.
                while dup(0) < set {}
                for number in CInt(3)..<256 where stall_descriptor_is_own(number) {
                    dup2(0, number)
                }
                // The other loop's wake-up gets the lower one, and its set the other.
                close(set)
                close(wake)
                nonisolated(unsafe) var isShared = false
                nonisolated(unsafe) var status: CInt = 0
                let (begin, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                Thread {
                    let other = EventRunLoop.current
                    let stop = LoopSource { _ in other.stop() }
                    other.add(stop, toMode: .default)
                    runUntilItWaits(other)
                    isShared = other.defaultItems.poller!.epoll == set
                    guard !other.defaultItems.poller!.isLost, !other.wake.isLost else { exit(4) }
                    begin.signal()
                    end.wait()
                    // Neither closed, nor asked, nor written.
                    if other.defaultItems.poller!.isLost || other.wake.isLost { status = 5 }
                    if stall_descriptor_is_readable(other.wake.descriptor) { status = 6 }
                    end.signal()
                }.start()
                begin.wait()
                guard isShared else { exit(2) }
                guard loop.defaultItems.poller!.isLost, loop.wake.isLost else { exit(3) }
                // Just when the loop takes new descriptors, about to sleep.
                let isSpinning = DispatchSemaphore(value: 0)
                Thread {
                    isSpinning.signal()
                    while !loop.isWaiting {}
                    loop.post { loop.stop() }
                }.start()
                isSpinning.wait()
                guard loop.run(mode: .default, for: .seconds(20)) == .stopped else { exit(7) }
                end.signal()
                usleep(1_000)
                end.wait()
                exit(status)
            }
        }
    }

    @Test func `what the app has in place of Dispatch's descriptor is not read`() async {
        await #expect(processExitsWith: .success) {
            playMainQueue()
        }
    }
}

/// On a busy machine a millisecond may be over before the loop waits, and makes its set.
private func runUntilItWaits(_ loop: EventRunLoop) {
    repeat { loop.run(for: .milliseconds(1)) } while loop.defaultItems.poller == nil
}

/// In a child, whose only thread is its main thread.
private func playMainQueue() {
    let child = forkProcess {
        // Dispatch is not to be used in a child whose parent had it; the loop asks for no descriptor of it then.
        let loop = EventRunLoop.current
        loop.add(LoopSource { _ in }, toMode: .default)
        loop.run(for: .milliseconds(1))
        var ends: [CInt] = [0, 0]
        pipe(&ends)
        loop.mainQueueDescriptor = dup(ends[0])
        write(ends[1], "12345678", 8)
        loop.watchMainQueue(in: loop.defaultItems)
        for _ in 0..<5 { loop.run(for: .milliseconds(1)) }
        var bytes = [UInt8](repeating: 0, count: 16)
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        return read(ends[0], &bytes, 16) == 8 ? 0 : 1
    }
    exit(wait(for: child) == 0 ? 0 : 1)
}

/// Dispatch opens its own at the first timer, and would get the number of another loop's.
private func openDispatchDescriptors() {
    let fired = DispatchSemaphore(value: 0)
    let timer = DispatchSource.makeTimerSource()
    timer.setEventHandler { timer.cancel() }
    timer.setCancelHandler { fired.signal() }
    timer.schedule(deadline: .now())
    timer.resume()
    fired.wait()
}

/// Those of loops. Without its own, Dispatch's thread would end the process, or take an event of the set in their place.
func closeAll() {
    for number in CInt(3)..<256 where stall_descriptor_is_own(number) { close(number) }
}

/// Closes the loops' descriptors, and gives `number` to a new file.
func takeNumber(_ number: CInt, _ make: () -> CInt) -> CInt {
    closeAll()
    let made = make()
    guard made != number else { return made }
    dup2(made, number)
    close(made)
    return number
}

/// An event that is reported once: who takes it has it.
private func addOneEvent(to set: CInt) {
    var event = epoll_event()
    event.events = EPOLLIN.rawValue | EPOLLONESHOT.rawValue
    epoll_ctl(set, EPOLL_CTL_ADD, eventfd(1, 0), &event)
}

private func eventsLeft(in set: CInt) -> CInt {
    var event = epoll_event()
    return epoll_wait(set, &event, 1, 0)
}
