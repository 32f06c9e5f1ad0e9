// The page of open stalls is gone before the next agent comes: systemd's RemoveIPC=, a container without /dev/shm.

import CHostSafety
import Foundation
import StallAgent
import StallArchive
import StallModel
import StallQuery
import StallRunLoop

extension Play {
    static let pages: [Play] = [
        Play(name: "page-lost-killed") { stage in
            try stage.losePage(of: "inner-page-killed", .killed, from: 1350, to: 1700)
        },
        Play(name: "page-lost-crashed") { stage in
            try stage.losePage(of: "inner-page-crashed", .crash, from: 1450, to: 1700)
        },
        Play(name: "page-nowhere") { stage in
            try stage.losePage(of: "inner-page-nowhere", .killed, from: 1350, to: 1700)
        },
        Play(name: "page-stopped") { stage in
            try stage.runAsService("inner-page-stopped")
            stage.expectNoCopy()
        },
        Play(name: "page-disk-stuck") { stage in
            if try stage.runAsService("inner-page-disk-stuck") != 0 { print("crashed") }
            stage.expectNoCopy()
        },
        Play(name: "inner-page-disk-stuck", isInner: true) { stage in
            let monitor = try stage.start()
            stage.stall(monitor)
            // From now on the thread that copies waits for ever: nobody reads the pipe.
            for copy in stage.copies {
                unlink(stage.directory + "/" + copy)
                mkfifo(stage.directory + "/" + copy, 0o600)
            }
            if stage.copies.isEmpty { print("crashed there is no copy") }
            stage.stall(monitor)
            stage.stall(monitor, for: .seconds(1))
            stage.stop(monitor, within: .seconds(1))
        },
        Play(name: "inner-page-killed", isInner: true) { stage in
            try stage.dieInStall { kill(getpid(), SIGKILL) }
        },
        Play(name: "inner-page-crashed", isInner: true) { stage in
            try stage.dieInStall { host_die("fault") }
        },
        Play(name: "inner-page-nowhere", isInner: true) { stage in
            guard host_mount_read_only("/dev/shm") else { exit(99) }
            try stage.dieInStall { kill(getpid(), SIGKILL) }
        },
        Play(name: "inner-page-stopped", isInner: true) { stage in
            let monitor = try stage.start()
            stage.stall(monitor)
            if stage.copies.isEmpty { print("crashed there is no copy") }
            stage.stop(monitor)
        },
    ]
}

extension Stage {
    private static let user: uid_t = 65534

    /// Copies of pages beside the store.
    fileprivate var copies: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [])
            .filter { $0.contains(".sqlite-open-") }
    }

    fileprivate func expectNoCopy() {
        if !copies.isEmpty { print("crashed left behind \(copies)") }
    }

    /// Runs a play as systemd runs a service of a user. Returns the status of waitpid.
    @discardableResult
    fileprivate func runAsService(_ play: String) throws -> Int32 {
        guard getuid() == 0 else { throw Skipped(reason: "not root") }
        chmod(directory, 0o777)
        chmod(directory + "/plan", 0o666)
        setenv("INVOCATION_ID", "0123456789abcdef0123456789abcdef", 1)
        defer { unsetenv("INVOCATION_ID") }
        fflush(stdout)
        let words = ["host-safety", "play", play, directory]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        defer { arguments.forEach { free($0) } }
        let user: uid_t = play == "inner-page-nowhere" ? 0 : Self.user
        let status = host_run_as(user, Play.ownProgram, &arguments)
        guard status != -1 else { throw Skipped(reason: "not allowed") }
        return status
    }

    /// The main loop stalls for ever, and the process ends after 1.5 s.
    fileprivate func dieInStall(_ die: @escaping @Sendable () -> Void) throws {
        let monitor = try start()
        Thread {
            host_rest(1_500_000_000)
            die()
        }.start()
        EventRunLoop.main.perform { host_rest(20_000_000_000) }
        rest(.seconds(20))
        monitor.stop()
    }

    /// A stall of a process that dies in it, and whose pages are removed, must be in the store after the next start.
    fileprivate func losePage(
        of play: String, _ ending: StallEnding, from shortest: Int64, to longest: Int64
    ) throws {
        let before = Self.pages()
        try runAsService(play)
        for page in Self.pages().subtracting(before) { unlink("/dev/shm/" + page) }
        try expect(ending, from: shortest, to: longest)
        expectNoCopy()
    }

    private func expect(_ ending: StallEnding, from shortest: Int64, to longest: Int64) throws {
        stop(try start())
        let reports = try ReportStore.open(path: store).stalls()
        let found = reports.map {
            "\($0.state) \($0.ending.map(String.init(describing:)) ?? "-") \($0.duration)"
        }
        print("found \(found)")
        let isRight =
            reports.count == 1 && reports[0].state == .hang && reports[0].ending == ending
            && reports[0].duration >= .milliseconds(shortest)
            && reports[0].duration <= .milliseconds(longest)
        if !isRight { print("blind \(found)") }
    }

    private static func pages() -> Set<String> {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/shm")) ?? []
        return Set(
            names.filter { name in
                var facts = stat()
                return name.hasPrefix("stallwatch-") && lstat("/dev/shm/" + name, &facts) == 0
                    && facts.st_uid == user
            })
    }
}
