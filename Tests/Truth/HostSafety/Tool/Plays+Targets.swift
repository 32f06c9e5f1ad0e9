// Watch targets, and files that change under the agent.

import CHostSafety
import Foundation
import Logging
import StallAgent
import StallRunLoop

extension Play {
    static let targets: [Play] = [
        Play(name: "all-targets") { stage in
            let monitor = try stage.start { $0.threads = .all }
            monitor.watchCooperativePool()
            let queue = DispatchQueue(label: "work")
            monitor.watch(queue, as: "work")
            let done = DispatchSemaphore(value: 0)
            Thread {
                monitor.watch(RunLoop.current, as: "foundation")
                let timer = Timer(timeInterval: 0.05, repeats: false) { _ in usleep(200_000) }
                RunLoop.current.add(timer, forMode: .default)
                RunLoop.current.run(until: Date() + 0.5)
                done.signal()
            }.start()
            queue.async { usleep(200_000) }
            for _ in 0..<4 { Task.detached { _ = usleep(150_000) } }
            stage.stall(monitor)
            done.wait()
            stage.stop(monitor)
        },
        Play(name: "threads-come-and-go") { stage in
            let monitor = try stage.start { $0.threads = .all }
            let done = DispatchSemaphore(value: 0)
            Thread {
                for _ in 0..<60 {
                    let thread = Thread {
                        let marks = monitor.watchCurrentThread(as: "short")
                        marks.begin()
                        usleep(UInt32.random(in: 100...8_000))
                    }
                    thread.start()
                    usleep(5_000)
                }
                done.signal()
            }.start()
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(250_000_000) }
            done.wait()
            stage.stop(monitor)
        },
        Play(name: "two-monitors") { stage in
            let monitor = try stage.start()
            let other = try StallMonitor.start(
                stage.configuration { $0.store = stage.directory + "/other.sqlite" })
            other.watch(EventRunLoop.main, as: "main")
            stage.settle()
            stage.stall(monitor)
            other.stop(within: .seconds(3))
            stage.rest(.milliseconds(200))
            stage.stall(monitor)
            stage.stop(monitor)
        },
        // As withMainSerialExecutor does: another hook for a while, then none.
        Play(name: "jobs-hook-replaced") { stage in
            for chains in [false, true] {
                let first = try stage.start()
                first.watchTasks()
                stage.rest(.milliseconds(50))
                host_hook_jobs(chains)
                stage.rest(.milliseconds(50))
                let second = try StallMonitor.start(
                    stage.configuration { $0.store = stage.directory + "/store-\(chains).sqlite" })
                second.watchTasks()
                stage.rest(.milliseconds(50))
                try stage.stallInTask(second, "over another hook")
                host_clear_jobs_hook()
                stage.stop(second)
                stage.stop(first)
            }
            let monitor = try stage.start()
            monitor.watchTasks()
            stage.rest(.milliseconds(50))
            try stage.stallInTask(monitor, "after another hook")
            stage.stop(monitor)
        },
    ]

    static let files: [Play] = [
        Play(name: "libraries") { stage in
            let monitor = try stage.start()
            let copy = stage.directory + "/libz.so"
            guard let library = find("libz.so.1") ?? find("liblzma.so.5") else {
                throw Skipped(reason: "no library to copy")
            }
            try FileManager.default.copyItem(atPath: library, toPath: copy)
            stage.stall(monitor) {
                for _ in 0..<100 {
                    guard let handle = dlopen(copy, RTLD_NOW) else {
                        print("crashed no dlopen"); return
                    }
                    dlclose(handle)
                }
                usleep(150_000)
            }
            stage.stop(monitor)
        },
        Play(name: "truncated-library") { stage in
            let monitor = try stage.start()
            guard let library = find("libz.so.1") ?? find("liblzma.so.5") else {
                throw Skipped(reason: "no library to copy")
            }
            // All are loaded before the first is truncated: the loader reads those that are there.
            let copies = try (0..<3).map { number in
                let copy = stage.directory + "/lib\(number).so"
                try FileManager.default.copyItem(atPath: library, toPath: copy)
                if dlopen(copy, RTLD_NOW) == nil { print("crashed \(copy) cannot be loaded") }
                return copy
            }
            truncate(copies[0], 0)
            unlink(copies[1])
            try "replaced".write(toFile: copies[1], atomically: true, encoding: .utf8)
            unlink(copies[2])
            stage.stall(monitor)
            stage.stop(monitor)
            // At an exit the loader itself reads what was truncated.
            fflush(stdout)
            _exit(0)
        },
        Play(name: "bad-stores", mayLose: true) { stage in
            let paths = try badStores(stage)
            for path in paths {
                let monitor = try stage.start { $0.store = path }
                Stage(stage.directory + "/elsewhere").stall(monitor, for: .milliseconds(150))
                stage.stop(monitor)
            }
        },
        Play(name: "store-of-another", mayLose: true) { stage in
            // Stores that may be read and not written, and neither.
            try makeStores(["readable", "hidden"], stage)
            chmod(stage.directory + "/readable.sqlite", 0o444)
            chmod(stage.directory + "/hidden.sqlite", 0o000)
            chmod(stage.directory + "/elsewhere", 0o777)
            chmod(stage.directory + "/elsewhere/plan", 0o666)
            chmod(stage.directory, 0o555)
            if getuid() == 0 {
                setgid(65534)
                setuid(65534)
            }
            try playUnwritable(["readable", "hidden", "missing"], stage)
        },
        Play(name: "read-only-mount", mayLose: true) { stage in
            try makeStores(["mounted"], stage)
            guard host_mount_read_only(stage.directory) else {
                throw Skipped(reason: "no mount namespace")
            }
            try playUnwritable(["mounted", "missing"], stage)
        },
    ]

    private static func makeStores(_ names: [String], _ stage: Stage) throws {
        for name in names {
            let path = stage.directory + "/" + name + ".sqlite"
            let monitor = try StallMonitor.start(stage.configuration { $0.store = path })
            monitor.stop(within: .seconds(3))
        }
        _ = Stage(stage.directory + "/elsewhere")
    }

    /// An agent without a store lives on and says so, once.
    private static func playUnwritable(_ names: [String], _ stage: Stage) throws {
        for name in names {
            let lines = LogLines()
            let monitor = try stage.start {
                $0.store = stage.directory + "/" + name + ".sqlite"
                $0.logger = lines.logger
            }
            Stage(stage.directory + "/elsewhere").stall(monitor, for: .milliseconds(150))
            stage.stop(monitor)
            if lines.count == 0 { print("crashed silent: \(name) is not written, without a line") }
        }
    }

    /// The file itself: a copy of a link to it would lead nowhere.
    private static func find(_ name: String) -> String? {
        ["/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/lib64/", "/usr/lib/"]
            .map { $0 + name }.first { access($0, R_OK) == 0 }
            .map { URL(filePath: $0).resolvingSymlinksInPath().path }
    }

    /// Invalid stores, by the kind of file in their place.
    private static func badStores(_ stage: Stage) throws -> [String] {
        let root = stage.directory
        func path(_ name: String) -> String { root + "/" + name + ".sqlite" }
        try String(repeating: "garbage ", count: 900)
            .write(toFile: path("garbage"), atomically: false, encoding: .utf8)
        mkdir(path("directory"), 0o700)
        mkfifo(path("fifo"), 0o600)
        symlink(root + "/nowhere/at/all", path("dangling"))
        try Data().write(to: URL(filePath: path("empty")))
        // A store of ours with a header that no store has.
        for (name, offset, bytes) in [
            ("negative", 60, [0xff, 0xff, 0xff, 0xfe] as [UInt8]),
            ("newer", 60, [0x7f, 0xff, 0xff, 0xff]), ("page-size", 16, [0x00, 0x03]),
        ] {
            let monitor = try StallMonitor.start(stage.configuration { $0.store = path(name) })
            monitor.stop(within: .seconds(3))
            let file = open(path(name), O_RDWR)
            _ = bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(offset)) }
            close(file)
        }
        for suffix in ["-wal", "-shm", "-journal"] {
            mkfifo(path("wal" + suffix) + suffix, 0o600)
        }
        return [
            "garbage", "directory", "fifo", "dangling", "empty", "negative", "newer", "page-size",
            "wal-wal", "wal-shm", "wal-journal",
        ].map { path($0) } + ["/proc/self/mem", "/dev/null", "/dev/full", ""]
    }
}

/// Counts what the agent says.
private final class LogLines: @unchecked Sendable {
    // Unchecked because of the lock.
    private let lock = NSLock()
    private var lines = 0

    var count: Int { lock.withLock { lines } }
    var logger: Logger { Logger(label: "counted") { [self] _ in Handler(lines: self) } }

    private struct Handler: LogHandler {
        let lines: LogLines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.notice
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) {
            lines.lock.withLock { lines.lines += 1 }
            print("log: \(event.message)")
        }
    }
}

extension Stage {
    /// A job that blocks its thread must be reported.
    fileprivate func stallInTask(_ monitor: StallMonitor, _ place: String) throws {
        let reported = DispatchSemaphore(value: 0)
        monitor.onStall { report in
            if report.loop == "tasks" { reported.signal() }
        }
        Task.detached { host_rest(300_000_000) }
        let limit = DispatchTime.now() + 5
        while reported.wait(timeout: .now()) == .timedOut {
            guard DispatchTime.now() < limit else { return print("blind a job \(place)") }
            rest(.milliseconds(20))
        }
    }
}
