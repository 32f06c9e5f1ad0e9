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
        of process: pid_t, recordedAs number: pid_t? = nil, in directory: URL
    ) throws -> AgentStore {
        var run = SampleReports.run()
        let here = ProcessLife.current()
        (run.host, run.bootID, run.pid) = (here.host, here.bootID, number ?? process)
        let status = try String(
            contentsOf: URL(filePath: "/proc/\(process)/stat"), encoding: .utf8)
        run.startTicks = try #require(
            UInt64(status.split(separator: ")").last!.split(separator: " ")[19]))
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
    /// Method: a process without the store open is the app, known by its start; who has the store open is this test.
    @Test func `a stall of an app in a namespace below stays open while the app lives`() throws {
        try withTemporaryDirectory { directory in
            let app = Process()
            app.executableURL = URL(filePath: "/usr/bin/sleep")
            app.arguments = ["60"]
            try app.run()
            // Number 1 is the app's in its namespace; here it is another process.
            let store = try openStall(of: app.processIdentifier, recordedAs: 1, in: directory)
            #expect(try states(in: directory, []) == ["open"])
            kill(app.processIdentifier, SIGKILL)
            app.waitUntilExit()
            #expect(try states(in: directory, []) == ["hang"])
            try store.close()
        }
    }
}
