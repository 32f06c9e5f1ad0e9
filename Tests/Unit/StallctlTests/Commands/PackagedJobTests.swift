import Foundation
import StallModel
import StallArchive
import StallQuery
import StallStore
import TestSupport
import Testing

/// Goal: the periodic job runs as it is packaged and documented.
/// Method: the very command lines of the systemd unit and of the cron line, run by a shell in a system whose root is a
/// directory of our own.
@Suite struct PackagedJobTests {
    /// A store with one report.
    func writeStore(_ path: URL) throws {
        try FileManager.default.createDirectory(
            at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
        let store = try AgentStore(path: path.path, run: SampleReports.run())
        try store.record(SampleReports.report(1), images: [])
        try store.close()
    }

    /// Runs a command line without expanding patterns; a variable that is not set is an error.
    func run(_ line: String, root: URL, environment: [String: String]) throws -> ProgramResult {
        let program = BuiltProgram.directory.appending(path: "stallctl").path
        let moved = line.replacing(/(?:\/usr\/bin\/)?stallctl ingest/, with: "\(program) ingest")
            .replacing(/\/(var|srv)\//) { "\(root.path)/\($0.1)/" }
        return try Oracle.run(
            "/bin/sh", ["-f", "-u", "-c", moved],
            environment: environment.mapValues {
                $0.replacing(/\/(var|srv)\//) { "\(root.path)/\($0.1)/" }
            }, directory: root)
    }

    func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    @Test func `the systemd unit imports the stores in its directory, and writes its metrics`()
        throws
    {
        let unit = try String(
            contentsOf: Repository.root.appending(
                path: "packaging/systemd/stallctl-ingest.service"),
            encoding: .utf8)
        func values(_ key: String) -> [String] {
            unit.split(separator: "\n").filter { $0.hasPrefix(key + "=") }
                .map { String($0.dropFirst(key.count + 1)) }
        }
        try withTemporaryDirectory { root in
            var environment = Dictionary(
                uniqueKeysWithValues: values("Environment").map { line in
                    let parts = line.replacing("\"", with: "")
                        .split(separator: "=", maxSplits: 1).map(String.init)
                    return (parts[0], parts[1])
                })
            // systemd.exec(5): several directories are joined with colons.
            let state = values("StateDirectory").flatMap { $0.split(separator: " ") }
                .map { "/var/lib/\($0)" }
            environment["STATE_DIRECTORY"] = state.joined(separator: ":")
            for directory in state {
                try FileManager.default.createDirectory(
                    atPath: root.path + directory, withIntermediateDirectories: true)
            }
            // packaging/tmpfiles.d/stallwatch.conf
            for folder in ["stallwatch/incoming", "private"] {
                try FileManager.default.createDirectory(
                    atPath: root.path + "/var/lib/" + folder, withIntermediateDirectories: true)
            }
            let central = root.appending(path: "var/lib/stallwatch/central.sqlite").path
            #expect(
                FileManager.default.createFile(
                    atPath: central, contents: Data(), attributes: [.posixPermissions: 0o640]))
            let line = try #require(values("ExecStart").first)
            // No agent has written yet: that is no failure.
            let first = try run(line, root: root, environment: environment)
            #expect(first.status == 0 && first.errors == "", "\(first)")
            try writeStore(root.appending(path: "var/lib/stallwatch/incoming/a.sqlite"))
            // A service with StateDirectory=photos, and one with DynamicUser=yes as well.
            try writeStore(root.appending(path: "var/lib/photos/stalls.sqlite"))
            try writeStore(root.appending(path: "var/lib/private/albums/stalls.sqlite"))
            let result = try run(line, root: root, environment: environment)
            #expect(result.status == 0 && result.errors == "")
            #expect(result.output.contains("from 3 files"), "\(result)")
            // Its group may read it, as before; the metrics anyone.
            #expect(try mode(central) == 0o640)
            #expect(try mode(root.path + "/var/lib/stallwatch/ingest.prom") == 0o644)
            let left = try FileManager.default.contentsOfDirectory(
                atPath: root.path + "/var/lib/stallwatch")
            #expect(
                left.sorted() == [
                    "central.sqlite", "central.sqlite-lock", "incoming", "ingest.prom",
                ])
        }
    }

    @Test func `the cron line imports what its glob matches, and prints nothing`() throws {
        let page = try String(
            contentsOf: Repository.root.appending(path: "docs/ingest.md"), encoding: .utf8)
        let line = try #require(page.firstMatch(of: /\* \* \* \* \*\s+(stallctl ingest .*)/))
        try withTemporaryDirectory { root in
            try writeStore(root.appending(path: "srv/photos/stalls/a.sqlite"))
            for folder in ["var/lib/stallwatch", "var/lib/node_exporter"] {
                try FileManager.default.createDirectory(
                    at: root.appending(path: folder), withIntermediateDirectories: true)
            }
            let result = try run(String(line.1), root: root, environment: ["HOME": "/root"])
            #expect(result.status == 0 && result.errors == "" && result.output == "")
            let central = root.appending(path: "var/lib/stallwatch/central.sqlite").path
            #expect(try ReportStore.open(path: central).reports(ReportFilter()).count == 1)
            #expect(
                FileManager.default.fileExists(
                    atPath: root.path + "/var/lib/node_exporter/stallctl.prom"))
        }
    }
}
