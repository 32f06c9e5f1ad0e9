// Stress test of the sampler: captures threads that throw, exit, fork and fault, at a given rate, and counts failures:
//
//     stack-stress SECONDS [CAPTURES-PER-SECOND] [owned]
//
// Each thread has its own sampler: a single one waits for each running thread until that has used a millisecond of CPU,
// and nine threads that share two processors then allow some two hundred captures a second.
//
// The threads throw C++ exceptions, load and unload a plug-in, fork, allocate, handle their own signals, and wait with
// usleep, poll and epoll_wait, whose early returns are counted. A deadlock shows as a thread that makes no progress.
// With `owned` the process has its own handlers for SIGPROF and SIGURG before the sampler starts, and a thread that
// sends itself SIGPROF: each must arrive, and no thread may be signalled by the sampler.

import CStackVictims
import Foundation
import StallCapture
import StallModel
import Synchronization

/// One kind of life. `step` returns false when something was wrong.
final class StressThread: Sendable {
    let name: String
    private let step: @Sendable () -> Bool
    private let registration = Mutex<RegisteredThread?>(nil)
    let steps = Atomic<Int>(0)
    let wrong = Atomic<Int>(0)

    init(_ name: String, _ step: @escaping @Sendable () -> Bool) {
        self.name = name
        self.step = step
        Thread.detachNewThread { [self] in
            let thread = RegisteredThread.current()
            registration.withLock { $0 = thread }
            while true {
                if !self.step() { wrong.add(1, ordering: .relaxed) }
                steps.add(1, ordering: .relaxed)
            }
        }
    }

    var thread: RegisteredThread? { registration.withLock { $0 } }
}

/// Whether a wait of `milliseconds` lasted at least that long.
@Sendable func waits(_ milliseconds: UInt64, _ wait: () -> Void) -> Bool {
    let start = now()
    wait()
    return now() - start >= milliseconds * 1_000_000
}

@Sendable func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

let plugin = CommandLine.arguments[0] + "-plugin.so"

let isOwned = CommandLine.arguments.contains("owned")

func makeThreads() -> [StressThread] {
    let pollPipe = stress_empty_pipe()
    let epoll = stress_epoll_on_pipe()
    return [
        StressThread("throws") { victim_throw_once(9) == 9 },
        StressThread("loads and unloads") {
            guard let handle = dlopen(plugin, RTLD_NOW), let run = dlsym(handle, "plugin_run")
            else { return false }
            typealias Run = @convention(c) (@convention(c) (CInt) -> CInt, CInt) -> CInt
            let result = unsafeBitCast(run, to: Run.self)({ $0 + 1 }, 3)
            return dlclose(handle) == 0 && result == 5
        },
        StressThread("forks") { victim_fork_once() == 0 },
        StressThread("allocates") {
            let blocks = (0..<500).map { malloc(16 + $0 * 37 % 3000) }
            for block in blocks { free(block) }
            return true
        },
        StressThread("takes signals") { victim_signal_itself() == 0 },
        StressThread("usleep") { waits(5) { usleep(5_000) } },
        StressThread("poll") {
            var request = pollfd(fd: pollPipe, events: Int16(POLLIN), revents: 0)
            return waits(5) { poll(&request, 1, 5) }
        },
        StressThread("epoll_wait") { waits(5) { stress_epoll_wait(epoll, 5) } },
        StressThread("computes") { (0..<10_000).reduce(0, ^) >= 0 },
    ] + (isOwned ? [StressThread("owns SIGPROF") { stress_profile_itself() == 0 }] : [])
}

/// Captures one of the threads at a given rate, on its own thread.
final class StressSampler: Sendable {
    private let outcomes = Mutex<[String: Int]>([:])
    private let hasEnded = Atomic<Bool>(false)

    init(_ subject: StressThread, perSecond: Double, until end: UInt64) {
        Thread.detachNewThread { [self] in
            var sampler = try! StackSampler()
            let start = now()
            var taken = 0
            while now() < end {
                let outcome = Self.capture(subject, &sampler)
                outcomes.withLock { $0[outcome, default: 0] += 1 }
                taken += 1
                let due = start + UInt64(Double(taken) * 1e9 / perSecond)
                let time = now()
                if due > time { usleep(UInt32((due - time) / 1_000)) }
            }
            hasEnded.store(true, ordering: .releasing)
        }
    }

    /// What became of it, when it is at its end; nil when it does not come there.
    func result(by deadline: UInt64) -> [String: Int]? {
        while !hasEnded.load(ordering: .acquiring) {
            guard now() < deadline else { return nil }
            usleep(1_000)
        }
        return outcomes.withLock { $0 }
    }

    private static func capture(
        _ subject: StressThread, _ sampler: inout StackSampler
    ) -> String {
        do {
            let stack = try sampler.captureStack(of: subject.thread!, timeout: .milliseconds(20))
            if stack.isTruncated { return "truncated" }
            return stack.method == .signal ? "signal" : "signal-free"
        } catch .running {
            return "running, left alone"
        } catch .timedOut {
            return "timed out"
        } catch .answersLater {
            return "answers later"
        } catch { return "\(error)" }
    }
}

@main enum StackStress {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst().compactMap(Int.init)
        let (seconds, rate) = (arguments.first ?? 10, arguments.dropFirst().first ?? 1_000)
        if isOwned { stress_own_sigprof() }
        let threads = makeThreads()
        while threads.contains(where: { $0.thread == nil }) { usleep(1_000) }
        let start = now()
        let end = start + UInt64(seconds) * 1_000_000_000
        let samplers = threads.map {
            StressSampler($0, perSecond: Double(rate) / Double(threads.count), until: end)
        }
        var totals: [String: Int] = [:]
        var wrong = 0
        for (thread, sampler) in zip(threads, samplers) {
            let result = sampler.result(by: end + 30_000_000_000)
            let outcomes = result ?? ["sampler stuck": 1]
            totals.merge(outcomes, uniquingKeysWith: +)
            let steps = thread.steps.load(ordering: .relaxed)
            wrong += thread.wrong.load(ordering: .relaxed)
            if steps == 0 || result == nil { wrong += 1 }
            let listed = outcomes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            print(
                "\(thread.name): steps \(steps), wrong \(thread.wrong.load(ordering: .relaxed));",
                listed.joined(separator: ", "))
        }
        let signals = totals["signal", default: 0]
        let captures = signals + totals["signal-free", default: 0] + totals["truncated", default: 0]
        let perSecond = Int(Double(captures) * 1e9 / Double(now() - start))
        let isGood = wrong == 0 && isOwned == (signals == 0)
        print(
            "stress \(isGood ? "good" : "BAD") captures=\(captures) per_second=\(perSecond)",
            "by_signal=\(signals) asked=\(totals.values.reduce(0, +)) wrong=\(wrong)")
        exit(isGood ? 0 : 1)
    }
}
