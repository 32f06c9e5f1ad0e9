import CCaptureTesting
import Foundation
import Glibc
import StallCapture
import StallModel
import Testing

/// Goal: a thread's stack is captured completely, whatever it does, and a blocked thread is not disturbed.
/// Method: real threads, stalled in real system calls. Just before it stalls, a thread records its callers with
/// libgcc's unwinder; the captured stack must end in exactly those frames.
@Suite(.serialized) struct StackSamplerTests {
    @Test(arguments: Stall.blocked)
    func `a blocked thread is captured whole and without a signal`(stall: Stall) throws {
        var sampler = try StackSampler(signalUse: .never)
        let victim = Victim(stall)
        victim.waitUntilBlocked()
        let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        #expect(stack.method == .signalFree)
        #expect(!stack.isTruncated)
        #expect(stack.addresses.first?.kind == .interrupted)
        #expect(stack.endsIn(victim.callers), "\(stack) does not end in \(victim.callers)")
        victim.release()
        victim.waitForEnd()
        #expect(!victim.wasInterrupted)
    }

    @Test func `a hundred captures leave a sleep at its length`() throws {
        var sampler = try StackSampler()
        let victim = Victim(.usleep)
        victim.waitUntilBlocked()
        for _ in 0..<100 { _ = try sampler.captureStack(of: victim.thread, timeout: .seconds(5)) }
        victim.waitForEnd()
        #expect(!victim.wasInterrupted)
    }

    @Test func `waits shorter than their unwinding are captured`() throws {
        var sampler = try StackSampler(signalUse: .never)
        let victim = Victim(.deepBriefWaits)
        for _ in 0..<10 {
            let stack = try sampler.captureStack(of: victim.thread, timeout: .milliseconds(200))
            #expect(stack.method == .signalFree && !stack.isTruncated)
            #expect(stack.endsIn(victim.callers))
        }
        victim.release()
        victim.waitForEnd()
        #expect(!victim.wasInterrupted)
    }

    @Test func `a running thread copies its own stack`() throws {
        var sampler = try StackSampler(signalUse: .chained)
        let victim = Victim(.computing)
        let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        #expect(stack.method == .signal)
        #expect(!stack.isTruncated)
        #expect(stack.endsIn(victim.callers), "\(stack) does not end in \(victim.callers)")
        victim.release()
        victim.waitForEnd()
    }

    /// Just-in-time compilers make such code.
    @Test(arguments: [Stall.generated, .generatedComputing])
    func `code in no image is passed by its frame pointer`(stall: Stall) throws {
        var sampler = try StackSampler(signalUse: .chained)
        let victim = Victim(stall)
        if stall == .generated { victim.waitUntilBlocked() }
        let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        victim.release()
        victim.waitForEnd()
        #expect(!stack.isTruncated)
        #expect(stack.endsIn(victim.callers), "\(stack) does not end in \(victim.callers)")
        // What the caller of such code is, only its frame pointer says.
        let isGuessed = stack.addresses.suffix(victim.callers.count).allSatisfy(\.isGuessed)
        #expect(isGuessed && stack.addresses.first?.isGuessed == false)
    }

    @Test func `a running thread is left alone where signals are not wanted`() throws {
        var sampler = try StackSampler(signalUse: .never)
        let victim = Victim(.computing)
        #expect(throws: CaptureError.running(victim.thread.id)) {
            try sampler.captureStack(of: victim.thread, timeout: .milliseconds(1))
        }
        victim.release()
        victim.waitForEnd()
    }

    /// libnss_systemd blocks all signals while it looks up a user.
    @Test func `a thread that blocks the signals for a while answers when it unblocks them`() throws
    {
        var sampler = try StackSampler(signalUse: .chained)
        let deaf = Victim(.computingDeaf)
        #expect(throws: CaptureError.answersLater(deaf.thread.id)) {
            try sampler.captureStack(of: deaf.thread, timeout: .seconds(5))
        }
        let early = sampler.collectLateStack(of: deaf.thread)
        #expect(early == nil)
        // A second request waits for the same answer.
        #expect(throws: CaptureError.answersLater(deaf.thread.id)) {
            try sampler.captureStack(of: deaf.thread, timeout: .milliseconds(5))
        }
        #expect(try pendingSignals(of: deaf.thread) == 1 << (UInt64(SIGURG) - 1))
        deaf.release()
        deaf.waitForEnd()
        let taken = sampler.collectLateStack(of: deaf.thread)
        let late = try #require(taken)
        // The function that computed has returned; its caller, which blocked and unblocked the signals, is there.
        let callers = Array(deaf.callers.dropFirst())
        #expect(late.stack.endsIn(callers), "\(late) does not end in \(callers)")
        let isGuessed = late.stack.addresses.allSatisfy(\.isGuessed)
        #expect(isGuessed)
    }

    @Test func `a thread that has always blocked the signals is sent none`() throws {
        var sampler = try StackSampler(signalUse: .chained)
        let deaf = Victim(.computingAlwaysDeaf)
        #expect(throws: CaptureError.blocksSignals(deaf.thread.id)) {
            try sampler.captureStack(of: deaf.thread, timeout: .seconds(5))
        }
        // One that stayed pending would end the next program that the thread executes.
        #expect(try pendingSignals(of: deaf.thread) == 0)
        deaf.release()
        deaf.waitForEnd()
    }

    @Test func `a thread in one long system call answers when it returns`() throws {
        var sampler = try StackSampler(signalUse: .chained)
        let victim = Victim(.longSystemCall)
        #expect(throws: CaptureError.answersLater(victim.thread.id)) {
            try sampler.captureStack(of: victim.thread, timeout: .milliseconds(50))
        }
        // A second request does not wait for it, and another thread's stack is captured meanwhile.
        let other = Victim(.computing)
        let second = try sampler.captureStack(of: other.thread, timeout: .seconds(5))
        #expect(second.method == .signal)
        other.release()
        other.waitForEnd()
        victim.waitForEnd()
        let taken = sampler.collectLateStack(of: victim.thread)
        let late = try #require(taken)
        #expect(late.stack.method == .lateSignal && !late.stack.isTruncated)
        #expect(late.stack.endsIn(victim.callers), "\(late) does not end in \(victim.callers)")
        #expect(late.requested < late.answered)
        let again = sampler.collectLateStack(of: victim.thread)
        #expect(again == nil)
    }

    @Test func `threads in long system calls do not wait for each other`() throws {
        var sampler = try StackSampler(signalUse: .chained)
        let victims = try (0..<3).map { _ in
            let victim = Victim(.longSystemCall)
            var isAsked = false
            // On a busy machine it may take longer until the thread has used the required CPU time.
            while !isAsked {
                do throws(CaptureError) {
                    _ = try sampler.captureStack(of: victim.thread, timeout: .milliseconds(5))
                    break
                } catch {
                    if error == .running(victim.thread.id) { throw error }
                    isAsked = error == .answersLater(victim.thread.id)
                }
            }
            #expect(isAsked)
            return victim
        }
        for victim in victims {
            victim.waitForEnd()
            let taken = sampler.collectLateStack(of: victim.thread)
            let late = try #require(taken)
            #expect(late.stack.endsIn(victim.callers))
        }
    }

    @Test func `a late answer that is never read does no harm`() throws {
        for _ in 0..<20 {
            var sampler = try StackSampler(signalUse: .chained)
            let victim = Victim(.longSystemCall)
            _ = try? sampler.captureStack(of: victim.thread, timeout: .milliseconds(2))
        }
        var sampler = try StackSampler(signalUse: .chained)
        let victim = Victim(.computing)
        let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        #expect(stack.endsIn(victim.callers))
        victim.release()
        victim.waitForEnd()
    }

    @Test func `a thread in vfork has its callers`() throws {
        var sampler = try StackSampler(signalUse: .never)
        let victim = Victim(.vfork)
        victim.waitUntilBlocked(in: "D")
        let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        #expect(stack.endsIn(victim.callers), "\(stack) does not end in \(victim.callers)")
        victim.waitForEnd()
    }

    private func pendingSignals(of thread: RegisteredThread) throws -> UInt64 {
        let path = "/proc/self/task/\(thread.id.rawValue)/status"
        let status = try String(decoding: Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("SigPnd:") })
        return UInt64(line.dropFirst(7).drop { $0 == "\t" }, radix: 16) ?? .max
    }

    @Test func `a thread that has ended is reported as ended`() throws {
        var sampler = try StackSampler()
        let victim = Victim(.nothing)
        victim.waitForEnd()
        #expect(throws: CaptureError.threadEnded(victim.thread.id)) {
            try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        }
    }

    @Test func `a thread that ends between two captures is reported as ended`() throws {
        var sampler = try StackSampler()
        let victim = Victim(.semaphore)
        victim.waitUntilBlocked()
        _ = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        victim.release()
        victim.waitForEnd()
        #expect(throws: CaptureError.threadEnded(victim.thread.id)) {
            try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        }
    }

    @Test func `a stack deeper than the capacity is cut at its outer end`() throws {
        var sampler = try StackSampler(addressCapacity: 64)
        let victim = Victim(.deepRecursion)
        victim.waitUntilBlocked()
        let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        #expect(stack.addresses.count == 64)
        #expect(stack.isTruncated)
        var whole = try StackSampler()
        let deep = try whole.captureStack(of: victim.thread, timeout: .seconds(5))
        #expect(deep.addresses.count > 5_000)
        #expect(!deep.isTruncated)
        #expect(deep.addresses.prefix(64) == stack.addresses.prefix(64))
        victim.waitForEnd()
    }

    @Test func `a running stack larger than the buffer is cut, not lost`() throws {
        var sampler = try StackSampler(signalUse: .chained)
        let victim = Victim(.deepComputing)
        let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
        #expect(stack.method == .signal)
        #expect(stack.isTruncated)
        #expect(stack.addresses.count > 1_000)
        victim.release()
        victim.waitForEnd()
    }

    /// The first sampler of the process decides what its handler chains to.
    @Test func `a foreign SIGPROF reaches the handler that was there first, and ours does not`()
        async
    {
        await #expect(processExitsWith: .success) {
            testing_own_signal()
            var sampler = try StackSampler(signalUse: .chained)
            let victim = Victim(.computing)
            _ = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            guard testing_owner_signal_count() == 0 else { exit(1) }
            raise(SIGPROF)
            exit(testing_owner_signal_count() == 1 ? 0 : 2)
        }
    }

    @Test func `an owner of the signals keeps them`() async {
        await #expect(processExitsWith: .success) {
            testing_own_signal()
            var sampler = try StackSampler(signalUse: .unlessOwned)
            raise(SIGPROF)
            let victim = Victim(.computing)
            #expect(throws: CaptureError.running(victim.thread.id)) {
                try sampler.captureStack(of: victim.thread, timeout: .milliseconds(1))
            }
            exit(testing_owner_signal_count() == 1 ? 0 : 1)
        }
    }

    @Test func `a process that handles the signals later keeps them as well`() async {
        await #expect(processExitsWith: .success) {
            var sampler = try StackSampler(signalUse: .unlessOwned)
            testing_own_signal()
            let victim = Victim(.computing)
            #expect(throws: CaptureError.running(victim.thread.id)) {
                try sampler.captureStack(of: victim.thread, timeout: .milliseconds(1))
            }
            exit(testing_owner_signal_count() == 0 ? 0 : 1)
        }
    }
}

/// Goal: what the detector reads about a thread is correct, and a thread that has ended is not an error.
@Suite struct ThreadProbeTests {
    @Test func `CPU time grows while a thread computes`() {
        let victim = Victim(.computing)
        var probe = ThreadStatReader(victim.thread.id)
        let before = probe.cpuTime()!
        while probe.cpuTime()! == before { sched_yield() }
        #expect(probe.cpuTime()! > before)
        #expect(probe.state() == UInt8(ascii: "R"))
        victim.release()
        victim.waitForEnd()
    }

    @Test func `a thread that is gone has neither state nor CPU time`() {
        let victim = Victim(.nothing)
        var probe = ThreadStatReader(victim.thread.id)
        victim.waitForEnd()
        while probe.state() != nil { sched_yield() }
        #expect(probe.cpuTime() == nil)
        var late = ThreadStatReader(victim.thread.id)
        #expect(late.state() == nil)
    }
}
