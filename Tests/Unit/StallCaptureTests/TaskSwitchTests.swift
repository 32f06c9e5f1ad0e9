import Glibc
import StallCapture
import StallModel
import Synchronization
import Testing

/// Goal: an async function that goes on elsewhere is named, although it has left the stack for the runtime.
/// Method: the same function stalls itself, and in the executor that it changes to: one awaiting function more.
@Suite struct TaskSwitchTests {
    @Test func `a function that changes its executor follows what keeps it from there`() throws {
        var sampler = try StackSampler(signalUse: .never)
        let own = try asyncFrameCount(&sampler, switches: false)
        let switching = try asyncFrameCount(&sampler, switches: true)
        #expect(own > 0 && switching == own + 1)
    }

    private func asyncFrameCount(
        _ sampler: inout StackSampler, switches: Bool
    ) throws -> Int {
        let gate = Gate()
        let ended = TestSemaphore()
        // Not behind all other tests: this one keeps its thread of the pool until the task runs.
        Task.detached(priority: .high) {
            await outer(gate, switches: switches)
            ended.signal()
        }
        let thread = gate.waitForStall()
        var probe = ThreadStatReader(thread.id)
        while let state = probe.state(), state != UInt8(ascii: "S") { sched_yield() }
        let stack = try sampler.captureStack(of: thread, timeout: .seconds(5))
        gate.open()
        ended.wait()
        return stack.addresses.filter { $0.kind == .asyncResume }.count
    }
}

/// Stalls the thread that arrives.
private final class Gate: Sendable {
    private let stalled = Mutex<RegisteredThread?>(nil)
    private let (arrived, opened) = (TestSemaphore(), TestSemaphore())

    @inline(never) func stall() {
        stalled.withLock { $0 = RegisteredThread.current() }
        arrived.signal()
        opened.wait()
    }

    func waitForStall() -> RegisteredThread {
        arrived.wait()
        return stalled.withLock { $0! }
    }

    func open() { opened.signal() }
}

private final class SlowExecutor: SerialExecutor {
    let gate: Gate

    init(_ gate: Gate) { self.gate = gate }

    func enqueue(_ job: consuming ExecutorJob) {
        gate.stall()
        UnownedJob(job).runSynchronously(on: asUnownedSerialExecutor())
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }
}

private actor Elsewhere {
    private let executor: SlowExecutor
    private var count = 0

    init(_ executor: SlowExecutor) { self.executor = executor }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func add() -> Int {
        count += 1
        return count
    }
}

@inline(never) private func inner(_ gate: Gate, switches: Bool) async -> Int {
    if !switches { gate.stall() }
    guard switches else { return 0 }
    return await Elsewhere(SlowExecutor(gate)).add() + 1
}

@inline(never) private func outer(_ gate: Gate, switches: Bool) async {
    let count = await inner(gate, switches: switches)
    withExtendedLifetime(count) {}
}
