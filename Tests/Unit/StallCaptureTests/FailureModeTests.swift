import CCaptureTesting
import CLinux
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

    @Test func `without either the stack is read through a pipe`() async {
        await #expect(processExitsWith: .success) {
            let victim = Victim(.semaphore)
            victim.waitUntilBlocked()
            var sampler = try StackSampler(signalUse: .never)
            #expect(testing_forbid_system_call(testing_process_vm_readv) == 0)
            #expect(testing_forbid_system_call(testing_openat) == 0)
            let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            #expect(!stack.isTruncated && stack.endsIn(victim.callers))
        }
    }

    @Test func `a refused system call is found at start, with its effect`() async {
        await #expect(processExitsWith: .success) {
            var refused = [stall_refused_call](repeating: stall_refused_call(), count: 8)
            #expect(stall_calls_probe(&refused, refused.count) == 0)
            #expect(testing_forbid_system_call(testing_rt_tgsigqueueinfo) == 0)
            #expect(stall_calls_probe(&refused, refused.count) == 1)
            #expect(refused[0].name.map { String(cString: $0) } == "rt_tgsigqueueinfo")
            #expect(refused[0].error == EPERM)
            let effect = refused[0].effect.map { String(cString: $0) }
            #expect(effect?.contains("without a stack") == true)
            // More than there is room for are counted, not stored.
            #expect(stall_calls_probe(&refused, 0) == 1)
        }
    }

    @Test func `an unreadable proc is an error that names the call`() async {
        await #expect(processExitsWith: .success) {
            let victim = Victim(.semaphore)
            #expect(testing_forbid_system_call(testing_openat) == 0)
            #expect(throws: CaptureError.system(call: "open /proc/self/task", errno: EPERM)) {
                try RegisteredThread.found(victim.thread.id)
            }
        }
    }

    @Test func `what a thread opened when it registered serves it later`() async {
        await #expect(processExitsWith: .success) {
            let victim = Victim(.semaphore)
            victim.waitUntilBlocked()
            var sampler = try StackSampler()
            #expect(testing_forbid_system_call(testing_openat) == 0)
            let stack = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            #expect(stack.endsIn(victim.callers))
        }
    }

    @Test func `a process that gave up its rights sees its running threads`() async {
        await #expect(processExitsWith: .success) {
            let earlier = Victim(.semaphore)
            earlier.waitUntilBlocked()
            // Another user's process, or equivalent: it may not be read from outside, nor open all of /proc.
            guard getuid() == 0, setgid(65534) == 0, setuid(65534) == 0 else { exit(0) }
            var sampler = try StackSampler()
            let kept = try sampler.captureStack(of: earlier.thread, timeout: .seconds(5))
            #expect(kept.endsIn(earlier.callers))
            let running = Victim(.computing)
            let stack = try sampler.captureStack(of: running.thread, timeout: .seconds(5))
            #expect(stack.method == .signal && stack.endsIn(running.callers))
            let blocked = Victim(.semaphore)
            blocked.waitUntilBlocked()
            let error = CaptureError.hidden(blocked.thread.id, isDumpable: false)
            #expect(error.description.hasSuffix("this process is not dumpable"))
            #expect(throws: error) {
                try sampler.captureStack(of: blocked.thread, timeout: .seconds(5))
            }
        }
    }

    @Test func `without proc a blocked thread says that it is hidden`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            _ = testing_forbid_system_call(testing_openat)
            let blocked = Victim(.semaphore)
            var sampler = try StackSampler()
            do throws(CaptureError) {
                _ = try sampler.captureStack(of: blocked.thread, timeout: .seconds(5))
            } catch {
                // An issue could not be recorded: that opens files.
                _exit(error == .hidden(blocked.thread.id, isDumpable: true) ? 7 : 1)
            }
        }
    }

    @Test func `without any way to read memory the place where it waits remains`() async {
        await #expect(processExitsWith: .success) {
            let victim = Victim(.usleep)
            victim.waitUntilBlocked()
            var sampler = try StackSampler(signalUse: .never)
            // Opens the files that it keeps open.
            _ = try sampler.captureStack(of: victim.thread, timeout: .seconds(5))
            #expect(testing_forbid_system_call(testing_process_vm_readv) == 0)
            #expect(testing_forbid_system_call(testing_openat) == 0)
            #expect(testing_forbid_system_call(testing_pipe2) == 0)
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
            let victim = VictimThread(stackSize: 512 << 10) { testing_overflow_stack(0, flag) }
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
            let victim = VictimThread(stackSize: 512 << 10) { testing_overflow_stack(1, flag) }
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
