// Decides the answer to a request: its token, its limits, its faults. docs/fleet.md documents every status.
//
//     head -> route -> token -> rate -> fields -> body -> digest -> unpacked -> lines read -> written, committed -> answer
//                                                |-------- reading threads --------|  |- writer -|
//
// Each arrow may end in an answer; only behind the last one is anything stored.

internal import Glibc
internal import StallModel
internal import Synchronization

/// Why a body was not read.
package enum CollectorBodyError: Error {
    case tooLarge
    /// The sender took too long, or went.
    case ended
}

/// Seconds since 1970.
func wallClockSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// A collector without its sockets.
package final class Collector<Storage: PushStorage>: Sendable {
    package typealias Body = @Sendable (_ limit: Int) async throws(CollectorBodyError) -> [UInt8]

    let limits: CollectorLimits
    let tokenFile: TokenFile
    let writer: PushWriter<Storage>
    let reader: (any CollectorReader)?
    let accessLog: AccessLog?
    let readThreads: [WorkThread]
    let askThreads: [WorkThread]
    let counts = CollectorCounts()
    let rates: Mutex<Rates>
    let readiness = Mutex(Readiness())
    let seconds: @Sendable () -> Double
    let unixTime: @Sendable () -> Double
    let pause: @Sendable (Double) async -> Void
    let log: LineQueue

    struct Rates {
        var tokens: RateLimiter
        var failures: RateLimiter
        var lastRefresh = -1.0
        var lastNotice = -60.0
        var nextThread = 0
        var asking = 0
    }

    /// - Parameters:
    ///   - seconds: A clock that does not jump.
    ///   - unixTime: The wall clock, in seconds since 1970.
    ///   - pause: Waits this number of seconds.
    ///   - log: For the operator. Its owner stops it, after the collector.
    package init(
        storage: Storage, tokens: TokenFile, reader: (any CollectorReader)? = nil,
        accessLog: AccessLog? = nil,
        limits: CollectorLimits = CollectorLimits(), readingThreads: Int = 2,
        seconds: @escaping @Sendable () -> Double,
        unixTime: @escaping @Sendable () -> Double = { wallClockSeconds() },
        pause: @escaping @Sendable (Double) async -> Void = {
            try? await Task.sleep(for: .seconds($0))
        },
        log: LineQueue
    ) {
        self.limits = limits
        tokenFile = tokens
        self.reader = reader
        self.accessLog = accessLog
        // A machine that went silent before this start is missed as well.
        // By the machine's own clock, which may be ahead: no push was later than now.
        let now = unixTime()
        do { counts.notePushes(try storage.lastPushes().mapValues { min($0, now) }) } catch {
            log.add("when machines pushed last is not known: \(error)")
        }
        writer = PushWriter(storage)
        readThreads = (0..<max(1, readingThreads)).map { WorkThread("stall-lines/\($0)") }
        askThreads = reader == nil ? [] : (0..<limits.readers).map { WorkThread("stall-ask/\($0)") }
        rates = Mutex(
            Rates(
                tokens: RateLimiter(rate: limits.requestRate, burst: limits.requestBurst),
                failures: RateLimiter(rate: limits.failureRate, burst: limits.failureBurst)))
        self.seconds = seconds
        self.unixTime = unixTime
        self.pause = pause
        self.log = log
    }

    /// Commits batches that were acknowledged or wait, and closes the store. Waits for the disk.
    package func stop() {
        for thread in readThreads + askThreads { thread.stop() }
        writer.stop()
        accessLog?.stop()
    }

    /// Answers a request.
    ///
    /// - Parameter body: Reads the body, at most `limit` bytes. It is not called for a request that its head refuses.
    package func respond(to request: CollectorRequest, body: Body) async -> CollectorAnswer {
        var answer: CollectorAnswer
        let (began, received) = (seconds(), ByteCount())
        do throws(CollectorRefusal) {
            answer = try await self.answer(request) { limit throws(CollectorBodyError) in
                let bytes = try await body(limit)
                received.value.store(bytes.count, ordering: .relaxed)
                return bytes
            }
        } catch {
            answer = error.answer
        }
        answer.fields.append(("cache-control", "no-store"))
        answer.fields.append(("x-content-type-options", "nosniff"))
        counts.count { $0.requests[answer.status, default: 0] += 1 }
        accessLog?.add(
            AccessEntry(
                time: unixTime(), request: request,
                token: request.token.flatMap { tokenFile.tokens.token($0) }?.id,
                status: answer.status, received: received.value.load(ordering: .relaxed),
                sent: answer.body.count, seconds: seconds() - began))
        return answer
    }

    /// The size of a body, which is known where it is read.
    private final class ByteCount: Sendable {
        let value = Atomic(0)
    }

    private func answer(
        _ request: CollectorRequest, _ body: Body
    ) async throws(CollectorRefusal) -> CollectorAnswer {
        guard let route = CollectorRoute(request.path) else { throw .init(404, "no such path") }
        guard route.methods.contains(request.method) else {
            throw .init(405, "the method is to be \(route.methods[0])")
        }
        switch route {
        case .health: return CollectorAnswer(200, type: "text/plain; charset=utf-8", "ok\n")
        case .readiness: return await readinessAnswer()
        case .metrics:
            // Machines are named only to readers of all apps.
            var namesHosts = false
            if request.token != nil {
                namesHosts = try await token(of: request, .read).apps.contains("*")
            }
            let isReady = await fault() == nil
            return CollectorAnswer(
                200, type: "text/plain; version=0.0.4; charset=utf-8",
                counts.text(
                    tokenFailures: tokenFile.failures,
                    droppedAccesses: accessLog?.droppedCount ?? 0,
                    droppedNotices: log.droppedCount, isReady: isReady,
                    namesHosts: namesHosts))
        case .position(let store):
            _ = try await token(of: request, .write)
            switch await writer.position(of: store) {
            case .success(let position): return position.answer
            case .failure(let fault):
                // A sender begins with this request, and sends no batch where it fails.
                note(.unavailable(fault.reason))
                noteUnavailable(fault.reason)
                throw .init(503, "the store cannot be read", retryAfter: 10)
            }
        case .lines(let store): return try await take(store, request, body)
        case .question(let kind): return try await ask(kind, request)
        }
    }
}
