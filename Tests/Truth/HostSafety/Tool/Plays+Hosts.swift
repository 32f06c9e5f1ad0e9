// What a host does to itself: limits, privileges, signals, memory.

import CHostSafety
import Foundation
import StallAgent
import StallModel
import StallQuery
import StallRunLoop
import StallArchive
import Synchronization

extension Play {
    static let hosts: [Play] = [
        // The process lives on with its other threads, as after pthread_exit in `main`. What /proc/self shows is gone.
        Play(name: "main-thread-ended") { stage in
            fflush(stdout)
            let child = host_fork()
            if child == 0 { liveWithoutMain(stage) }
            var status: Int32 = 0
            waitpid(child, &status, 0)
            if status != 0 { print("blind after the end of the main thread: status \(status)") }
        },
        Play(name: "malloc-held", environment: ["MALLOC_ARENA_MAX": "1"]) { stage in
            let monitor = try stage.start()
            // The heap is held for the whole of the stall, by the C library's own lock.
            stage.stall(monitor) { if !host_hold_heap(400_000_000) { usleep(400_000) } }
            stage.stall(monitor) { host_block_heap(400_000_000) }
            stage.stop(monitor)
        },
        Play(name: "malloc-held-for-ever", environment: ["MALLOC_ARENA_MAX": "1"]) { stage in
            // Such a process can write nothing about its stall: the next one must.
            let process = Process()
            process.executableURL = URL(filePath: ownProgram)
            process.arguments = ["play", "inner-malloc-held-for-ever", stage.directory]
            try process.run()
            process.waitUntilExit()
            if process.terminationStatus != SIGKILL { print("crashed before it was killed") }
            let monitor = try stage.start()
            stage.stop(monitor)
            let reports = try ReportStore.open(path: stage.store).stalls()
            let hangs = reports.filter { $0.state == .hang && $0.ending == .killed }
            if hangs.count != 1 || hangs.count != reports.count {
                print("blind \(hangs.count) hangs of 1, \(reports.count) reports")
            }
        },
        Play(name: "inner-malloc-held-for-ever", isInner: true) { stage in
            // Before the heap is held: a thread needs it to begin.
            Thread {
                usleep(1_500_000)
                kill(getpid(), SIGKILL)
            }.start()
            let monitor = try stage.start()
            EventRunLoop.main.perform {
                if !host_hold_heap(60_000_000_000) { host_block_heap(60_000_000_000) }
            }
            withExtendedLifetime(monitor) { stage.rest(.seconds(60)) }
        },
        Play(name: "stop-with-malloc-held", mayLose: true) { stage in
            let monitor = try stage.start()
            stage.stall(monitor)
            let thread = Thread { host_block_heap(1_500_000_000) }
            thread.start()
            usleep(50_000)
            let began = DispatchTime.now().uptimeNanoseconds
            _ = monitor.stop(within: .milliseconds(400))
            let took = DispatchTime.now().uptimeNanoseconds - began
            usleep(1_600_000)
            print("stopped late=\(took > 700_000_000 ? 1 : 0) flushed=0 took=\(took)")
        },
        Play(name: "closed-descriptors", mayLose: true) { stage in
            let monitor = try stage.start()
            stage.stall(monitor)
            for descriptor in 3..<512 as Range<Int32> { close(descriptor) }
            // A loop without descriptors sleeps all the same, and so do the agent's threads once the report is written, which
            // takes up to a second under a sanitizer.
            let used = (0..<4).map { _ in
                let before = clock()
                stage.rest(.milliseconds(500))
                return clock() - before
            }
            if used.min()! > CLOCKS_PER_SEC / 4 { print("crashed spinning") }
            Stage(stage.directory).stall(monitor)
            // Files of the app's own have the agent's numbers by now: no thread of the agent's can be woken by them, and they
            // are neither written nor closed.
            let files = (0..<64).map {
                open(stage.directory + "/own-\($0)", O_RDWR | O_CREAT, 0o600)
            }
            Stage(stage.directory).stall(monitor)
            let began = ContinuousClock.now
            stage.stop(monitor)
            if began.duration(to: .now) > .seconds(2) { print("crashed stop waited") }
            let isUntouched = files.allSatisfy { lseek($0, 0, SEEK_END) == 0 }
            if !isUntouched { print("crashed a file of the app's was written or closed") }
        },
        Play(name: "no-descriptors", mayLose: true) { stage in
            let monitor = try stage.start()
            host_limit(7, 3)
            let done = DispatchSemaphore(value: 0)
            Thread {
                // A loop that is made now has none.
                let loop = EventRunLoop.current
                loop.perform { usleep(150_000) }
                loop.run(until: .now + .milliseconds(300))
                done.signal()
            }.start()
            done.wait()
            EventRunLoop.main.run(mode: LoopMode("another"), for: .milliseconds(50))
            host_limit(7, 1024)
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "no-memory", mayLose: true) { stage in
            let monitor = try stage.start()
            let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
                .split(separator: " ").first.flatMap { UInt64($0) }
            host_limit(9, (pages ?? 0) * 4096 + (24 << 20))
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "no-threads", mayLose: true) { stage in
            chmod(stage.directory, 0o777)
            let monitor = try stage.start()
            setgid(65534)
            setuid(65534)
            host_limit(6, 1)
            stage.stall(monitor)
            let other = try? StallMonitor.start(stage.configuration { $0.store += "2" })
            other?.stop(within: .seconds(2))
            stage.stop(monitor)
        },
        Play(name: "setuid") { stage in
            guard getuid() == 0 else { throw Skipped(reason: "not root") }
            chmod(stage.directory, 0o777)
            let monitor = try stage.start()
            stage.stall(monitor)
            for name in try FileManager.default.contentsOfDirectory(atPath: stage.directory) {
                chown(stage.directory + "/" + name, 65534, 65534)
            }
            setgid(65534)
            setuid(65534)
            stage.stall(monitor) { host_spin(250_000_000) }
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "not-dumpable") { stage in
            let monitor = try stage.start()
            host_make_undumpable()
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(250_000_000) }
            stage.stop(monitor)
        },
        Play(name: "seccomp") { stage in
            let monitor = try stage.start()
            // process_vm_readv
            guard host_deny_call(310, EPERM) == 0 else { throw Skipped(reason: "no seccomp") }
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(250_000_000) }
            stage.stop(monitor)
        },
        Play(name: "no-proc") { stage in
            guard host_hide_proc() else { throw Skipped(reason: "no mount namespace") }
            let monitor = try stage.start()
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(250_000_000) }
            stage.stop(monitor)
        },
        // Neither /proc nor /sys can be opened any more. What the watchdog keeps open must suffice.
        Play(name: "chroot") { stage in
            // The store has the same path inside.
            let jail = stage.directory + "-jail"
            try FileManager.default.createDirectory(
                atPath: jail + stage.directory, withIntermediateDirectories: true)
            guard host_show(stage.directory, jail + stage.directory) else {
                throw Skipped(reason: "no mount namespace")
            }
            let monitor = try stage.start()
            guard host_lock_in(jail) else { throw Skipped(reason: "not root") }
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(250_000_000) }
            stage.stop(monitor)
        },
        Play(name: "no-open") { stage in
            let monitor = try stage.start()
            guard host_deny_openat(EPERM) == 0 else { throw Skipped(reason: "no seccomp") }
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(250_000_000) }
            stage.stop(monitor)
        },
        Play(name: "profiler") { stage in
            host_profile_itself()
            let monitor = try stage.start()
            stage.stall(monitor) { host_spin(250_000_000) }
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "profiler-later") { stage in
            let monitor = try stage.start()
            stage.stall(monitor) {
                host_spin(120_000_000)
                host_profile_itself()
                host_spin(120_000_000)
                // The default action, in the middle of a capture perhaps.
                signal(SIGPROF, SIG_IGN)
                host_spin(120_000_000)
            }
            stage.stop(monitor)
        },
        Play(name: "signal-masks") { stage in
            let monitor = try stage.start()
            stage.stall(monitor) {
                host_block_signals(true)
                host_spin(250_000_000)
                host_block_signals(false)
            }
            stage.stop(monitor)
        },
        Play(name: "crash-handler") { stage in
            let monitor = try stage.start()
            stage.stall(monitor) {
                for _ in 0..<200 {
                    host_fault_and_recover()
                    usleep(1_000)
                }
            }
            stage.stop(monitor)
        },
        // Swift's own handler treats a trap as a fault: it returns, and the program continues after it.
        Play(name: "fatal-signals", environment: ["SWIFT_BACKTRACE": "enable=no"]) { stage in
            // What would have ended the process ends it, by the same signal. The agent handles them to note the time.
            host_handle_one_fault()
            let monitor = try stage.start()
            for (how, signal) in [
                ("trap", SIGTRAP), ("sandbox", SIGSYS), ("abort", SIGABRT), ("reset", SIGSEGV),
            ] {
                let child = host_fork()
                if child == 0 {
                    host_die(how)
                    _exit(77)
                }
                var status: Int32 = 0
                waitpid(child, &status, 0)
                if status & 0x7f != signal { print("crashed not: \(how), status \(status)") }
            }
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "errors") { stage in
            let monitor = try stage.start()
            stage.stall(monitor) {
                for depth in 0..<20_000 { _ = host_throw(Int32(depth % 100)) }
                for depth in 0..<20_000 { _ = try? fail(Int(depth) % 100) }
                host_spin(120_000_000)
            }
            stage.stop(monitor)
        },
    ]

    /// Exits with 0 if the other thread's stalls have names and stacks, and the first thread's open work is no stall.
    private static func liveWithoutMain(_ stage: Stage) -> Never {
        guard let monitor = try? stage.start() else { exit(2) }
        let reports = Mutex<[(loop: String, names: Int)]>([])
        monitor.onStall { report in
            guard report.verdict != .blocking else { return }
            let stacks = report.samples.map { $0.frames.count { $0.function != nil } }
            reports.withLock { $0.append((report.loop, stacks.max() ?? 0)) }
        }
        Thread.detachNewThread {
            usleep(200_000)
            let marks = monitor.watchCurrentThread(as: "other")
            usleep(150_000)
            marks.begin()
            host_spin(300_000_000)
            marks.end()
            usleep(200_000)
            marks.begin()
            host_rest(300_000_000)
            marks.end()
            _ = monitor.stop(within: .seconds(3))
            let seen = reports.withLock { $0 }
            print(seen)
            let others = seen.filter { $0.loop == "other" }
            let areRight = others.count == 2 && others.allSatisfy { $0.names > 2 }
            exit(areRight && others.count == seen.count ? 0 : 3)
        }
        let marks = monitor.watchCurrentThread(as: "first")
        marks.begin()
        withExtendedLifetime(marks) { pthread_exit(nil) }
    }
}

private struct Planned: Error {}

@inline(never) private func fail(_ depth: Int) throws -> Int {
    guard depth > 0 else { throw Planned() }
    return try fail(depth - 1) + 1
}
