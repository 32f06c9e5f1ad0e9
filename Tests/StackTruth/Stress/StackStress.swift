// Does the sampler harm its host? Captures threads that live dangerously, as fast as asked, and counts what went wrong:
//
//     stack-stress SECONDS [CAPTURES-PER-SECOND] [owned]
//
// The threads throw C++ exceptions, load and unload a plug-in, fork, allocate, take signals of their own, and wait with
// usleep, poll and epoll_wait, whose early returns are counted. A deadlock shows as a thread that makes no progress.
// With `owned` the process has a SIGPROF handler of its own before the sampler comes, and a thread that sends itself
// SIGPROF: each must arrive, and no thread may be signalled by the sampler.

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
            let thread = try! RegisteredThread.current()
            registration.withLock { $0 = thread }
            while true {
                if !self.step() { wrong.add(1, ordering: .relaxed) }
                steps.add(1, ordering: .relaxed)
            }
        }
    }

    var thread: RegisteredThread? { registration.withLock { $0 } }
}

/// Whether a wait of `milliseconds` took at least that long.
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

@main enum StackStress {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst().compactMap(Int.init)
        let (seconds, rate) = (arguments.first ?? 10, arguments.dropFirst().first ?? 1_000)
        if isOwned { stress_own_sigprof() }
        let threads = makeThreads()
        var sampler = try StackSampler()
        while threads.contains(where: { $0.thread == nil }) { usleep(1_000) }
        var counts = [String: Int]()
        let start = now()
        var taken = 0
        while now() - start < UInt64(seconds) * 1_000_000_000 {
            let subject = threads[taken % threads.count]
            do {
                let stack = try sampler.captureStack(
                    of: subject.thread!, timeout: .milliseconds(20))
                counts[stack.method == .signal ? "signal" : "signal-free", default: 0] += 1
                if stack.isTruncated { counts["truncated \(subject.name)", default: 0] += 1 }
            } catch .running {
                counts["running, left alone", default: 0] += 1
            } catch .timedOut { counts["timed out \(subject.name)", default: 0] += 1 } catch {
                counts["\(error)", default: 0] += 1
            }
            taken += 1
            let due = start + UInt64(taken) * 1_000_000_000 / UInt64(rate)
            if due > now() { usleep(UInt32((due - now()) / 1_000)) }
        }
        let lasted = Double(now() - start) / 1e9
        print(
            "captures \(taken) in \(Int(lasted)) s: \(counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })"
        )
        var isGood = isOwned == (counts["signal", default: 0] == 0)
        for thread in threads {
            let (steps, wrong) = (
                thread.steps.load(ordering: .relaxed), thread.wrong.load(ordering: .relaxed)
            )
            isGood = isGood && steps > 0 && wrong == 0
            print("\(thread.name): steps \(steps), wrong \(wrong)")
        }
        print("stress \(isGood ? "good" : "BAD")")
        exit(isGood ? 0 : 1)
    }
}
