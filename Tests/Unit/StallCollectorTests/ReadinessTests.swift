import Foundation
import StallModel
import Synchronization
import Testing

@testable import StallCollector
@testable import StallStore

/// Goal: a collector says within five seconds that it stores nothing, and stays alive.
/// Method: the collector without sockets, on a store in memory that is full or hangs; the test owns the clock.
@Suite struct ReadinessTests {
    let fixture: CollectorFixture

    init() throws { fixture = try CollectorFixture() }

    private func pass(_ seconds: Double) { fixture.clock.now.withLock { $0 += seconds } }
    private var now: Double { fixture.clock.now.withLock { $0 } }

    @Test func `a collector that stores is ready`() async {
        fixture.clock.isStanding.withLock { $0 = true }
        let answer = await fixture.get("/readyz")
        #expect(answer.status == 200 && answer.text == "ready\n")
        #expect(await fixture.get("/metrics").text.contains("\nstall_collector_ready 1\n"))
    }

    @Test func `one that has no room is not, until it has`() async {
        fixture.clock.isStanding.withLock { $0 = true }
        fixture.storage.held.withLock { $0.isFull = true }
        let answer = await fixture.get("/readyz")
        #expect(answer.status == 503 && answer.text == "nothing can be stored now\n")
        #expect(await fixture.get("/metrics").text.contains("\nstall_collector_ready 0\n"))
        #expect(await fixture.get("/healthz").status == 200)
        fixture.storage.held.withLock { $0.isFull = false }
        // Asked at most once a second.
        #expect(await fixture.get("/readyz").status == 503)
        pass(1)
        #expect(await fixture.get("/readyz").status == 200)
    }

    @Test func `one whose writer hangs says so within five seconds, each time`() async {
        fixture.storage.held.withLock { $0.isStuck = true }
        for _ in 0..<3 {
            let start = now
            #expect(await fixture.get("/readyz").status == 503)
            #expect(now - start < 5)
            #expect(await fixture.get("/healthz").status == 200)
        }
        fixture.clock.isStanding.withLock { $0 = true }
        fixture.storage.held.withLock { $0.isStuck = false }
        // The question is answered some time, and the next one after it.
        while await fixture.get("/readyz").status != 200 { pass(1) }
    }

    /// Goal: a pipe that is not read holds up no request and no end, however often there is something to say.
    @Test func `one whose log is stuck answers, and counts what it could not say`() async throws {
        let log = StuckLog()
        defer { log.isStuck.withLock { $0 = false } }
        let fixture = try CollectorFixture(log: { log.write($0) })
        fixture.storage.held.withLock { $0.isFull = true }
        for _ in 0..<20 {
            #expect(await fixture.get("/readyz").status == 503)
            #expect(await fixture.get("/healthz").status == 200)
            fixture.clock.now.withLock { $0 += 61 }
        }
        // One is being written, nine wait.
        #expect(
            await fixture.get("/metrics").text.contains("\nstall_collector_log_dropped_total 10\n"))
        fixture.collector.stop()
        #expect(!fixture.collector.log.stop(within: 0))
    }

    /// Goal: 503 to every push and 200 to every prober is no answer.
    @Test func `the last batch's outcome counts at once`() async {
        fixture.clock.isStanding.withLock { $0 = true }
        #expect(await fixture.get("/readyz").status == 200)
        fixture.storage.held.withLock { $0.isFull = true }
        #expect(await fixture.push(Array("photos 1\n".utf8)).status == 503)
        #expect(await fixture.get("/readyz").status == 503)
        fixture.storage.held.withLock { $0.isFull = false }
        #expect(await fixture.push(Array("photos 1\n".utf8)).status == 200)
        #expect(await fixture.get("/readyz").status == 200)
    }

    /// Goal: a sender asks for its position first, and sends nothing where that fails.
    @Test func `a position that cannot be read counts as a batch that failed, and is logged`()
        async throws
    {
        let lines = Lines()
        let fixture = try CollectorFixture(log: { line in lines.all.withLock { $0.append(line) } })
        fixture.clock.isStanding.withLock { $0 = true }
        #expect(await fixture.get("/readyz").status == 200)
        fixture.storage.held.withLock { $0.isGone = true }
        let path = "/v1/stores/\(CollectorFixture.store)"
        #expect(await fixture.get(path, token: fixture.write).status == 503)
        #expect(await fixture.get("/readyz").status == 503)
        #expect(fixture.collector.log.stop(within: 60))
        #expect(lines.all.withLock { $0 } == ["nothing can be stored: Full()"])
    }

    private final class Lines: Sendable { let all = Mutex<[String]>([]) }

    @Test func `a query that only reads does not outweigh a batch that failed`() async throws {
        let fixture = try CollectorFixture(probeWrites: false)
        func pass(_ seconds: Double) { fixture.clock.now.withLock { $0 += seconds } }
        fixture.clock.isStanding.withLock { $0 = true }
        #expect(await fixture.get("/readyz").status == 200)
        fixture.storage.held.withLock { $0.isFull = true }
        #expect(await fixture.push(Array("photos 1\n".utf8)).status == 503)
        for _ in 0..<5 {
            pass(10)
            #expect(await fixture.get("/readyz").status == 503)
        }
        // A repeated batch proves nothing, and one that is stored does.
        fixture.storage.held.withLock { $0.isFull = false }
        #expect(await fixture.push(Array("photos 1\n".utf8)).status == 200)
        #expect(await fixture.get("/readyz").status == 200)
        // Where no one pushes any more, the memory of it ends.
        fixture.storage.held.withLock { $0.isFull = true }
        #expect(await fixture.push(Array("photos 2\n".utf8)).status == 503)
        pass(61)
        #expect(await fixture.get("/readyz").status == 200)
    }

    @Test func `a writer that gets on with its work is not stuck, however long it takes`() async {
        fixture.clock.isStanding.withLock { $0 = true }
        #expect(await fixture.get("/readyz").status == 200)
        pass(2)
        fixture.clock.isStanding.withLock { $0 = false }
        fixture.storage.held.withLock { $0.isStuck = true }
        let storage = fixture.storage
        fixture.clock.onPause.withLock { $0 = { storage.progress.add() } }
        for _ in 0..<5 {
            #expect(await fixture.get("/readyz").status == 200)
            pass(2)
        }
        fixture.clock.onPause.withLock { $0 = {} }
        let start = now
        #expect(await fixture.get("/readyz").status == 503)
        #expect(now - start < 5)
        fixture.storage.held.withLock { $0.isStuck = false }
    }

    private final class StuckLog: Sendable {
        let isStuck = Mutex(true)
        func write(_ line: String) { while isStuck.withLock({ $0 }) { sched_yield() } }
    }

    /// Goal: /metrics needs no token, but names no machine without one.
    @Test func `the last push of each app and machine is told to who may read of all apps`()
        async throws
    {
        let name = "stall_collector_last_push_timestamp_seconds"
        let made = CollectorToken.make(.read, apps: ["*"])
        try TokenFile.change(fixture.tokenPath) { $0.tokens.append(made.token) }
        #expect(await !fixture.get("/metrics", token: made.text).text.contains("\(name){"))
        _ = await fixture.push(Array("photos 1\n".utf8))
        // A refused one is none.
        _ = await fixture.push(Array("music 1\n".utf8))
        let text = await fixture.get("/metrics", token: made.text).text
        #expect(
            text.contains("\n\(name){host=\"host of photos\",app=\"photos\"} 1800000000\n"))
        #expect(!text.contains("host of music"))
        #expect(await !fixture.get("/metrics").text.contains(name))
        #expect(await !fixture.get("/metrics", token: fixture.read).text.contains(name))
        #expect(await fixture.get("/metrics", token: "swc_wrong").status == 401)
    }

    /// Goal: a machine that went silent before the collector was started again is missed as well.
    @Test func `pushes of before the start are known`() async throws {
        let before = try CollectorFixture(lastPushes: [
            PushSender(host: "web-2", app: "photos"): 1_799_990_000,
            PushSender(host: "host of photos", app: "photos"): 1_799_990_000,
        ])
        let made = CollectorToken.make(.read, apps: ["*"])
        try TokenFile.change(before.tokenPath) { $0.tokens.append(made.token) }
        _ = await before.push(Array("photos 1\n".utf8))
        let name = "stall_collector_last_push_timestamp_seconds"
        let lines = await before.get("/metrics", token: made.text).text.split(separator: "\n")
        #expect(
            lines.filter { $0.hasPrefix("\(name){") } == [
                "\(name){host=\"host of photos\",app=\"photos\"} 1800000000",
                "\(name){host=\"web-2\",app=\"photos\"} 1799990000",
            ])
    }

    /// Goal: a machine whose clock is ahead is missed like any other.
    @Test func `no push was later than now, whatever a machine's clock says`() async throws {
        let ahead = try CollectorFixture(lastPushes: [
            PushSender(host: "web-2", app: "photos"): 3_795_655_045,
            PushSender(host: "host of photos", app: "photos"): 1_800_086_400,
        ])
        let made = CollectorToken.make(.read, apps: ["*"])
        try TokenFile.change(ahead.tokenPath) { $0.tokens.append(made.token) }
        ahead.clock.unixTime.withLock { $0 = 1_800_000_060 }
        _ = await ahead.push(Array("photos 1\n".utf8))
        // The collector's own clock was set back.
        ahead.clock.unixTime.withLock { $0 = 1_800_000_030 }
        _ = await ahead.push(Array("photos 2\n".utf8))
        let name = "stall_collector_last_push_timestamp_seconds"
        let lines = await ahead.get("/metrics", token: made.text).text.split(separator: "\n")
        #expect(
            lines.filter { $0.hasPrefix("\(name){") } == [
                "\(name){host=\"host of photos\",app=\"photos\"} 1800000030",
                "\(name){host=\"web-2\",app=\"photos\"} 1800000000",
            ])
    }

    /// Goal: two machines are never one series, which Prometheus would refuse with all the others.
    @Test func `any name of a machine is one series of its own`() async throws {
        let names = ["ab", "a\nb", "a\r\nb", "a\\nb", "a\"b"]
        let fixture = try CollectorFixture(
            lastPushes: Dictionary(
                uniqueKeysWithValues: names.map { (PushSender(host: $0, app: "photos"), 1e9) }))
        let made = CollectorToken.make(.read, apps: ["*"])
        try TokenFile.change(fixture.tokenPath) { $0.tokens.append(made.token) }
        let text = await fixture.get("/metrics", token: made.text).text
        let series = text.utf8.split(separator: 10).map { String(decoding: $0, as: UTF8.self) }
            .filter { $0.hasPrefix("stall_collector_last_push_timestamp_seconds{") }
        #expect(series.count == names.count && Set(series).count == names.count)
        #expect(series.allSatisfy { $0.hasSuffix(",app=\"photos\"} 1000000000") })
    }

    @Test func `a directory that is not there has no room`() throws {
        #expect(throws: RoomProbe.self) { try RoomProbe.write(beside: "/nowhere/at/all.sqlite") }
        try RoomProbe.write(beside: fixture.tokenPath)
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path)
        #expect(!names.contains { $0.hasSuffix("-probe") })
    }
}
