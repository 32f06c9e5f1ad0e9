// The agent's side of a store that may fail: a full disk, a read-only directory, a lock held for too long. The app runs
// on; each condition is logged once; reports that could not be written are counted and retried later.

internal import CLinux
internal import Glibc
internal import Logging
internal import StallModel
internal import StallStore
internal import StallSymbols

/// A store that is reopened after failures, at growing intervals.
struct StoreConnection {
    private var path: String
    private let limits: StoreLimits
    private let run: ProcessRun
    private let logger: Logger
    private var store: AgentStore?
    private var nextAttempt = MonotonicInstant(nanoseconds: 0)
    private var pause = Duration.seconds(1)
    private var lastError: String?
    /// Reports that could not be written yet, in order of arrival.
    private var waiting:
        [(report: StallReport, images: ImageTable, names: [CodeLocation: [Frame]])] = []
    /// Reports to pass to callbacks once they are written, by id.
    private var notices: [UniqueID: StallReport] = [:]
    private var durable: [StallReport] = []
    /// Exposure and counts that could not be written yet.
    private var waitingCounts: [(AgentStore) throws(StoreError) -> Void] = []
    /// Losses that are not counted in the store yet.
    private var losses: [LossReason: Int] = [:]
    /// How often the app has closed the store's descriptors.
    private var closures = 0
    private let firstPath: String
    /// Whether a store has the row of this run, so that the next agent finds this process's record.
    private(set) var knowsRun = false

    private static let waitingLimit = 32
    private static let waitingCountLimit = 2048
    /// A store whose descriptors were closed stays open forever, so their number is limited.
    private static let closureLimit = 8

    init(
        path: String, limits: StoreLimits = StoreLimits(), run: ProcessRun, logger: Logger
    ) {
        self.path = path
        firstPath = path
        self.limits = limits
        self.run = run
        self.logger = logger
    }

    /// Opens the store if an attempt is due; open reports of dead processes become hangs.
    mutating func open() {
        guard store == nil, now >= nextAttempt, closures <= Self.closureLimit else { return }
        attempt { connection throws(StoreError) in
            connection.createDirectory()
            let store = try AgentStore(
                path: connection.path, run: connection.run, limits: connection.limits)
            connection.store = store
            try store.closeAbandoned()
            connection.knowsRun = true
            // Only a successful write proves that the store is writable: a store can be opened on a full disk.
        }
    }

    /// Records a report. If it cannot be written now, it is retried later: without its end the stall would look like a
    /// hang. If too many wait, the oldest are counted as lost.
    ///
    /// - Parameter names: Of those of its locations whose names are known already.
    mutating func record(
        _ report: StallReport, images: ImageTable, names: [CodeLocation: [Frame]] = [:]
    ) {
        waiting.removeAll { $0.report.id == report.id }
        waiting.append((report, images, names))
        open()
        flush()
        // If the file was deleted, a new one receives the waiting reports.
        open()
        flush()
        while waiting.count > Self.waitingLimit {
            notices[waiting.removeFirst().report.id] = nil
            losses[.unwritable, default: 0] += 1
        }
    }

    /// Passes the report to `takeDurable` once it is written, now or later.
    mutating func notifyOnceDurable(_ report: StallReport) {
        if waiting.contains(where: { $0.report.id == report.id }) {
            notices[report.id] = report
        } else {
            durable.append(report)
        }
    }

    /// The reports that have become durable since the last call.
    mutating func takeDurable() -> [StallReport] {
        defer { durable = [] }
        return durable
    }

    /// Records an interval of watched time, now or later.
    mutating func record(_ exposure: LoopExposure) {
        write { store throws(StoreError) in try store.record(exposure) }
    }

    /// Counts stalls that have no report, now or later.
    mutating func countSuppressed(_ stalls: SuppressedStalls, threshold: Duration) {
        write { store throws(StoreError) in
            try store.countSuppressed(stalls, threshold: threshold)
        }
    }

    private mutating func write(_ body: @escaping (AgentStore) throws(StoreError) -> Void) {
        waitingCounts.append(body)
        if waitingCounts.count > Self.waitingCountLimit { waitingCounts.removeFirst() }
        open()
        flushCounts()
    }

    private mutating func flushCounts() {
        while store != nil, let next = waitingCounts.first {
            let isWritten = attempt { connection throws(StoreError) in
                guard let store = connection.store else { return false }
                try next(store)
                if connection.waiting.isEmpty { connection.recovered() }
                return true
            }
            guard isWritten == true else { return }
            waitingCounts.removeFirst()
        }
    }

    /// Writes what waits, oldest first, until a write fails.
    private mutating func flush() {
        while store != nil, let next = waiting.first {
            let isWritten = attempt { connection throws(StoreError) in
                guard let store = connection.store else { return false }
                try store.record(
                    next.report, images: next.images.images, names: next.names)
                connection.recovered()
                return true
            }
            guard isWritten == true else { return }
            waiting.removeFirst()
            if let notice = notices.removeValue(forKey: next.report.id) { durable.append(notice) }
        }
        flushCounts()
        writeLosses()
    }

    /// The locations that have no names in the store; empty without a store.
    mutating func unsymbolized(_ locations: [CodeLocation]) -> [CodeLocation] {
        attempt { connection throws(StoreError) in
            try connection.store?.unsymbolized(locations) ?? []
        } ?? []
    }

    mutating func symbolize(_ frames: [CodeLocation: [Frame]], areFinal: Bool) {
        guard !frames.isEmpty else { return }
        attempt { connection throws(StoreError) in
            try connection.store?.symbolize(frames, areFinal: areFinal)
        }
    }

    /// Counts losses in the store, as soon as there is one.
    mutating func countLosses(_ count: Int, reason: LossReason) {
        guard count > 0 else { return }
        losses[reason, default: 0] += count
        writeLosses()
    }

    private mutating func writeLosses() {
        for (reason, count) in losses where store != nil {
            attempt { connection throws(StoreError) in
                try connection.store?.countLosses(count, reason: reason)
                connection.losses[reason] = nil
            }
        }
    }

    /// Retries everything that waits, regardless of the retry interval.
    mutating func flushForEnd() {
        guard !waiting.isEmpty || !losses.isEmpty || !waitingCounts.isEmpty else { return }
        nextAttempt = now
        open()
        flush()
    }

    /// Whether the report is in the store, with its last update.
    func hasWritten(_ id: UniqueID) -> Bool {
        store != nil && !waiting.contains { $0.report.id == id }
    }

    /// Retries everything that waits, and closes the store.
    ///
    /// - Returns: Whether everything is in the store.
    @discardableResult
    mutating func close() -> Bool {
        flushForEnd()
        let lost = losses.values.reduce(waiting.count, +)
        // The condition itself was already logged; once is enough for the app's log.
        if lost > 0 { logger.debug("\(path): reports that could not be written: \(lost)") }
        let isClosed = waiting.isEmpty && losses.isEmpty && waitingCounts.isEmpty
        attempt { connection throws(StoreError) in
            try connection.store?.close()
            connection.store = nil
        }
        return isClosed
    }

    /// Creates the store's directory with mode 0700. If that fails, opening the store reports why.
    private func createDirectory() {
        let directory = path.directoryPath
        guard access(directory, F_OK) != 0 else { return }
        for end in directory.indices where directory[end] == "/" && end > directory.startIndex {
            makePrivate(String(directory[..<end]))
        }
        makePrivate(directory)
    }

    /// With mode 0700 under any umask of the app.
    private func makePrivate(_ directory: String) {
        if mkdir(directory, 0o700) == 0 { chmod(directory, 0o700) }
    }

    private var now: MonotonicInstant { MonotonicInstant(nanoseconds: stall_monotonic_ns()) }

    private mutating func recovered() {
        if lastError != nil { logger.notice("\(path): can be written again") }
        lastError = nil
        pause = .seconds(1)
    }

    /// SQLite shares its state of a file among all connections of a process, including descriptor numbers that belong
    /// to the app by now. So use another file.
    private mutating func switchFile() {
        closures += 1
        path = firstPath.withSuffix("-reopened\(closures)")
    }

    /// Runs a store operation. A failure closes the store until the next attempt, and is logged once.
    @discardableResult
    private mutating func attempt<Result>(
        _ body: (inout Self) throws(StoreError) -> Result
    ) -> Result? {
        do throws(StoreError) {
            return try FileGuard.run { () throws(StoreError) in try body(&self) }
        } catch {
            failed(error)
            return nil
        }
    }

    @inline(never)
    private mutating func failed(_ error: StoreError) {
        let message = error.description
        if message != lastError {
            logger.warning("\(message); stalls are counted until it can be written")
        }
        lastError = message
        FileGuard.run { store = nil }
        switch error {
        case .moved: return  // A new one can be made at once.
        case .descriptorsClosed: return switchFile()
        default: break
        }
        nextAttempt = now + pause
        pause = min(pause * 2, .seconds(60))
    }
}
