// Writes an agent's reports. Called on the agent's own writer thread, never on a watched one.
//
// Every call is one short transaction, so that its rows are safe from kill -9 once it returns, and so that several
// processes can write one store by turns. Locations are written first; their names come when they are known.

internal import Glibc
package import StallModel

/// The store that an agent writes. Several processes may write one at the same time.
///
/// **Thread safety:** one thread at a time, which need not be the one that opened it.
package final class AgentStore {
    private let file: StoreFile
    private let run: ProcessRun
    private let limits: StoreLimits
    private let reserve: ReserveFile
    private var recordsUntilCheck = 0
    // Nil once closed: statements must go before their connection does.
    private var writer: AgentWriter?
    private let descriptors: HeldDescriptors

    /// Opens the store; creates or migrates it where needed.
    ///
    /// - Parameters:
    ///   - path: The file; its directory must exist. A new file may be read by its owner only.
    ///   - run: This process.
    ///   - limits: How much is kept.
    ///   - wait: How long each call may wait for another process that writes the same store.
    package init(
        path: String, run: ProcessRun, limits: StoreLimits = StoreLimits(),
        wait: Duration = .seconds(5)
    ) throws(StoreError) {
        var run = run
        run.app = run.app.clipped(toBytes: ValueLimits.nameBytes)
        run.version = run.version.clipped(toBytes: ValueLimits.nameBytes)
        run.host = run.host.clipped(toBytes: ValueLimits.nameBytes)
        self.run = run
        self.limits = limits
        reserve = ReserveFile(besideStore: path, bytes: limits.reserveBytes)
        let older = HeldDescriptors.before(opening: path)
        let file = try StoreFile.openForWriting(
            path: path, role: .agent, followsLinks: false, wait: wait)
        self.file = file
        // Debian's SQLite overwrites deleted rows with zeroes, which doubles an
        // eviction's writes. The log is folded in early, so that it needs no more room than
        // the reserve file can give.
        let logPages = max(16, limits.reserveBytes / 4 / 4096)
        try file.connection.execute(
            """
            pragma secure_delete = off; pragma temp_store = memory;
            pragma wal_autocheckpoint = \(logPages)
            """)
        writer = try StoreError.catching(path: path) {
            try AgentWriter(file.connection, run: run)
        }
        descriptors = HeldDescriptors(of: file.path, olderThan: older)
        reserve.hold()
    }

    deinit { if !descriptors.areIntact { file.connection.abandon() } }

    /// Keeps a report of this process: adds it, or brings the open one with its id up to date. A
    /// report that has ended is final.
    ///
    /// - Parameters:
    ///   - images: Where the loader has put the images that the report's locations name; others may be among them.
    ///   - names: Of locations of the report, as `symbolize` takes them, unless the store has theirs.
    package func record(
        _ report: StallReport, images: [Image], names: [CodeLocation: [Frame]] = [:]
    ) throws(StoreError) {
        precondition(report.run.id == run.id, "an agent records its own process only")
        try makeRoomNowAndThen()
        try write { writer in
            try writer.record(report, images: images)
            let unnamed = try writer.unsymbolized(Array(names.keys))
            if !unnamed.isEmpty {
                try writer.symbolize(names.filter { unnamed.contains($0.key) }, areFinal: true)
            }
        }
    }

    /// Those of the locations that are not symbolized yet, each once.
    package func unsymbolized(_ locations: [CodeLocation]) throws(StoreError) -> [CodeLocation] {
        var found: [CodeLocation] = []
        try write { writer in found = try writer.unsymbolized(locations) }
        return found
    }

    /// Attaches names to locations, instead of those they had; locations that no report uses are
    /// left out.
    ///
    /// - Parameters:
    ///   - frames: For each location the functions there, innermost first. One frame without a function means: looked
    ///     up, and there is no symbol.
    ///   - areFinal: Otherwise the locations are still to be looked up, and stay among the unsymbolized ones.
    package func symbolize(
        _ frames: [CodeLocation: [Frame]], areFinal: Bool = true
    ) throws(StoreError) {
        try write { writer in try writer.symbolize(frames, areFinal: areFinal) }
    }

    /// Adds to the count of stalls that were seen and not kept.
    package func countLosses(_ count: Int, reason: LossReason) throws(StoreError) {
        try write { writer in try writer.countLosses(count, reason: reason) }
    }

    /// Keeps a stretch of a loop's watched time.
    package func record(_ exposure: LoopExposure) throws(StoreError) {
        precondition(exposure.run.id == run.id, "an agent records its own process only")
        try makeRoomNowAndThen()
        try write { writer in try writer.record(exposure) }
    }

    /// Adds to the count of stalls that have no report on purpose.
    package func countSuppressed(
        _ stalls: SuppressedStalls, threshold: Duration
    ) throws(StoreError) {
        precondition(stalls.run.id == run.id, "an agent records its own process only")
        try write { writer in try writer.countSuppressed(stalls, threshold: threshold) }
    }

    /// Checks the limits before a row is written: were it after, a failure would make the caller write an existing row
    /// again.
    private func makeRoomNowAndThen() throws(StoreError) {
        recordsUntilCheck -= 1
        if recordsUntilCheck < 0 { try keepWithinLimits() }
    }

    /// Records that this process runs, and closes open reports of processes that are gone: as hangs, with the duration
    /// they had reached, or as the process recorded before it ended. A stall that it recorded and could not write gets
    /// a report without a stack.
    package func closeAbandoned() throws(StoreError) {
        let here = ProcessLife.current()
        var runs: [ProcessRun] = []
        try write { writer in
            try writer.noteRun()
            try writer.closeAbandoned { $0.end(in: file.path, here) }
            runs = try writer.latestRuns(256)
        }
        for run in runs {
            let record = ProcessRecord(of: run, besideStore: file.path)
            if run.host == here.host, run.bootID != here.bootID {
                ProcessRecord.removeCopy(of: run, besideStore: file.path)
            }
            guard let reports = record.reports(here) else { continue }
            if !reports.isEmpty {
                try write { writer in try reports.forEach(writer.recordIfUnknown) }
            }
            ProcessRecord.remove(of: run, besideStore: file.path)
        }
    }

    /// Deletes the oldest reports where the store is larger or older than it may be. Recording does
    /// it now and then.
    ///
    /// - Parameter now: The wall clock's time, when it is to be another.
    package func keepWithinLimits(now: UnixTime? = nil) throws(StoreError) {
        recordsUntilCheck = 64
        let oldest = limits.age.map { age in
            UnixTime(microseconds: (now ?? .now()).microseconds - age.nanoseconds / 1000)
        }
        try write { writer in try writer.evict(startedBefore: oldest, above: limits.bytes) }
        // A store that grew under larger limits gives its free pages back, when no other process
        // uses it.
        if (FileFacts(file.path)?.size ?? 0) > limits.bytes {
            try? file.connection.execute("vacuum")
        }
        reserve.hold()
    }

    /// Closes the store; when no other process uses it, one portable file remains.
    package func close() throws(StoreError) {
        writer = nil
        try expectDescriptors()
        if try file.close() { reserve.release() }
    }

    /// Runs `body` in one transaction: all of it is durable when this returns, or nothing.
    ///
    /// On a full disk the reserve file is given up, and with the room it gives the oldest reports go;
    /// then once more.
    private func write(_ body: (AgentWriter) throws -> Void) throws(StoreError) {
        do throws(StoreError) {
            try writeOnce(body)
        } catch .full where reserve.release() {
            try makeRoom()
            try writeOnce(body)
        }
    }

    @inline(never)
    private func makeRoom() throws(StoreError) {
        try writeOnce { writer in try writer.makeRoom() }
        try? file.connection.execute("pragma wal_checkpoint(truncate)")
    }

    /// The compiler makes a copy of it for each body, so that all that it does besides is done elsewhere.
    private func writeOnce(_ body: (AgentWriter) throws -> Void) throws(StoreError) {
        let writer = try beginWriting()
        do {
            try body(writer)
            try file.connection.commit()
        } catch {
            throw undone(writer, after: error)
        }
    }

    @inline(never)
    private func beginWriting() throws(StoreError) -> AgentWriter {
        guard let writer else { throw .cannotOpen(path: file.path, reason: "already closed") }
        guard !file.wasMoved() else { throw .moved(path: file.path) }
        try expectDescriptors()
        do {
            try file.connection.begin(.immediate)
            try writer.notice()
        } catch {
            throw undone(writer, after: error)
        }
        return writer
    }

    @inline(never)
    private func undone(_ writer: AgentWriter, after error: any Error) -> StoreError {
        let error = file.connection.undone(after: error)
        writer.forget()
        return descriptors.areIntact ? error : .descriptorsClosed(path: file.path)
    }

    private func expectDescriptors() throws(StoreError) {
        guard !descriptors.areIntact else { return }
        throw .descriptorsClosed(path: file.path)
    }
}
