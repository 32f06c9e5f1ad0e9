import CCaptureTesting
import Glibc
import StallCapture
import StallModel
import Testing

/// Goal: what the system refuses shortens a stack or names itself in an error; nothing crashes.
/// Method: child processes that forbid themselves a system call, or run out of stack, and then capture.
@Suite struct FailureModeTests {
    @Test func `without process_vm_readv the stack is read through proc`() async {
        await #expect(processExitsWith: .success) {
            #expect(testing_forbid_system_call(testing_process_vm_readv) == 0)
            let victim = Victim(.semaphore)
            victim.waitUntilBlocked()
            var sampler = try StackSampler(signalUse: .never)
            let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            #expect(!stack.isTruncated)
            #expect(stack.endsIn(victim.callers))
        }
    }

    @Test func `an unreadable proc is an error that names the call`() async {
        await #expect(processExitsWith: .success) {
            let victim = Victim(.semaphore)
            var sampler = try StackSampler()
            #expect(testing_forbid_system_call(testing_openat) == 0)
            #expect(throws: CaptureError.system(call: "open /proc/self/task", errno: EPERM)) {
                try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            }
        }
    }

    @Test func `without any way to read memory the place where it waits remains`() async {
        await #expect(processExitsWith: .success) {
            let victim = Victim(.usleep)
            victim.waitUntilBlocked()
            var sampler = try StackSampler(signalUse: .never)
            // Opens what it keeps open.
            _ = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            #expect(testing_forbid_system_call(testing_process_vm_readv) == 0)
            #expect(testing_forbid_system_call(testing_openat) == 0)
            let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            #expect(stack.addresses.count == 1)
            #expect(stack.isTruncated)
        }
    }

    @Test func `a thread that overflowed its stack is captured from the handler inwards`() async {
        await #expect(processExitsWith: .success) {
            let reached = UnsafeMutablePointer<CInt>.allocate(capacity: 1)
            reached.pointee = 0
            nonisolated(unsafe) let flag = reached
            let victim = VictimThread(stackSize: 256 << 10) { testing_overflow_stack(0, flag) }
            while reached.pointee == 0 { sched_yield() }
            victim.waitForState("S")
            var sampler = try StackSampler(signalUse: .never)
            let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            #expect(stack.method == .signalFree)
            #expect(stack.addresses.filter { $0.kind == .interrupted }.count == 2)
            #expect(stack.addresses.count > 500)
            #expect(!stack.isTruncated)
        }
    }

    @Test
    func `what lies behind a handler that spins on an alternate stack is a guess`()
        async
    {
        await #expect(processExitsWith: .success) {
            let reached = UnsafeMutablePointer<CInt>.allocate(capacity: 1)
            reached.pointee = 0
            nonisolated(unsafe) let flag = reached
            let victim = VictimThread(stackSize: 256 << 10) { testing_overflow_stack(1, flag) }
            while reached.pointee == 0 { sched_yield() }
            var sampler = try StackSampler()
            let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            #expect(stack.method == .signal)
            // The handler, the signal frame, the function that overflowed; then a stack that the handler did not copy.
            let guessed = stack.addresses.firstIndex { $0.isGuessed }
            #expect(guessed == 3)
            #expect(stack.addresses.count > 500)
        }
    }
}
