// The process's identity in the kernel: file capabilities, another PID namespace. Each executes the program again.

import CHostSafety
import Foundation
import StallAgent
import StallModel
import StallRunLoop

extension Play {
    static let identities: [Play] = [
        Play(name: "file-capabilities") { stage in
            // A process that has gained rights by its file is not dumpable from the beginning.
            guard getuid() == 0 else { throw Skipped(reason: "not root") }
            let program = stage.directory + "/with-capability"
            try FileManager.default.copyItem(atPath: ownProgram, toPath: program)
            guard host_give_capability(program) else {
                throw Skipped(reason: "the file system knows no capabilities")
            }
            chmod(stage.directory, 0o777)
            chmod(stage.directory + "/plan", 0o666)
            defer { unlink(program) }
            try stage.run("inner-capability") { host_run_as(65534, program, $0) }
        },
        Play(name: "inner-capability", isInner: true) { stage in
            guard !host_is_dumpable() else {
                throw Skipped(reason: "capabilities of files count for nothing here")
            }
            let seen = SeenReports()
            let monitor = try stage.start()
            seen.follow(monitor)
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(300_000_000) }
            stage.stop(monitor)
            seen.expect { $0.frames > 0 || $0.failure.contains("not dumpable") }
            if seen.all.allSatisfy({ $0.frames == 0 }) { print("crashed no stack at all") }
        },
        Play(name: "pid-namespace") { stage in
            try stage.run("inner-pid-namespace") { host_run_in_pid_namespace(ownProgram, $0) }
        },
        Play(name: "inner-pid-namespace", isInner: true) { stage in
            let seen = SeenReports()
            // Its own threads and a lock's holder are known by gettid's numbers; /proc has others.
            let monitor = try stage.start { $0.threads = .all }
            seen.follow(monitor)
            let lock = NSLock()
            stage.stall(monitor)
            stage.stall(monitor) { host_spin(300_000_000) }
            let isHeld = DispatchSemaphore(value: 0)
            let holder = Thread {
                lock.withLock {
                    isHeld.signal()
                    host_rest(400_000_000)
                }
            }
            holder.start()
            isHeld.wait()
            stage.stall(monitor) { lock.withLock {} }
            stage.stop(monitor)
            seen.expect { $0.frames > 0 && $0.unreadable.isEmpty }
            // The lock's holder: a thread that did not register itself.
            if !seen.all.contains(where: { $0.namesHolder && $0.otherFrames > 0 }) {
                print("crashed no holder of the lock")
            }
        },
    ]

    static var ownProgram: String {
        URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().path
    }
}

extension Stage {
    /// Runs another play in a new process, in this one's directory.
    fileprivate func run(
        _ play: String, _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32
    ) throws {
        fflush(stdout)
        let words = ["host-safety", "play", play, directory]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        let status = body(&arguments)
        guard status != -1 else { throw Skipped(reason: "not allowed on this machine") }
        if status & 0x7f != 0 { print("crashed signal=\(status & 0x7f)") }
        if status != 0 { throw ChildFailed(status: status) }
    }
}
