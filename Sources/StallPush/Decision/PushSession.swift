// Sends the changes of one store. The reader of the store, the sender and the wait are given to it, so that every rule
// can be tested without a network, a store or a clock.
//
//     position of the collector -> batch behind it -> answer -> next batch, the same again, or the end

package import StallHTTP
package import StallModel
package import StallQuery

/// Rows of a store that are sent together.
package struct OutgoingBatch: Hashable, Sendable {
    package var from: Int64
    package var through: Int64
    /// Each with its line end.
    package var lines: [[UInt8]]

    package init(from: Int64, through: Int64, lines: [[UInt8]]) {
        self.from = from
        self.through = through
        self.lines = lines
    }
}

/// Reads the changes of a store.
package protocol PushSpool {
    /// Names the store to the collector.
    var store: UniqueID { get }
    /// Goes to behind a revision.
    mutating func rewind(to through: Int64)
    /// The rows behind the present position, at most that many; nil when there are none. The position stays.
    mutating func next(lines: Int, bytes: Int) throws -> OutgoingBatch?
    /// The last batch is stored: goes behind it.
    mutating func accept()
    /// Whether the store never gave out this revision: it is older than what the collector has.
    func isOlder(than revision: Int64) throws -> Bool
    /// The id of the report of a number; nil where it is no longer there.
    func reportID(seq: Int64) throws -> UniqueID?
}

/// Sends requests, and waits.
package protocol PushLine {
    /// Queries how far the collector has a store.
    mutating func position(of store: UniqueID) -> HTTPReply
    /// Sends a batch.
    mutating func send(_ batch: OutgoingBatch, of store: UniqueID) -> HTTPReply
    /// Waits for a number of seconds. False when there is no more time: then the run ends, and the next one continues.
    mutating func wait(seconds: Double, reason: String) -> Bool
    /// The run is to end.
    var isCancelled: Bool { get }
}

/// The outcome for the rows of one store.
package struct PushResult: Hashable, Sendable {
    package var store: UniqueID
    package var batchCount = 0
    package var lineCount = 0
    package var added = 0
    package var changed = 0
    /// Where the collector is now; nil where it did not say.
    package var through: Int64?
    /// Lines that the collector does not take, by their rows: they are not sent again.
    package var refused: [LineFault] = []
    package var refusedCount = 0
    /// Why it ended before everything was sent.
    package var failure: String?
    package var isCancelled = false

    package init(store: UniqueID) { self.store = store }

    /// How many refused lines are kept.
    static let refusedLimit = 1000

    /// Counts rows that are refused for one reason.
    package mutating func refuse(_ count: Int, _ reason: String) {
        refusedCount += count
        if refused.count < Self.refusedLimit { refused.append(LineFault(line: 0, reason: reason)) }
    }
}

/// Sends the rows of stores, one store after the other.
package struct PushSession {
    package struct Limits: Sendable {
        package var lines = 1000
        package var bytes = 4 << 20
        package init() {}
    }
    private var limits: Limits
    private var backoff = Backoff()
    private var random: any RandomNumberGenerator & Sendable

    package init(
        limits: Limits = Limits(),
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.limits = limits
        self.random = random
    }

    /// Sends everything that is new.
    ///
    /// - Throws: The error of the store.
    package mutating func push(
        _ spool: inout some PushSpool, over line: inout some PushLine
    ) throws -> PushResult {
        var result = PushResult(store: spool.store)
        guard let position = position(of: spool.store, &line, &result) else { return result }
        result.through = position.through
        if let last = position.last, let own = try spool.reportID(seq: last.seq),
            own.description != last.id.lowercased()
        {
            result.failure =
                "the collector has another report of number \(last.seq): this store is a copy that "
                + "was written to apart from the one it was made of; ingest the file instead"
            return result
        }
        if try spool.isOlder(than: position.through) {
            result.failure =
                "the collector has it up to revision \(position.through), which this store has not "
                + "reached: it was restored from a backup; ingest the file instead"
            return result
        }
        spool.rewind(to: position.through)
        var resumed = 0
        while let batch = try spool.next(lines: limits.lines, bytes: limits.bytes) {
            switch send(batch, of: spool.store, &line, &result) {
            case .stored:
                spool.accept()
                result.through = max(result.through ?? 0, batch.through)
                resumed = 0
            case .resume(let through):
                resumed += 1
                guard resumed <= 3, through < batch.from - 1 else {
                    result.failure =
                        "does not take a batch that begins behind the position it names, \(through)"
                    return result
                }
                spool.rewind(to: through)
            case .smaller: break
            case .end: return result
            }
        }
        return result
    }

    private enum Outcome {
        case stored, smaller, end
        case resume(through: Int64)
    }

    private mutating func position(
        of store: UniqueID, _ line: inout some PushLine, _ result: inout PushResult
    ) -> CollectorPosition? {
        while true {
            if line.isCancelled {
                result.isCancelled = true
                return nil
            }
            switch PositionStep(line.position(of: store)) {
            case .known(let position):
                backoff.reset()
                return position
            case .wait(let reason, let seconds):
                guard wait(seconds, reason, &line, &result) else { return nil }
            case .stop(let reason):
                result.failure = reason
                return nil
            }
        }
    }

    private mutating func send(
        _ batch: OutgoingBatch, of store: UniqueID, _ line: inout some PushLine,
        _ result: inout PushResult
    ) -> Outcome {
        var (batch, left) = (batch, [LineFault]())
        while true {
            if line.isCancelled {
                result.isCancelled = true
                return .end
            }
            let count = batch.lines.count
            let reply = line.send(batch, of: store)
            switch PushStep(reply, through: batch.through, lineCount: count) {
            case .stored(let added, let changed):
                backoff.reset()
                result.batchCount += 1
                result.lineCount += count
                result.added += added
                result.changed += changed
                result.refusedCount += left.count
                result.refused += left.prefix(PushResult.refusedLimit - result.refused.count)
                return .stored
            case .resume(let through): return .resume(through: through)
            case .halve where count > 1:
                limits.lines = max(1, count / 2)
                return .smaller
            case .halve where count == 1:
                left.append(
                    LineFault(
                        line: 1,
                        reason: "is too large for the collector (\(batch.lines[0].count) bytes)"))
                batch.lines = []
            case .halve:
                result.failure = "answered 413 to an empty batch"
                return .end
            case .leaveOut(let faults):
                let numbers = Set(faults.map { $0.line - 1 })
                left += faults
                batch.lines = batch.lines.indices.filter { !numbers.contains($0) }
                    .map { batch.lines[$0] }
            case .wait(let reason, let seconds):
                guard wait(seconds, reason, &line, &result) else { return .end }
            case .stop(let reason):
                result.failure = reason
                return .end
            }
        }
    }

    private mutating func wait(
        _ seconds: Int?, _ reason: String, _ line: inout some PushLine,
        _ result: inout PushResult
    ) -> Bool {
        let reason = reason + backoff.words(asked: seconds)
        let time = backoff.next(asked: seconds, using: &random)
        if line.wait(seconds: time, reason: reason) { return true }
        result.isCancelled = line.isCancelled
        if !result.isCancelled { result.failure = reason }
        return false
    }
}
