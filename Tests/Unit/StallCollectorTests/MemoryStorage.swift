import Foundation
import Synchronization
import TestSupport

@testable import StallCollector
@testable import StallModel
@testable import StallQuery
@testable import StallStore

/// A store in memory. A line is an app and a number, as in `photos 3`.
final class MemoryStorage: PushStorage, Sendable {
    struct Held: Sendable {
        var stores: [UniqueID: (through: Int64, lines: [String])] = [:]
        /// How many batches were handed over together.
        var groups: [Int] = []
        var isFull = false
        /// The writer hangs in its next probe until this is false.
        var isStuck = false
        /// No position can be read.
        var isGone = false
        /// Its probes only read: they notice nothing.
        var probeWrites = true
        var isClosed = false
        /// What is known of the time before the start.
        var lastPushes: [PushSender: Double] = [:]
    }

    let held = Mutex(Held())

    static func read(
        _ lines: [UInt8], of store: UniqueID, for token: CollectorToken
    ) -> Result<[String], PushRefusal> {
        let lines = String(decoding: lines, as: UTF8.self).split(separator: "\n").map(String.init)
        for (index, line) in lines.enumerated() {
            guard line.contains(" ") else {
                let fault = LineFault(line: index + 1, reason: "is \"no\" line")
                return .failure(PushRefusal(.refused([fault], count: 1)))
            }
            guard token.allows(app: String(line.prefix { $0 != " " })) else {
                let fault = LineFault(line: index + 1, reason: "is of another app")
                return .failure(PushRefusal(.foreign(fault)))
            }
        }
        return .success(lines)
    }

    func position(of store: UniqueID) throws -> PushPosition {
        try held.withLock {
            if $0.isGone { throw Full() }
            return PushPosition(through: $0.stores[store]?.through ?? 0)
        }
    }

    func take(
        _ batches: [(range: PushRange, rows: [String], token: CollectorToken)]
    ) -> [PushOutcome] {
        held.withLock { held in
            held.groups.append(batches.count)
            return batches.map { range, rows, _ in
                if held.isFull { return .unavailable("the disk is full") }
                var store = held.stores[range.store] ?? (0, [])
                guard range.from <= store.through + 1 else { return .gap(through: store.through) }
                let added = rows.filter { !store.lines.contains($0) }
                store = (max(store.through, range.through), store.lines + added)
                held.stores[range.store] = store
                return .taken(
                    through: store.through, added: added.count, changed: 0, unknown: 0)
            }
        }
    }

    static func senders(of rows: [String]) -> Set<PushSender> {
        Set(
            rows.map {
                let app = String($0.prefix { $0 != " " })
                return PushSender(host: "host of \(app)", app: app)
            })
    }

    func lastPushes() throws -> [PushSender: Double] { held.withLock { $0.lastPushes } }

    struct Full: Error {}

    let progress = StatementProgress()
    var probeWrites: Bool { held.withLock { $0.probeWrites } }

    func probe() throws {
        while held.withLock({ $0.isStuck }) { sched_yield() }
        if held.withLock({ $0.isFull && $0.probeWrites }) { throw Full() }
    }

    func close() { held.withLock { $0.isClosed = true } }
}

/// A collector on a store in memory, with tokens for two apps.
final class CollectorFixture: Sendable {
    let storage = MemoryStorage()
    let folder: URL
    let tokenPath: String
    let (write, read, other): (String, String, String)
    let collector: Collector<MemoryStorage>
    let clock = TestClock()
    static let store = UniqueID((0x0193_0000_0000_7000, 0x8000_0000_0000_0001))

    final class TestClock: Sendable {
        let now = Mutex(100.0)
        let unixTime = Mutex(1_800_000_000.0)
        /// Pauses take no time.
        let isStanding = Mutex(false)
        /// Called in each pause.
        let onPause = Mutex<@Sendable () -> Void>({})
    }

    init(
        limits: CollectorLimits = CollectorLimits(), reader: (any CollectorReader)? = nil,
        lastPushes: [PushSender: Double] = [:], accessLog: AccessLog? = nil,
        probeWrites: Bool = true,
        log: @escaping @Sendable (String) -> Void = { _ in }
    ) throws {
        storage.held.withLock { ($0.lastPushes, $0.probeWrites) = (lastPushes, probeWrites) }
        folder = FileManager.default.temporaryDirectory.appending(
            path: "collector-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        tokenPath = folder.appending(path: "tokens").path
        let made = [
            CollectorToken.make(.write, apps: ["photos"]),
            CollectorToken.make(.read, apps: ["photos"]),
            CollectorToken.make(.write, apps: ["music", "a b%"]),
        ]
        try TokenFile.change(tokenPath) { $0.tokens = made.map(\.token) }
        (write, read, other) = (made[0].text, made[1].text, made[2].text)
        let clock = clock
        collector = Collector(
            storage: storage, tokens: try TokenFile(tokenPath), reader: reader,
            accessLog: accessLog, limits: limits,
            seconds: { clock.now.withLock { $0 } }, unixTime: { clock.unixTime.withLock { $0 } },
            pause: { time in
                await Task.yield()
                clock.onPause.withLock { $0() }
                clock.now.withLock { $0 += clock.isStanding.withLock { $0 } ? 0 : time }
            },
            log: LineQueue("stall-log", limit: 10) {
                log($0)
                return true
            })
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var lineCount: Int {
        storage.held.withLock { $0.stores.values.map(\.lines.count).reduce(0, +) }
    }

    /// A push as a good sender sends it.
    func push(
        _ body: [UInt8], from: Int64 = 1, through: Int64 = 10, token: String? = nil,
        change: (inout CollectorRequest) -> Void = { _ in }
    ) async -> CollectorAnswer {
        var request = CollectorRequest(
            method: "POST", target: "/v1/stores/\(Self.store)/lines",
            fields: [
                "authorization": "Bearer \(token ?? write)", "content-type": "application/x-ndjson",
                "content-length": "\(body.count)", "stallwatch-schema": "1",
                "stallwatch-from": "\(from)", "stallwatch-through": "\(through)",
                "content-digest": digestField(body),
            ])
        change(&request)
        return await collector.respond(to: request) { limit throws(CollectorBodyError) in
            guard body.count <= limit else { throw .tooLarge }
            return body
        }
    }

    func get(_ target: String, token: String? = nil) async -> CollectorAnswer {
        let request = CollectorRequest(
            method: "GET", target: target,
            fields: token.map { ["authorization": "Bearer \($0)"] } ?? [:])
        return await collector.respond(to: request) { _ throws(CollectorBodyError) in [] }
    }
}

func digestField(_ body: [UInt8]) -> String {
    "sha-256=:\(Data(digest(body)).base64EncodedString()):"
}

extension CollectorAnswer {
    var text: String { String(decoding: body, as: UTF8.self) }
    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
}
