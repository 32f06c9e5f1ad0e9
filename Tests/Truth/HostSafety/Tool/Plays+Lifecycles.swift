// Starting, stopping, forking and executing.

import CHostSafety
import CLinux
import Foundation
import Logging
import StallAgent
import StallRunLoop

extension Play {
    static let lifecycles: [Play] = [
        Play(name: "plain") { stage in
            let monitor = try stage.start()
            stage.stall(monitor)
            stage.stall(monitor, for: .milliseconds(600))
            stage.stop(monitor)
        },
        Play(name: "stop-anywhere") { stage in
            // Monitors that come and go on other threads, beside the one that counts.
            let monitor = try stage.start()
            let threads = (0..<3).map { number in
                let configuration = stage.configuration {
                    $0.store = stage.directory + "/other\(number).sqlite"
                }
                return start {
                    for _ in 0..<6 {
                        guard let other = try? StallMonitor.start(configuration) else { continue }
                        other.watch(EventRunLoop.current, as: "other")
                        let marks = other.watchCurrentThread(as: "marks")
                        marks.begin()
                        usleep(UInt32.random(in: 1_000...60_000))
                        if Bool.random() { marks.end() }
                        other.stop(within: .seconds(3))
                    }
                }
            }
            stage.stall(monitor)
            for thread in threads { thread.wait() }
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "fork") { stage in
            let monitor = try stage.start()
            stage.stall(monitor)
            let child = host_fork()
            if child == 0 {
                // The parent's resources are not touched; the loop continues with its own descriptors.
                stage.rest(.milliseconds(50))
                stage.stop(monitor)
                guard monitor.restartAfterFork() else { _exit(3) }
                monitor.watch(EventRunLoop.main, as: "main")
                stage.settle()
                stage.stall(monitor)
                stage.stop(monitor)
                fflush(stdout)
                _exit(0)
            }
            stage.stall(monitor)
            stage.stall(monitor)
            try expectSuccess(of: child)
            stage.stop(monitor)
        },
        Play(name: "daemonize") { stage in
            // The monitor starts too early, as when a library starts it.
            let monitor = try stage.start()
            let child = host_fork()
            if child == 0 {
                setsid()
                for descriptor in 3..<256 as Range<Int32> { close(descriptor) }
                monitor.restartAfterFork()
                monitor.watch(EventRunLoop.main, as: "main")
                stage.settle()
                let late = Stage(stage.directory)
                late.stall(monitor)
                late.stop(monitor)
                fflush(stdout)
                _exit(0)
            }
            try expectSuccess(of: child)
            stage.stop(monitor)
        },
        Play(name: "vfork") { stage in
            let monitor = try stage.start()
            stage.stall(monitor) {
                for _ in 0..<40 {
                    var status: Int32 = 0
                    waitpid(host_vfork_exec("/bin/true", "x"), &status, 0)
                    if status != 0 { print("successor killed") }
                }
                usleep(150_000)
            }
            stage.stop(monitor)
        },
        Play(name: "exec") { stage in
            // It computes with SIGPROF blocked, so that a signal for it would stay pending.
            let monitor = try stage.start()
            stage.stall(monitor) {
                host_block_signals(true)
                host_spin(300_000_000)
            }
            stage.stop(monitor)
            if getenv("SABOTAGE") != nil { host_leave_profile_signal() }
            fflush(stdout)
            execl(CommandLine.arguments[0], ["host-safety", "successor"])
        },
        Play(name: "stuck-callback", mayLose: true) { stage in
            let monitor = try stage.start()
            monitor.onStall { _ in sleep(30) }
            stage.stall(monitor)
            stage.stop(monitor, within: .milliseconds(400))
        },
        Play(name: "stuck-logger", mayLose: true) { stage in
            // A log handler that waits for the thread that stops the agent.
            let monitor = try stage.start {
                $0.store = "/proc/store.sqlite"
                $0.logger = Logger(label: "stuck") { _ in StuckHandler() }
            }
            stage.stall(monitor)
            stage.stop(monitor, within: .milliseconds(500))
        },
    ]

    private static func start(_ body: @escaping @Sendable () -> Void) -> DispatchSemaphore {
        let done = DispatchSemaphore(value: 0)
        let thread = Thread {
            body()
            done.signal()
        }
        thread.start()
        return done
    }
}

private struct StuckHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
    func log(event: LogEvent) {
        if !Thread.isMainThread { DispatchQueue.main.sync {} }
    }
}

private func execl(_ program: String, _ arguments: [String]) {
    var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
    pointers.append(nil)
    execv("/proc/self/exe", pointers)
}

struct ChildFailed: Error { let status: Int32 }

func expectSuccess(of child: pid_t) throws {
    var status: Int32 = 0
    waitpid(child, &status, 0)
    if status & 0x7f != 0 { print("crashed signal=\(status & 0x7f)") }
    if status != 0 { throw ChildFailed(status: status) }
}
