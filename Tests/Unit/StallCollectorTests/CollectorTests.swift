import Foundation
import Synchronization
import Testing

@testable import StallCollector
@testable import StallFormats
@testable import StallModel

func digest(_ bytes: [UInt8]) -> [UInt8] { SHA256.digest(bytes) }

/// Goal: every request gets the documented status, and nothing of a refused one is stored.
/// Method: the collector without sockets, on a store in memory; the test owns the clock.
@Suite struct CollectorTests {
    let fixture: CollectorFixture
    let lines = Array("photos 1\nphotos 2\n".utf8)

    init() throws { fixture = try CollectorFixture() }

    @Test func `a batch is stored and acknowledged, and its position is told`() async {
        let before = await fixture.get("/v1/stores/\(CollectorFixture.store)", token: fixture.write)
        #expect(before.text == "{\"through\":0}\n")
        let answer = await fixture.push(lines)
        #expect(answer.status == 200)
        #expect(answer.text == "{\"through\":10,\"added\":2,\"changed\":0,\"unknown\":0}\n")
        let after = await fixture.get("/v1/stores/\(CollectorFixture.store)", token: fixture.write)
        #expect(after.text == "{\"through\":10}\n")
        #expect(fixture.lineCount == 2)
    }

    @Test func `the same batch again is acknowledged and stored once`() async {
        _ = await fixture.push(lines)
        let again = await fixture.push(lines)
        #expect(again.status == 200)
        #expect(again.text.contains("\"added\":0"))
        #expect(fixture.lineCount == 2)
    }

    @Test func `a batch behind a gap is refused with the position`() async {
        let answer = await fixture.push(lines, from: 12, through: 20)
        #expect(answer.status == 409)
        #expect(answer.text == "{\"through\":0}\n")
        #expect(fixture.lineCount == 0)
    }

    @Test func `a wrong line is named`() async {
        let answer = await fixture.push(Array("photos 1\nnonsense\n".utf8))
        #expect(answer.status == 422)
        #expect(
            answer.text
                == "{\"line\":2,\"error\":\"is \\\"no\\\" line\",\"count\":1,\"lines\":[{\"line\":2,\"error\":\"is \\\"no\\\" line\"}]}\n"
        )
        #expect(fixture.lineCount == 0)
    }

    @Test func `a full disk is told with the time to come back`() async {
        fixture.storage.held.withLock { $0.isFull = true }
        let answer = await fixture.push(lines)
        #expect(answer.status == 503)
        #expect(answer.field("retry-after") == "10")
        // What is wrong with the store is the operator's to know.
        #expect(answer.text == "{\"error\":\"nothing can be stored now\"}\n")
        fixture.storage.held.withLock { $0.isFull = false }
        #expect(await fixture.push(lines).status == 200)
    }

    /// Goal: with a locked store each of them would wait for the lock in turn.
    @Test func `batches that wait behind one that cannot be stored are refused with it`() async {
        fixture.storage.held.withLock { $0.isStuck = true }
        let (collector, fixture, lines) = (fixture.collector, fixture, lines)
        let probe = Task { await collector.writer.probe() }
        async let answers = withTaskGroup(of: Int.self) { group in
            for _ in 0..<40 { group.addTask { await fixture.push(lines).status } }
            return await group.reduce(into: [Int]()) { $0.append($1) }
        }
        // The last is counted just before it is handed to the writer.
        while collector.writer.waitingCount < 40 { await Task.yield() }
        fixture.storage.held.withLock { ($0.isStuck, $0.isFull) = (false, true) }
        #expect(await answers == Array(repeating: 503, count: 40))
        _ = await probe.value
        #expect(fixture.storage.held.withLock { $0.groups } == [16])
    }

    @Test(
        arguments: [
            ("content-type", "text/plain", 415), ("content-type", nil, 415),
            ("content-encoding", "br", 415), ("content-encoding", "gzip, gzip", 415),
            ("stallwatch-schema", "2", 415), ("stallwatch-schema", nil, 415),
            ("stallwatch-from", "0", 400), ("stallwatch-from", "-1", 400),
            ("stallwatch-from", "1e3", 400), ("stallwatch-from", nil, 400),
            ("stallwatch-through", "99999999999999999999", 400), ("stallwatch-through", "", 400),
            ("stallwatch-from", "12", 400), ("stallwatch-from", "1, 1", 400),
            ("content-digest", nil, 400), ("content-digest", "sha-256=:AAAA:", 400),
            ("content-digest", "md5=:AAAA:", 400),
            ("content-digest", "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:", 400),
            ("content-length", "99999999999", 413), ("authorization", nil, 401),
            ("authorization", "Bearer", 401), ("authorization", "Bearer swc_wrong", 401),
            ("authorization", "Digest x", 401), ("authorization", "Basic !!!!", 401),
        ] as [(String, String?, Int)])
    func `a head that is wrong is refused`(
        field: String, value: String?, status: Int
    ) async {
        let answer = await fixture.push(lines) { $0.fields[field] = value }
        #expect(answer.status == status)
        #expect(answer.text.hasPrefix("{\"error\":\""))
        #expect(fixture.lineCount == 0)
        #expect(fixture.storage.held.withLock { $0.groups.isEmpty })
    }

    @Test(arguments: [
        "/v1/stores/../healthz", "/v1/stores/%2e%2e/x",
        "/v1/stores/01930000000070008000000000000001%2flines",
        "/v1/stores/01930000000070008000000000000001/../lines",
        "/v1//stores/01930000000070008000000000000001/lines",
        "/v1/stores/01930000000070008000000000000001/lines/",
        "/v1/stores/01930000-0000-7000-8000-000000000001/lines",
        "/v1/stores/0193000000007000800000000000000A/lines",
        "/v1/stores/0193000000007000800000000000001/lines",
        "/v1/stores/019300000000700080000000000000011/lines", "/v1/stores//lines",
        "/v1/stores/\u{661}1930000000070008000000000000001/lines", "", "*",
        "http://x/v1/stores/01930000000070008000000000000001/lines", "/v1/stores/%00/lines",
    ])
    func `other spellings of a path are no path`(target: String) async {
        let answer = await fixture.push(lines) { $0.target = target }
        #expect(answer.status == 404)
        #expect(fixture.lineCount == 0)
    }

    @Test func `methods that a path does not have are refused`() async {
        #expect(await fixture.push(lines) { $0.method = "PUT" }.status == 405)
        #expect(await fixture.push(lines) { $0.method = "GET" }.status == 405)
        #expect(await fixture.push(lines) { $0.target = "/healthz" }.status == 405)
    }

    @Test func `a body that is larger than a batch may be is refused`() async throws {
        var limits = CollectorLimits()
        (limits.bodyBytes, limits.inflatedBytes) = (100, 1000)
        let fixture = try CollectorFixture(limits: limits)
        let long = Array(String(repeating: "photos 1\n", count: 12).utf8)
        // Said, or found out while reading.
        #expect(await fixture.push(long).status == 413)
        #expect(await fixture.push(long) { $0.fields["content-length"] = nil }.status == 413)
        #expect(fixture.lineCount == 0)
    }

    @Test func `memory for bodies is bounded`() async throws {
        var limits = CollectorLimits()
        limits.heldBytes = 10
        let fixture = try CollectorFixture(limits: limits)
        let answer = await fixture.push(lines)
        #expect(answer.status == 503)
        #expect(answer.field("retry-after") == "2")
        // What a refused one took is given back.
        #expect(await fixture.get("/metrics").text.contains("stall_collector_held_bytes 0\n"))
    }

    @Test func `a body that ends early is refused`() async {
        let request = CollectorRequest(
            method: "POST", target: "/v1/stores/\(CollectorFixture.store)/lines",
            fields: [
                "authorization": "Bearer \(fixture.write)", "content-type": "application/x-ndjson",
                "stallwatch-schema": "1", "stallwatch-from": "1", "stallwatch-through": "2",
                "content-digest": digestField([]),
            ])
        let answer = await fixture.collector.respond(to: request) {
            _ throws(CollectorBodyError) in throw .ended
        }
        #expect(answer.status == 408)
    }

    @Test func `health and metrics need no token, and name no app`() async {
        _ = await fixture.push(lines)
        #expect(await fixture.get("/healthz").text == "ok\n")
        let metrics = await fixture.get("/metrics").text
        #expect(metrics.contains("stall_collector_rows_total{result=\"added\"} 2\n"))
        #expect(metrics.contains("stall_collector_requests_total{status=\"200\"}"))
        #expect(!metrics.contains("photos"))
    }

    @Test func `after a stop nothing is taken, and the store is closed`() async {
        fixture.collector.stop()
        let answer = await fixture.push(lines)
        #expect(answer.status == 503)
        #expect(fixture.storage.held.withLock { $0.isClosed })
        #expect(fixture.lineCount == 0)
    }
}
