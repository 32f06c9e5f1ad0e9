import CLinux
import Foundation
import LoopConformance
import StallModel
import TestSupport
import Testing

@testable import StallRunLoop

nonisolated(unsafe) private var isInnerFork = false

/// Goal: after a fork without exec the loop of the forking thread lives in the child, apart from the parent's.
/// Method: processes of their own, which fork; a child that hangs is ended by SIGALRM, and the parent sees it.
@Suite struct ForkTests {
    @Test func `a child's run returns on time, its timers fire, and so do the parent's`() async {
        await #expect(processExitsWith: .success) {
            onFreshThread {
                let loop = EventRunLoop.current
                nonisolated(unsafe) var calls = 0
                loop.schedule(every: .milliseconds(1)) { _ in calls += 1 }
                // The descriptors are there, and the timer is set.
                loop.run(for: .milliseconds(5))
                let child = forkProcess {
                    calls = 0
                    return loop.run(for: .milliseconds(20)) == .timedOut && calls > 0 ? 0 : 1
                }
                let status = wait(for: child)
                calls = 0
                loop.run(for: .milliseconds(20))
                exit(status == 0 && calls > 0 ? 0 : 1)
            }
        }
    }

    /// The handler is called after those of the loops, since it was registered before.
    @Test func `a fork in a handler before a fork leaves the outer one its locks`() async {
        await #expect(processExitsWith: .success) {
            pthread_atfork(
                {
                    guard !isInnerFork else { return }
                    isInnerFork = true
                    _ = wait(for: forkProcess { 0 })
                    isInnerFork = false
                }, nil, nil)
            guard let other = try? LoopThread() else { exit(3) }
            onFreshThread {
                _ = EventRunLoop.current
                // A child does not have the other's thread.
                let child = forkProcess { other.loop.post {} ? 1 : 0 }
                exit(wait(for: child) == 0 && other.loop.post {} ? 0 : 2)
            }
        }
    }

    @Test func `a child takes no event of its parent, and posts to itself`() async {
        await #expect(processExitsWith: .success) {
            onFreshThread {
                let loop = EventRunLoop.current
                loop.add(LoopSource { _ in }, toMode: .default)
                loop.run(for: .zero)
                let numbers = [loop.wake.descriptor, loop.timerDescriptor]
                let child = forkProcess {
                    loop.perform(after: .milliseconds(1)) { loop.post { loop.stop() } }
                    guard loop.run(mode: .default, for: .seconds(20)) == .stopped else { return 1 }
                    let isOwn = loop.forkGeneration == stall_fork_generation()
                    stall_eventfd_write(loop.wake.descriptor)
                    return isOwn && loop.wake.descriptor >= 0 ? 0 : 2
                }
                guard wait(for: child) == 0 else { exit(1) }
                // It would be readable if it were the child's as well.
                guard !stall_descriptor_is_readable(loop.wake.descriptor) else { exit(4) }
                loop.perform(after: .milliseconds(1)) { loop.post { loop.stop() } }
                guard loop.run(mode: .default, for: .seconds(20)) == .stopped else { exit(2) }
                exit([loop.wake.descriptor, loop.timerDescriptor] == numbers ? 0 : 3)
            }
        }
    }

    /// Locks and half posted blocks of threads that the child does not have must not stop it.
    @Test func `a child's loop goes on whatever other threads did to it at the fork`() async {
        await #expect(processExitsWith: .success) {
            onFreshThread {
                let loop = EventRunLoop.current
                loop.add(LoopSource { _ in }, toMode: .default)
                for kind in 0..<2 {
                    Thread {
                        while true {
                            if kind == 0 {
                                let timer = LoopTimer(after: .seconds(60)) { _ in }
                                loop.add(timer, toMode: .common)
                                timer.invalidate()
                                _ = LoopMode("mode \(Int.random(in: 0..<100))")
                            } else if loop.blocks.memorySize < 200_000 {
                                loop.post {}
                            }
                        }
                    }.start()
                }
                for _ in 0..<30 {
                    loop.run(for: .microseconds(100))
                    let child = forkProcess {
                        loop.add(
                            LoopTimer(after: .zero) { _ in loop.stop() }, toMode: "in the child")
                        loop.run(for: .microseconds(100))
                        return loop.run(mode: "in the child") == .stopped ? 0 : 1
                    }
                    guard wait(for: child) == 0 else { exit(1) }
                }
                exit(0)
            }
        }
    }

    /// The stream is the parent's. Its lock may be held by a thread that the child does not have.
    @Test func `a child finds the ports of its parent closed, and takes no message`() async {
        await #expect(processExitsWith: .success) {
            onFreshThread {
                let loop = EventRunLoop.current
                guard let sockets = try? MessageSockets() else { exit(1) }
                nonisolated(unsafe) var messages = 0
                let opened = try? LoopMessagePort(
                    descriptor: sockets.own, on: loop, coding: .bytes,
                    limits: MessageLimits(queueSize: 1 << 30)
                ) { _, _ in messages += 1 }
                guard let port = opened else { exit(2) }
                for _ in 0..<2 {
                    Thread { while (try? port.send([UInt8](repeating: 1, count: 3_000))) != nil {} }
                        .start()
                }
                Thread {
                    var bytes = [UInt8](repeating: 0, count: 65_536)
                    while read(sockets.peer, &bytes, bytes.count) > 0 {}
                }.start()
                loop.schedule(every: .milliseconds(1)) { _ in }
                for round in 0..<40 {
                    loop.run(for: .microseconds(100))
                    guard write(sockets.peer, [0, 0, 0, 1, 9] as [UInt8], 5) == 5 else { exit(3) }
                    let before = messages
                    let child = forkProcess {
                        if port.isOpen || port.waitingSize != 0 { return 1 }
                        do throws(MessageRefusal) {
                            try port.send([1])
                            return 2
                        } catch { if error != .closed { return 3 } }
                        loop.run(for: .milliseconds(2))
                        if messages != before { return 4 }
                        port.finish()
                        port.close()
                        port.close()
                        return fcntl(sockets.own, F_GETFD) == -1 ? 0 : 5
                    }
                    let status = wait(for: child)
                    // 100 and a signal, or 10 and what the child returned.
                    let signal = status & 0x7f
                    guard status == 0 else { exit(signal == 0 ? 10 + status >> 8 : 100 + signal) }
                    while messages == before { loop.run(for: .microseconds(100)) }
                    guard messages == round + 1, port.isOpen else { exit(4) }
                }
                exit(0)
            }
        }
    }

    @Test func `a child finds the loops of its parent's other threads ended`() async {
        await #expect(processExitsWith: .success) {
            nonisolated(unsafe) var thread = try? LoopThread()
            guard thread != nil else { exit(1) }
            let child = forkProcess {
                let loop = thread!.loop
                guard !loop.post({}), !loop.add(LoopSource { _ in }, toMode: .default) else {
                    return 1
                }
                do throws(LoopError) {
                    try loop.performAndWait {}
                    return 2
                } catch {
                    guard error == .stopped else { return 3 }
                }
                // Waits for no thread, nor the second one for the first.
                thread!.stop()
                thread!.stop()
                thread = nil
                return 0
            }
            guard wait(for: child) == 0 else { exit(2) }
            thread!.stop()
            exit(0)
        }
    }

    @Test func `a thread without a loop has the main loop in the child`() async {
        await #expect(processExitsWith: .success) {
            let main = EventRunLoop.main
            onFreshThread {
                let child = forkProcess {
                    let loop = EventRunLoop.current
                    loop.perform(after: .milliseconds(1)) { loop.stop() }
                    guard loop === main, loop.isCurrent else { return 1 }
                    return loop.run(mode: .default, for: .seconds(20)) == .stopped ? 0 : 2
                }
                exit(wait(for: child) == 0 ? 0 : 1)
            }
        }
    }

    /// The forking thread becomes the main thread, whose loop was the parent's main thread's. The tool has a main thread to
    /// give.
    @Test func `a thread without a loop finds a fresh main loop in the child`() throws {
        let text = try BuiltProgram("conformance", ["--fork"]).finish().output
        #expect(text.hasSuffix("fork states=11 failed=0\n"), "\(text)")
    }

    /// Where a thread may be in its own loop when it forks.
    enum OwnState: CaseIterable { case betweenRuns, timer, block, source, observer, nested }

    /// The child goes on where its parent was, in the same run.
    @Test(arguments: OwnState.allCases)
    func `a thread that forks in its own run goes on with it in the child`(state: OwnState) async {
        await #expect(processExitsWith: .success) { [state = "\(state)"] in
            let state = OwnState.allCases.first { "\($0)" == state }!
            onFreshThread {
                let loop = EventRunLoop.current
                nonisolated(unsafe) var child: pid_t = -1
                let fork: @Sendable () -> Void = {
                    child = forkProcess(notEnding: ())
                    loop.stop()
                }
                nonisolated(unsafe) var ticks = 0
                loop.schedule(every: .milliseconds(1)) { _ in
                    ticks += 1
                    if ticks == 1 && state == .timer { fork() }
                }
                switch state {
                case .betweenRuns, .timer: break
                case .block: loop.perform(fork)
                case .source:
                    let source = LoopSource { _ in fork() }
                    loop.add(source, toMode: .default)
                    source.signal()
                case .observer:
                    loop.add(
                        LoopObserver(activities: .beforeTimers, repeats: false) { _, _ in fork() },
                        toMode: .default)
                case .nested:
                    loop.perform {
                        loop.perform(inMode: "inner", fork)
                        loop.run(mode: "inner", for: .zero)
                        loop.stop()
                    }
                }
                if state == .betweenRuns {
                    fork()
                } else if loop.run(mode: .default, for: .seconds(20)) != .stopped {
                    exit(1)
                }
                ticks = 0
                while ticks < 2 { loop.run(for: .milliseconds(5)) }
                if child == 0 { _exit(0) }
                exit(TestSupport.wait(for: child) == 0 ? 0 : 2)
            }
        }
    }

    /// Method: slots are claimed and left unfilled, also the last one of a segment, behind which the next segment is
    /// missing.
    @Test(arguments: [0, 100, 253])
    func `blocks that were being posted at the fork are passed over`(before: Int) {
        let queue = BlockQueue()
        nonisolated(unsafe) var ran: [Int] = []
        func post(_ numbers: Range<Int>) {
            for number in numbers {
                queue.post(Block(others: nil, body: { ran.append(number) }, mode: .default))
            }
        }
        func drain(_ batch: consuming BlockQueue.Batch) {
            var batch = batch
            while let body = queue.next(in: &batch, mode: .default, isCommon: true) { body() }
            queue.finish(batch)
        }
        post(0..<before)
        _ = queue.claimNext()
        if before < 253 { post(before..<before + 1) }
        queue.repairAfterFork()
        post(1_000..<1_300)
        drain(queue.takeAll())
        #expect(ran == Array(0..<min(before + 1, 253)) + Array(1_000..<1_300))
    }
}
