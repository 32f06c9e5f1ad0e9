// A push: its head, its body, its lines, its position in the store.

internal import StallFormats
internal import StallGzip
internal import StallModel
internal import Synchronization

extension Collector {
    func take(
        _ store: UniqueID, _ request: CollectorRequest, _ body: Body
    ) async throws(CollectorRefusal) -> CollectorAnswer {
        let token = try await token(of: request, .write)
        let head = try PushHead(request, limits: limits)
        // Unpacked it takes more; how much is known when it is there.
        let held = head.length ?? limits.bodyBytes
        guard counts.hold(held, limit: limits.heldBytes) else { throw Self.busy }
        defer { counts.count { $0.heldBytes -= Int64(held) } }
        let sent: [UInt8]
        do throws(CollectorBodyError) {
            sent = try await body(limits.bodyBytes)
        } catch {
            switch error {
            case .tooLarge: throw .tooLarge(limits)
            case .ended: throw .init(408, "the body did not come to its end in time")
            }
        }
        counts.count { $0.sentBytes += Int64(sent.count) }
        let (limits, counts) = (limits, counts)
        let read = await nextThread().answer {
            Self.read(sent, head, store, token, limits, counts)
        }
        guard let read else { throw Self.stopping }
        let (rows, size) = try read.get()
        defer { counts.count { $0.heldBytes -= Int64(size) } }
        let senders = Storage.senders(of: rows)
        let range = PushRange(store: store, from: head.from, through: head.through)
        counts.count { $0.waiting += 1 }
        let start = seconds()
        let outcome = await writer.take(range, rows, token)
        note(outcome)
        let spent = seconds() - start
        counts.count {
            $0.waiting -= 1
            $0.writeSeconds += spent
        }
        let answer = try answer(outcome)
        counts.notePush(of: senders, at: unixTime())
        return answer
    }

    /// Checks and reads a body, on a thread for it.
    private static func read(
        _ sent: [UInt8], _ head: PushHead, _ store: UniqueID, _ token: CollectorToken,
        _ limits: CollectorLimits, _ counts: CollectorCounts
    ) -> Result<(Storage.Rows, held: Int), CollectorRefusal> {
        guard SHA256.digest(sent) == head.digest else {
            return .failure(.init(400, "the body is not what Content-Digest says"))
        }
        var lines = sent
        if head.isCompressed {
            do throws(Gzip.Fault) {
                lines = try Gzip.inflate(sent, limit: limits.inflatedBytes)
            } catch {
                switch error {
                case .tooLarge: return .failure(.tooLarge(limits))
                case .damaged: return .failure(.init(400, "the body is not whole gzip"))
                case .outOfMemory: return .failure(Self.busy)
                }
            }
        }
        guard lines.count <= limits.inflatedBytes else { return .failure(.tooLarge(limits)) }
        let size = lines.count
        counts.count { $0.inflatedBytes += Int64(size) }
        guard counts.hold(size, limit: limits.heldBytes) else { return .failure(Self.busy) }
        switch Storage.read(lines, of: store, for: token) {
        case .success(let rows): return .success((rows, size))
        case .failure(let refusal):
            counts.count {
                $0.heldBytes -= Int64(size)
                $0.refused += 1
            }
            return .failure(CollectorRefusal(refusal.outcome))
        }
    }

    private func answer(_ outcome: PushOutcome) throws(CollectorRefusal) -> CollectorAnswer {
        switch outcome {
        case .taken(let through, let added, let changed, let unknown):
            counts.count {
                $0.batches += 1
                $0.added += Int64(added)
                $0.changed += Int64(changed)
                $0.unknown += Int64(unknown)
            }
            return CollectorAnswer(
                200,
                [
                    "through": through, "added": Int64(added), "changed": Int64(changed),
                    "unknown": Int64(unknown),
                ])
        case .gap(let through): return CollectorAnswer(409, ["through": through])
        case .refused(_, let count):
            counts.count { $0.refused += Int64(count) }
            throw CollectorRefusal(outcome)
        case .foreign: throw CollectorRefusal(outcome)
        case .unavailable(let reason):
            noteUnavailable(reason)
            throw CollectorRefusal(outcome)
        }
    }

    /// Reports to the operator, who may know the store's path, once a minute: senders come back every few seconds.
    func noteUnavailable(_ reason: String) {
        let now = seconds()
        let isDue = rates.withLock { rates in
            guard now - rates.lastNotice >= 60 else { return false }
            rates.lastNotice = now
            return true
        }
        if isDue { log.add("nothing can be stored: \(reason)") }
    }

    private static var busy: CollectorRefusal {
        .init(503, "too much is being received", retryAfter: 2)
    }
    static var stopping: CollectorRefusal {
        .init(503, "the collector stops", retryAfter: 5)
    }
}
