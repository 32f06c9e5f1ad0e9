// What a capture costs, on the thread that is captured and on the one that captures, by the depth of the stack; and what
// libunwind would cost in a signal handler of the captured thread, and libdw on the copy. One table a run; compare its
// rows, not runs. Peers that are not installed (Debian: libunwind8, libdw1) are left out. The results are added to the file
// that all benchmarks share.
//
//     swift run -c release CaptureBenchmark [ROUNDS]      500 rounds take half a minute

internal import BenchmarkSupport
import CStackCapture
import CStackVictims
import Foundation
import StallCapture
import StallModel
import Synchronization

/// It reads the list of loaded images when it is prepared.
let hasLibdw = libdw_prepare() != 0

/// What a subject does below its frames.
enum Life { case blocks, spins, timesHandler }

/// A thread that blocks or spins below `depth` frames of its own.
final class Subject: Sendable {
    /// Duration of the sampler's signal handler on this thread, in nanoseconds.
    let handlerTimes = Mutex<[UInt64]>([])
    private let registration = Mutex<RegisteredThread?>(nil)
    /// Gaps of a spinning thread longer than a microsecond, in nanoseconds: what interrupted it.
    let longestGap = Atomic<UInt64>(0)
    private let isStopped = Atomic<Bool>(false)

    init(depth: Int, _ life: Life) {
        let thread = Thread { [self] in
            let registered = RegisteredThread.current()
            stall_thread_describe(&self.described)
            descend(depth) { [self] in
                self.registration.withLock { $0 = registered }
                switch life {
                case .blocks: self.sleep()
                case .spins: self.spin()
                case .timesHandler: self.timeHandler()
                }
            }
        }
        thread.stackSize = 64 << 20
        thread.start()
        while registration.withLock({ $0 }) == nil { usleep(1_000) }
        usleep(20_000)
    }

    var thread: RegisteredThread { registration.withLock { $0! } }
    /// The same, as C describes it.
    nonisolated(unsafe) private(set) var described = stall_thread()
    func stop() { isStopped.store(true, ordering: .relaxed) }

    private func sleep() { while !isStopped.load(ordering: .relaxed) { usleep(1_000_000) } }

    private func spin() {
        var last = now()
        while !isStopped.load(ordering: .relaxed) {
            let time = now()
            if time - last > longestGap.load(ordering: .relaxed) {
                longestGap.store(time - last, ordering: .relaxed)
            }
            last = time
        }
    }

    /// The signal is blocked, dequeued with sigtimedwait, and passed to its handler: the handler's cost without the
    /// kernel's.
    private func timeHandler() {
        victim_block_sigurg()
        while !isStopped.load(ordering: .relaxed) {
            let time = victim_run_sigurg_handler()
            if time > 0 { handlerTimes.withLock { $0.append(time) } }
        }
    }

    /// The longest gap since the last call.
    func takeGap() -> UInt64 { longestGap.exchange(0, ordering: .relaxed) }
}

@inline(never) func descend(_ depth: Int, _ body: () -> Void) {
    if depth == 0 { body() } else { descend(depth - 1, body) }
    withExtendedLifetime(depth) {}
}

func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// On a busy machine a running thread may have to wait for a processor before it can answer.
let patience = Duration.seconds(20)

struct Percentiles: CustomStringConvertible {
    private let sorted: [UInt64]
    init(_ values: [UInt64]) { sorted = values.sorted() }
    var microseconds: [Double] { sorted.map { Double($0) / 1_000 } }
    private func at(_ percent: Int) -> Double {
        Double(sorted[(sorted.count - 1) * percent / 100]) / 1_000
    }
    var description: String { String(format: "%9.2f %9.2f %9.2f", at(0), at(50), at(95)) }
}

func measure(_ rounds: Int, _ body: () throws -> Void) rethrows -> Percentiles {
    Percentiles(
        try (0..<rounds).map { _ in
            let start = now()
            try body()
            return now() - start
        })
}

/// A copy of a blocked thread's stack, as a capture makes it.
func copyStack(of thread: RegisteredThread) -> (
    bytes: [UInt8], base: UInt64, registers: stall_registers
) {
    let path = "/proc/self/task/\(thread.id.rawValue)/syscall"
    let fields = try! String(contentsOfFile: path, encoding: .utf8).split(separator: " ")
    let numbers = fields.suffix(2).map {
        UInt64($0.dropFirst(2).trimmingCharacters(in: .newlines), radix: 16)!
    }
    let base = numbers[0] - 128
    let source = UnsafeRawBufferPointer(
        start: UnsafeRawPointer(bitPattern: UInt(base)), count: Int(thread.stackHigh - base))
    var registers = stall_registers()
    stall_registers_set(&registers, 7, numbers[0])
    stall_registers_set(&registers, 16, numbers[1])
    return (Array(source), base, registers)
}

nonisolated(unsafe) var results: [BenchmarkResult] = []

func row(
    _ name: String, _ frames: Int, _ percentiles: Percentiles, contestant: String = "stallwatch"
) {
    results.append(
        BenchmarkResult(
            name: name, contestant: contestant, size: frames, values: percentiles.microseconds,
            unit: "us"))
    let label = contestant == "stallwatch" ? name : "\(name): \(contestant)"
    print(
        label.padding(toLength: 44, withPad: " ", startingAt: 0) + String(format: "%6d", frames),
        percentiles)
}

@main enum CaptureBenchmark {
    static func main() throws {
        let rounds = CommandLine.arguments.dropFirst().first.flatMap(Int.init) ?? 500
        print(
            "microseconds".padding(toLength: 44, withPad: " ", startingAt: 0)
                + "frames     least       p50       p95")
        var sampler = try StackSampler()
        let bare = stall_sampler_create(8192, 1 << 20, STALL_SIGNAL_UNLESS_OWNED)!
        for depth in [5, 85, 485, 1_985] {
            let blocked = Subject(depth: depth, .blocks)
            let frames = try sampler.captureStack(of: blocked.thread, timeout: patience)
                .addresses.count
            row(
                "capture of a blocked thread", frames,
                try measure(rounds) {
                    _ = try sampler.captureStack(of: blocked.thread, timeout: patience)
                })
            unwindAlone(blocked, frames, rounds)
            blocked.stop()
            let spinning = Subject(depth: depth, .spins)
            var gaps: [UInt64] = []
            row(
                "capture of a running thread", frames,
                try measure(rounds) {
                    _ = spinning.takeGap()
                    _ = try sampler.captureStack(of: spinning.thread, timeout: patience)
                    gaps.append(spinning.takeGap())
                })
            row("stopped, with the kernel's part", frames, Percentiles(gaps))
            let timing = Subject(depth: depth, .timesHandler)
            // A thread that blocks the signal is not sent one, so use the /proc files of another running thread.
            var asked = timing.described
            asked.files = spinning.described.files
            for _ in 0..<rounds {
                var stack = stall_stack()
                let error = stall_sampler_capture(bare, &asked, patience.nanoseconds, &stack)
                precondition(error == 0, "errno \(error)")
            }
            timing.stop()
            row("in a handler", frames, Percentiles(timing.handlerTimes.withLock { $0 }))
            if agreement_prepare() != 0 {
                var addresses = [UInt64](repeating: 0, count: 8192)
                var times: [UInt64] = []
                for _ in 0..<min(rounds, 200) {
                    _ = agreement_park(spinning.thread.id.rawValue, &addresses, 8192)
                    agreement_release()
                    times.append(agreement_unwind_ns())
                }
                row("in a handler", frames, Percentiles(times), contestant: "libunwind")
            }
            spinning.stop()
        }
        try results.append()
    }

    /// The unwinder on a copy that it has seen before, and on one that it sees for the first time.
    static func unwindAlone(_ blocked: Subject, _ frames: Int, _ rounds: Int) {
        var (bytes, base, registers) = copyStack(of: blocked.thread)
        var buffer = [stall_frame](repeating: stall_frame(), count: 8192)
        var isTruncated = false
        bytes.withUnsafeMutableBufferPointer { bytes in
            var copy = stall_stack_copy(
                bytes: bytes.baseAddress, base: base, length: UInt64(bytes.count), is_live: false)
            let warm = stall_unwinder_create(nil)!
            let unwind = { (unwinder: OpaquePointer) in
                _ = stall_unwind(unwinder, &registers, &copy, &buffer, 8192, &isTruncated)
            }
            unwind(warm)
            row("unwinding", frames, measure(rounds) { unwind(warm) })
            row(
                "first unwinding", frames,
                Percentiles(
                    (0..<min(rounds, 50)).map { _ in
                        let cold = stall_unwinder_create(nil)!
                        defer { stall_unwinder_destroy(cold) }
                        let start = now()
                        unwind(cold)
                        return now() - start
                    }))
            stall_unwinder_destroy(warm)
            guard hasLibdw else { return }
            let (start, length) = (UnsafePointer(bytes.baseAddress!), UInt64(bytes.count))
            let (stack, counter) = (registers.value.7, registers.value.16)
            let unwindWithLibdw = { (framePointer: UInt64) in
                Int(
                    libdw_unwind(
                        blocked.thread.id.rawValue, start, base, length, framePointer, stack,
                        counter))
            }
            // libdw needs the frame pointer, which the kernel does not expose: use the one with which it unwinds
            // furthest.
            let candidates = stride(from: stack, to: min(stack + 2048, base + length), by: 8)
            let best = candidates.map { ($0, unwindWithLibdw($0)) }.max { $0.1 < $1.1 }
            guard let (framePointer, _) = best else { return }
            row(
                "unwinding", frames,
                measure(min(rounds, 100)) { _ = unwindWithLibdw(framePointer) }, contestant: "libdw"
            )
        }
    }
}
