import Foundation
import Glibc
import StallModel
import StallStore
import TestSupport
import Testing

/// Goal: who cannot see a process does not say that it was killed. Method: this test is the app, which has its store open and
/// a stall that has not ended; the built program reads the store in a PID namespace of its own, as in the next container.
@Suite struct NamespaceTests {
    /// Needs root, or user namespaces.
    static let isPossible =
        (try? Oracle.run("/usr/bin/unshare", flags + ["/bin/true"], input: Data(), environment: [:]))?
        .status == 0
    static let flags = ["--pid", "--fork", "--mount-proc"]

    /// The states of the reports that `ingest` takes, in order.
    private func states(in directory: URL, _ flags: [String]) throws -> [String] {
        let program = BuiltProgram.directory.appending(path: "stallctl").path
        let environment = ["TZ": "UTC", "HOME": directory.path]
        let taken = try Oracle.run(
            "/usr/bin/env", flags + [program, "ingest", "--store", "c.sqlite", "a.sqlite"],
            input: Data(), environment: environment, directory: directory)
        #expect(taken.status == 0 && taken.errors == "")
        let listed = try Oracle.run(
            program, ["list", "--store", "c.sqlite", "--json"], input: Data(),
            environment: environment, directory: directory)
        return try listed.output.split(separator: "\n").map { line in
            let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(row?["state"] as? String)
        }
    }

    /// A store of this host with an open stall of a process, whose own number for itself may be another one.
    private func openStall(
        of process: pid_t, recordedAs number: pid_t? = nil, shiftedBy seconds: UInt64 = 0,
        in directory: URL
    ) throws -> AgentStore {
        var run = SampleReports.run()
        let here = ProcessLife.current()
        (run.host, run.bootID, run.pid) = (here.host, here.bootID, number ?? process)
        let status = try String(
            contentsOf: URL(filePath: "/proc/\(process)/stat"), encoding: .utf8)
        run.startTicks = try #require(
            UInt64(status.split(separator: ")").last!.split(separator: " ")[19]))
        run.startTicks += seconds * UInt64(sysconf(CInt(_SC_CLK_TCK)))
        let store = try AgentStore(path: directory.appending(path: "a.sqlite").path, run: run)
        var report = SampleReports.report(1)
        (report.run, report.state) = (run, .open)
        try store.record(report, images: [])
        return store
    }

    @Test(.enabled(if: isPossible))
    func `a stall of an app in another PID namespace stays open while the app may live`() throws {
        try withTemporaryDirectory { directory in
            let store = try openStall(of: getpid(), in: directory)
            let unshare = ["unshare"] + Self.flags
            #expect(try states(in: directory, unshare) == ["open"])
            // Where it can be seen.
            #expect(try states(in: directory, []) == ["open"])
            // No process has the store open: as after the end of the app's container.
            try store.close()
            #expect(try states(in: directory, unshare) == ["hang"])
        }
    }

    /// As a job of the machine sees a container that has the machine's host name: each process has a number, another one.
    /// Method: a process in namespaces of its own is the app. This test has the store open throughout.
    @Test(.enabled(if: isPossible), arguments: [0, 100_000] as [UInt64])
    func `a stall of an app in a namespace below stays open while the app lives`(
        boottime: UInt64
    ) throws {
        let time = boottime == 0 ? [] : ["--time", "--boottime", "\(boottime)"]
        try withTemporaryDirectory { directory in
            let outer = Process()
            outer.executableURL = URL(filePath: "/usr/bin/unshare")
            outer.arguments = ["--pid", "--fork"] + time + ["sleep", "60"]
            try outer.run()
            defer { outer.waitUntilExit() }
            let app = try #require(child(of: outer.processIdentifier, named: "sleep"))
            defer { kill(app, SIGKILL) }
            // In its namespace it is number 1. Here that is another process.
            let store = try openStall(
                of: app, recordedAs: 1, shiftedBy: boottime, in: directory)
            #expect(try states(in: directory, []) == ["open"])
            // Not locked.
            let copy = directory.appending(path: "copy")
            try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
            for end in ["", "-wal"] {
                try FileManager.default.copyItem(
                    at: directory.appending(path: "a.sqlite" + end),
                    to: copy.appending(path: "a.sqlite" + end))
            }
            #expect(try states(in: copy, []) == ["open"])
            // Another worker of its container that began in the same tick, and was killed.
            let other = directory.appending(path: "other")
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false)
            let ofOther = try openStall(
                of: app, recordedAs: 4_194_303, shiftedBy: boottime, in: other)
            #expect(try states(in: other, []) == ["hang"])
            try ofOther.close()

            kill(app, SIGKILL)
            outer.waitUntilExit()
            #expect(try states(in: directory, []) == ["hang"])
            try store.close()
        }
    }

    /// The number of a process's only child once it has executed a program.
    private func child(of process: pid_t, named name: String) -> pid_t? {
        for _ in 0..<500 {
            let path = "/proc/\(process)/task/\(process)/children"
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            if let child = text.split(separator: " ").first.flatMap({ pid_t($0) }),
                (try? String(contentsOfFile: "/proc/\(child)/comm", encoding: .utf8))
                    == name + "\n"
            {
                return child
            }
            usleep(10_000)
        }
        return nil
    }
}
