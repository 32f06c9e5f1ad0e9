// The agent's side of a store that may fail: a full disk, a read-only directory, a lock held for too long. The app runs
// on; the logger hears of a condition once; what could not be written is counted and tried again later.

internal import CLinux
internal import Logging
internal import StallModel
internal import StallStore
internal import StallSymbols

/// A store that is opened again after failures, with growing pauses.
struct StoreConnection {
    private let path: String
    private let run: ProcessRun
    private let logger: Logger
    private var store: AgentStore?
    private var nextAttempt = MonotonicInstant(nanoseconds: 0)
    private var pause = Duration.seconds(1)
    private var lastComplaint: String?
    private var unwritten = 0

    init(path: String, run: ProcessRun, logger: Logger) {
        self.path = path
        self.run = run
        self.logger = logger
    }

    /// Opens the store if it is time to try; open reports of dead processes become hangs.
    mutating func open() {
        guard store == nil, now >= nextAttempt else { return }
        attempt { connection throws(StoreError) in
            let store = try AgentStore(path: connection.path, run: connection.run)
            connection.store = store
            try store.closeAbandoned()
            connection.recovered()
        }
    }

    /// Keeps a report, or counts it as lost once it has ended.
    mutating func record(_ report: StallReport, images: ImageTable) {
        open()
        let isKept = attempt { connection throws(StoreError) in
            guard let store = connection.store else { return false }
            try store.record(report, images: images.images)
            connection.recovered()
            return true
        }
        if isKept != true, report.state != .open { unwritten += 1 }
        if isKept == true, unwritten > 0 {
            let count = unwritten
            unwritten = 0
            countLosses(count, reason: .unwritable)
        }
    }

    /// Those of the locations whose names the store lacks; none when there is no store.
    mutating func unsymbolized(_ locations: [CodeLocation]) -> [CodeLocation] {
        attempt { connection throws(StoreError) in
            try connection.store?.unsymbolized(locations) ?? []
        } ?? []
    }

    mutating func symbolize(_ frames: [CodeLocation: [Frame]]) {
        attempt { connection throws(StoreError) in try connection.store?.symbolize(frames) }
    }

    mutating func countLosses(_ count: Int, reason: LossReason) {
        guard count > 0 else { return }
        attempt { connection throws(StoreError) in
            try connection.store?.countLosses(count, reason: reason)
        }
    }

    mutating func close() {
        if unwritten > 0 { logger.warning("\(path): \(unwritten) reports could not be written") }
        attempt { connection throws(StoreError) in try connection.store?.close() }
        store = nil
    }

    private var now: MonotonicInstant { MonotonicInstant(nanoseconds: stall_monotonic_ns()) }

    private mutating func recovered() {
        if lastComplaint != nil { logger.notice("\(path): can be written again") }
        lastComplaint = nil
        pause = .seconds(1)
    }

    /// Runs a store operation. A failure closes the store until the next attempt, and is told once.
    @discardableResult
    private mutating func attempt<Result>(
        _ body: (inout Self) throws(StoreError) -> Result
    ) -> Result? {
        do throws(StoreError) {
            return try body(&self)
        } catch {
            let complaint = error.description
            if complaint != lastComplaint {
                logger.warning("\(complaint); stalls are counted until it can be written")
            }
            lastComplaint = complaint
            store = nil
            nextAttempt = now + pause
            pause = min(pause * 2, .seconds(60))
            return nil
        }
    }
}
