// What else a process inherits or sets for itself before it starts the agent: resource limits, umask, working directory.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop

extension Play {
    static let limits: [Play] = [
        // An RLIMIT_* of Linux. Without memory for queued signals the kernel delivers those of the agent without their content.
        limit("pending-signals", 11, 0), limit("locked-memory", 8, 0), limit("stack", 3, 1 << 16),
        limit("descriptors-64", 7, 64), limit("core", 4, 0),
        // A write beyond the limit sends SIGXFSZ, which ends a process that does not handle it.
        limit("file-size", 1, 150_000, mayLose: true), limit("no-file", 1, 4096, mayLose: true),
        Play(name: "umask") { stage in
            guard getuid() == 0 else { throw Skipped(reason: "not root") }
            chown(stage.directory, 65534, 65534)
            chown(stage.directory + "/plan", 65534, 65534)
            setgid(65534)
            setuid(65534)
            umask(0o777)
            let monitor = try stage.start {
                $0.store = stage.directory + "/made/for/it/store.sqlite"
            }
            stage.stall(monitor)
            stage.stop(monitor)
            rename(stage.directory + "/made/for/it/store.sqlite", stage.store)
        },
        Play(name: "working-directory") { stage in
            _ = FileManager.default.changeCurrentDirectoryPath(stage.directory)
            let monitor = try stage.start { $0.store = "store.sqlite" }
            _ = FileManager.default.changeCurrentDirectoryPath("/")
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "working-directory-removed") { stage in
            let directory = stage.directory + "/removed"
            mkdir(directory, 0o755)
            _ = FileManager.default.changeCurrentDirectoryPath(directory)
            rmdir(directory)
            let monitor = try stage.start()
            stage.stall(monitor)
            stage.stop(monitor)
        },
    ]

    private static func limit(
        _ name: String, _ resource: Int32, _ value: UInt64, mayLose: Bool = false
    ) -> Play {
        Play(name: "limit-\(name)", mayLose: mayLose) { stage in
            host_limit(resource, value)
            let monitor = try stage.start()
            let seen = SeenReports()
            seen.follow(monitor)
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(300_000_000) }
            stage.stop(monitor)
            if !mayLose { seen.expectStack() }
        }
    }
}
