import CLinux
import Foundation
import LoopConformance
import StallModel
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: a loop sleeps until its deadline with one system call where the kernel can, and with a timer descriptor where it
/// cannot; nothing else tells the two apart. Method: processes of their own, in which both ways are taken in turn.
@Suite struct WaitTests {
    /// The kernel may end a wait later than asked, so the wait is asked to be shorter.
    @Test(arguments: [
        (stall_slack(least_ns: 50_000, divisor: 1_000), 1_000_000, 950_000),
        (stall_slack(least_ns: 50_000, divisor: 1_000), 50_001, 1),
        (stall_slack(least_ns: 50_000, divisor: 1_000), 50_000, 0),
        (stall_slack(least_ns: 50_000, divisor: 1_000), 1_001_000_000, 1_000_000_000),
        (stall_slack(least_ns: 50_000, divisor: 200), 1_005_000_000, 1_000_000_000),
        (stall_slack(least_ns: 50_000, divisor: 1_000), 3_600_000_000_000, 3_599_900_000_000),
        (stall_slack(least_ns: 0, divisor: 0), 20_000, 20_000),
        (stall_slack(least_ns: 1, divisor: 1_000), 20_020, 20_000),
    ])
    func `a wait is shortened by what the kernel may add`(
        slack: stall_slack, timeout: UInt64, shorter: UInt64
    ) {
        #expect(stall_slack_subtract(slack, timeout) == shorter)
        if shorter > 0, slack.divisor > 0 {
            let added = max(slack.least_ns, min(shorter / UInt64(slack.divisor), 100_000_000))
            #expect(shorter + added <= timeout)
        }
    }

    @Test func `a thread has the slack of its settings`() {
        onFreshThread {
            setTimerSlack(77_000)
            #expect(stall_slack_read().least_ns == 77_000)
            #expect(stall_slack_read().divisor == 1_000)
            guard stall_set_nice(5) == 0 else { return }
            #expect(stall_slack_read().divisor == 200)
        }
    }

    @Test func `no timer fires early, and no run ends early, whichever way it waits`() async {
        await #expect(processExitsWith: .success) {
            eachWay { loop in
                for delay in [1, 20, 49, 60, 300, 2_000, 30_000] {
                    nonisolated(unsafe) var isEarly = false
                    nonisolated(unsafe) var calls = 0
                    let timer = LoopTimer(after: .microseconds(delay)) { timer in
                        calls += 1
                        isEarly = stall_monotonic_ns() < timer.nextFire.nanoseconds
                    }
                    loop.add(timer, toMode: .default)
                    loop.run()
                    guard calls == 1, !isEarly else { return 1 }
                    loop.add(LoopSource { _ in }, toMode: .default)
                    let end = stall_monotonic_ns() + UInt64(delay) * 1_000
                    guard loop.run(for: .microseconds(delay)) == .timedOut else { return 2 }
                    guard stall_monotonic_ns() >= end else { return 3 }
                    loop.removeAllSources()
                }
                return 0
            }
        }
    }

    @Test func `a timer takes a descriptor only where the kernel needs one`() async {
        await #expect(processExitsWith: .success) {
            eachWay { loop in
                let before = ownDescriptors("timerfd")
                loop.perform(after: .milliseconds(2)) {}
                loop.perform(after: .microseconds(20)) {}
                loop.run()
                let taken = ownDescriptors("timerfd") - before
                // The old way took it when the loop was made.
                guard taken == 0, (loop.timerDescriptor >= 0) != loop.waitsPrecisely else {
                    return 1
                }
                guard (try? loop.fileDescriptor()) != nil else { return 2 }
                return loop.timerDescriptor >= 0 ? 0 : 3
            }
        }
    }

    @Test func `a sleep ends for a nearer timer, a post and a stop, before a far deadline`() async {
        await #expect(processExitsWith: .success) {
            eachWay { playFarDeadlines($0) }
        }
    }

    @Test func `signals and stops of the process do not end a sleep`() async {
        await #expect(processExitsWith: .success) {
            eachWay { loop in
                loop.add(LoopSource { _ in }, toMode: .default)
                signal(SIGALRM) { _ in }
                var often = itimerval()
                often.it_interval.tv_usec = 700
                often.it_value.tv_usec = 700
                setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &often, nil)
                let own = getpid()
                let child = forkProcess {
                    usleep(5_000)
                    kill(own, SIGSTOP)
                    usleep(20_000)
                    kill(own, SIGCONT)
                    return 0
                }
                let end = stall_monotonic_ns() + 60_000_000
                let result = loop.run(mode: .default, for: .milliseconds(60))
                let isEarly = stall_monotonic_ns() < end
                var never = itimerval()
                setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &never, nil)
                while waitpid(child, nil, 0) < 0 && errno == EINTR {}
                return result == .timedOut && !isEarly ? 0 : 1
            }
        }
    }

    @Test func `the app's timer slack is what it was, and may change`() async {
        await #expect(processExitsWith: .success) {
            eachWay { loop in
                for slack in [77_000, 1, 5_000_000, 50_000] as [UInt] {
                    setTimerSlack(slack)
                    nonisolated(unsafe) var seen: UInt64 = 0
                    for delay in [10, 30, 1_000, 6_000] {
                        loop.perform(after: .microseconds(delay)) {
                            seen = stall_slack_read().least_ns
                        }
                        loop.run()
                        guard seen == slack else { return 1 }
                    }
                }
                return 0
            }
        }
    }

    /// A sandbox may refuse the call from the start, or once the loop sleeps with it. Both ways end in a timer descriptor, and not
    /// in a loop that asks again and again.
    @Test(arguments: [CInt(ENOSYS), CInt(EPERM), CInt(EACCES)], [false, true])
    func `a loop whose waits are refused takes a timer`(error: CInt, isLate: Bool) async {
        await #expect(processExitsWith: .success) { [error, isLate] in
            onFreshThread {
                guard stall_can_wait_precisely() || !isLate else { exit(0) }
                let early = isLate ? EventRunLoop.current : nil
                early?.perform(after: .milliseconds(1)) {}
                early?.run()
                guard refuseWaits(error) else { exit(0) }
                let loop = EventRunLoop.current
                nonisolated(unsafe) var (calls, rounds) = (0, 0)
                loop.add(
                    LoopObserver(activities: .beforeWaiting) { _, _ in rounds += 1 },
                    toMode: .default)
                for delay in [20, 2_000, 20_000] {
                    loop.perform(after: .microseconds(delay)) { calls += 1 }
                }
                loop.run()
                guard calls == 3 else { exit(1) }
                guard rounds <= 8 else { exit(2) }
                // On a busy machine all of them were due before the first wait.
                for _ in 0..<100 where loop.waitsPrecisely {
                    loop.perform(after: .milliseconds(20)) {}
                    loop.run()
                }
                exit(!loop.waitsPrecisely && loop.timerDescriptor >= 0 ? 0 : 3)
            }
        }
    }

    /// The tool's random sequences, and rows, on a kernel whose waits take no nanoseconds.
    @Test func `the golden table holds with a timer descriptor`() throws {
        let old = ["OLD_WAITS": "1"]
        let random = try BuiltProgram("conformance", ["--random", "300"], environment: old).finish()
        #expect(random.output.contains("random=300 differences=0"), "\(random.output)")
        let row = try BuiltProgram("conformance", ["T4"], environment: old).finish()
        #expect(row.output.contains("conformance agree=1 better=0 of=1"), "\(row.output)")
    }
}

/// Runs `body` with a fresh loop for each way of waiting; ends the process with what it returned first that is not 0.
private func eachWay(_ body: @escaping @Sendable (EventRunLoop) -> CInt) {
    for isOld in [false, true] {
        EventRunLoop.hasOldWaits = isOld
        nonisolated(unsafe) var status: CInt = 0
        onFreshThread {
            let loop = EventRunLoop.current
            precondition(loop.waitsPrecisely == (stall_can_wait_precisely() && !isOld))
            status = body(loop)
        }
        if status != 0 { exit(status + (isOld ? 100 : 0)) }
    }
    exit(0)
}

private func playFarDeadlines(_ loop: EventRunLoop) -> CInt {
    let hour = MonotonicInstant(nanoseconds: stall_monotonic_ns()) + .seconds(3_600)
    let most = MonotonicInstant(nanoseconds: .max - 1)
    for instant in [most, MonotonicInstant(nanoseconds: UInt64(Int64.max)), hour] {
        let timer = LoopTimer(at: instant) { _ in }
        loop.add(timer, toMode: .default)
        for act in 0..<3 {
            Thread {
                while !loop.isWaiting { sched_yield() }
                switch act {
                case 0: loop.perform(after: .milliseconds(1)) { loop.stop() }
                case 1: loop.post { loop.stop() }
                default: loop.stop()
                }
            }.start()
            guard loop.run(mode: .default, for: nil) == .stopped else { return 1 }
        }
        timer.invalidate()
    }
    return 0
}

/// Descriptors of a kind that the process has.
extension EventRunLoop {
    fileprivate func removeAllSources() {
        for source in defaultItems.sources { source.invalidate() }
    }
}

// Swift does not import functions with a variable number of arguments.
private typealias Prctl = @convention(c) (CInt, UInt, UInt, UInt, UInt) -> CInt
private let setting = unsafeBitCast(
    dlsym(UnsafeMutableRawPointer(bitPattern: 0), "prctl"), to: Prctl.self)

private func setTimerSlack(_ nanoseconds: UInt) {
    _ = setting(PR_SET_TIMERSLACK, nanoseconds, 0, 0, 0)
}

/// Makes epoll_pwait2 fail in the calling thread, and in those that it starts. False where there are no filters.
private func refuseWaits(_ error: CInt) -> Bool {
    struct Filter {
        var length: UInt16
        var program: UnsafeMutablePointer<UInt64>
    }
    // Load the number; if it is 441, fail with the error; else allow. An instruction is a code, two jumps and a value.
    var program: [UInt64] = [
        0x20, 0x15 | 1 << 24 | 441 << 32, 0x06 | UInt64(0x5_0000 | error) << 32,
        0x06 | 0x7fff_0000 << 32,
    ]
    return program.withUnsafeMutableBufferPointer { program in
        var filter = Filter(length: 4, program: program.baseAddress!)
        guard setting(38, 1, 0, 0, 0) == 0 else { return false }
        return withUnsafePointer(to: &filter) { setting(22, 2, UInt(bitPattern: $0), 0, 0) == 0 }
    }
}
