// How the process ends while it is stuck: an exit must not wait for the heap, a log handler or a disk.

import CHostSafety
import Foundation
import Logging
import StallAgent
import StallRunLoop
import Synchronization

extension Play {
    static let exits: [Play] = [
        // The supervisor of an app that hangs exits, to be restarted.
        Play(name: "exit-with-malloc-held") { stage in try stage.measureExit("inner-exit-malloc") },
        Play(name: "inner-exit-malloc", isInner: true) { stage in
            let monitor = try stage.start()
            let second = try StallMonitor.start(
                stage.configuration { $0.store = stage.directory + "/store2.sqlite" })
            second.watch(EventRunLoop.main, as: "again")
            stage.stall(monitor)
            exitSoon(stage)
            host_block_heap(5_000_000_000)
        },
        Play(name: "exit-with-arena-held", environment: ["MALLOC_ARENA_MAX": "1"]) { stage in
            try stage.measureExit("inner-exit-arena")
        },
        Play(name: "inner-exit-arena", isInner: true) { stage in
            _ = try stage.start()
            exitSoon(stage)
            if !host_hold_heap(5_000_000_000) { sleep(1) }
        },
        Play(name: "exit-with-log-held") { stage in try stage.measureExit("inner-exit-log") },
        Play(name: "inner-exit-log", isInner: true) { stage in
            // A store in a directory that cannot be made: the recorder logs that, and its handler never returns.
            let monitor = try stage.start {
                $0.store = "/proc/none/store.sqlite"
                $0.logger = Logger(label: "held", factory: { _ in HeldLog() })
            }
            stage.rest(.milliseconds(100))
            withExtendedLifetime(monitor) { exitSoon(stage) }
            sleep(5)
        },
        // The disk is full and the log collector is stuck: the agent's own lines wait for neither stdio nor the pipe.
        Play(name: "exit-with-standard-error-full") { stage in
            try stage.measureExit("inner-exit-standard-error")
        },
        Play(name: "inner-exit-standard-error", isInner: true) { stage in
            alarm(10)
            host_fill_standard_error()
            _ = try StallMonitor.start(stage.configuration { $0.store = "/proc/none/store" })
            stage.rest(.milliseconds(200))
            exitSoon(stage)
            fflush(nil)
            sleep(5)
        },
        Play(name: "exit-while-callback-runs") { stage in
            try stage.measureExit("inner-exit-callback")
        },
        Play(name: "inner-exit-callback", isInner: true) { stage in
            let monitor = try stage.start()
            monitor.onStall { _ in sleep(5) }
            stage.stall(monitor)
            exitSoon(stage)
            sleep(5)
        },
        // The agent's threads run on while the app's objects are destroyed, but call nothing of the app's.
        Play(name: "exit-before-callback") { stage in
            atexit {
                Callbacks.areForbidden.store(true, ordering: .sequentiallyConsistent)
                host_rest(800_000_000)
            }
            let monitor = try stage.start()
            monitor.onStall { _ in
                if Callbacks.areForbidden.load(ordering: .sequentiallyConsistent) {
                    print("crashed a callback after the app's own exit handler")
                }
                host_rest(400_000_000)
            }
            stage.stall(monitor, for: .milliseconds(120))
            stage.stall(monitor, for: .milliseconds(120))
            exit(0)
        },
    ]
}

private enum Callbacks {
    static let areForbidden = Atomic<Bool>(false)
}

/// A handler that keeps the agent's thread.
private struct HeldLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }
    func log(event: LogEvent) { sleep(5) }
}

/// Another thread exits in half a second, as a supervisor does that has noticed the hang.
private func exitSoon(_ stage: Stage) {
    host_exit_soon(500_000_000, stage.directory + "/exiting")
}

extension Stage {
    /// Runs a play that exits with status 7, and measures how long that takes.
    fileprivate func measureExit(_ play: String) throws {
        let process = Process()
        process.executableURL = URL(filePath: Play.ownProgram)
        process.arguments = ["play", play, directory]
        try process.run()
        process.waitUntilExit()
        let now = host_now()
        guard process.terminationReason == .exit, process.terminationStatus == 7,
            let data = FileManager.default.contents(atPath: directory + "/exiting"), data.count == 8
        else { return print("exit late: status \(process.terminationStatus)") }
        let began = data.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        let took = Duration.nanoseconds(Int64(now - began))
        // 100 ms is the promise; a busy machine takes its time to start and end threads.
        print(took > .milliseconds(400) ? "exit late: \(took)" : "exit took \(took)")
    }
}
