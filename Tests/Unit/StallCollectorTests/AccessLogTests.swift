import Foundation
import TestSupport
import Testing

@testable import StallCollector

/// Goal: every request is in the access log, whatever is asked, and no secret is; a log that cannot be written holds up
/// no answer.
@Suite final class AccessLogTests {
    let directory = FileManager.default.temporaryDirectory.appending(
        path: "access-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    private func lines(_ url: URL) throws -> [[String: Any]] {
        try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map {
            try #require(
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any], "\($0)")
        }
    }

    @Test func `each request is a line with its token's id, sizes and status`() async throws {
        let url = directory.appending(path: "access")
        let fixture = try CollectorFixture(accessLog: try AccessLog(url.path))
        _ = await fixture.push(Array("photos 1\n".utf8))
        _ = await fixture.get("/healthz")
        _ = await fixture.get("/v1/top?app=\"\u{1b}[2J\n", token: "swc_wrong")
        _ = await fixture.get("/" + String(repeating: "x", count: 9000))
        fixture.collector.stop()
        let lines = try lines(url)
        #expect(lines.map { $0["status"] as? Int } == [200, 200, 401, 404])
        #expect(lines.map { $0["method"] as? String } == ["POST", "GET", "GET", "GET"])
        #expect(lines[0]["received_bytes"] as? Int == 9)
        #expect((lines[0]["sent_bytes"] as? Int ?? 0) > 10)
        #expect(lines[0]["peer"] as? String == "local")
        #expect(lines[0]["time"] as? String == "2027-01-15T08:00:00.000000Z")
        let token = try #require(TokenFile(fixture.tokenPath).tokens.token(fixture.write))
        #expect(lines[0]["token"] as? String == token.id)
        #expect(lines[1]["token"] is NSNull && lines[2]["token"] is NSNull)
        #expect(lines[2]["target"] as? String == "/v1/top?app=\"\u{1b}[2J\n")
        #expect((lines[3]["target"] as? String ?? "").count < 2100)
        let text = try String(contentsOf: url, encoding: .utf8)
        #expect(!text.contains(fixture.write) && !text.contains("\u{1b}"))
    }

    @Test func `a log that was moved is begun anew`() async throws {
        let (url, old) = (directory.appending(path: "access"), directory.appending(path: "old"))
        let fixture = try CollectorFixture(accessLog: try AccessLog(url.path))
        _ = await fixture.get("/healthz")
        while try lines(url).isEmpty { await Task.yield() }
        try FileManager.default.moveItem(at: url, to: old)
        _ = await fixture.get("/nothing")
        fixture.collector.stop()
        #expect(try lines(old).map { $0["target"] as? String } == ["/healthz"])
        #expect(try lines(url).map { $0["target"] as? String } == ["/nothing"])
    }

    /// Goal: neither a request nor the end waits for the reader of a pipe.
    @Test func `a pipe in the log's place holds up nothing`() async throws {
        let url = directory.appending(path: "access")
        #expect(mkfifo(url.path, 0o600) == 0)
        #expect(throws: AccessLogError.self) { try AccessLog(url.path) }
        let reader = open(url.path, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        let fixture = try CollectorFixture(accessLog: try AccessLog(url.path))
        // It is not read, and a pipe has room for 64 KB.
        for _ in 0..<100 {
            _ = await fixture.get("/" + String(repeating: "x", count: 1500))
        }
        fixture.collector.stop()
        #expect(fixture.collector.accessLog.map { $0.droppedCount > 0 } == true)
    }

    @Test func `a pipe that replaces the log holds up nothing`() async throws {
        let url = directory.appending(path: "access")
        let fixture = try CollectorFixture(accessLog: try AccessLog(url.path))
        try FileManager.default.removeItem(at: url)
        #expect(mkfifo(url.path, 0o600) == 0)
        #expect(await fixture.get("/healthz").status == 200)
        fixture.collector.stop()
    }

    @Test func `lines that a full disk takes no more are counted`() async throws {
        let fixture = try CollectorFixture(accessLog: try AccessLog("/dev/full"))
        #expect(await fixture.get("/healthz").status == 200)
        let name = "stall_collector_access_log_dropped_total"
        while await fixture.get("/metrics").text.contains("\n\(name) 0\n") { await Task.yield() }
        // Also while nothing can be written.
        #expect(await fixture.get("/metrics").text.contains("\n\(name) "))
        #expect(throws: AccessLogError.self) { try AccessLog("/nowhere/access") }
    }
}
