// The changes of a store, as lines: the store is the queue of a push, and nothing second is on a disk.

#if Fleet
internal import StallAnalysis
internal import StallArchive
internal import StallFormats
internal import StallModel
internal import StallPush
import StallQuery

/// The rows of one source of a store.
struct StoreSpool: PushSpool {
    private let reports: ReportStore
    private let source: ChangeSource
    private var lines = {
        let grouper = DefaultGrouper()
        return StoreLines { $0.signature(by: grouper).group }
    }()
    private var position = ChangePosition(through: 0)
    /// The position in the collector's answer; of a source of lines it does not cover the rows that it has.
    private var base: Int64 = 0
    /// Process runs that were sent.
    private var runs: Set<UniqueID> = []
    private var following: (position: ChangePosition, runs: Set<UniqueID>)?
    private var hasSentAbandoned = false
    /// Stalls of processes that are gone, which need not be said again.
    private(set) var told: Set<UniqueID>

    var store: UniqueID { source.store }

    init(_ reports: ReportStore, _ source: ChangeSource, told: Set<UniqueID> = []) {
        self.reports = reports
        self.source = source
        self.told = told
    }

    mutating func rewind(to through: Int64) {
        base = through
        position = ChangePosition(through: source.hasLines ? 0 : through)
        following = nil
        runs = []
    }

    mutating func next(lines count: Int, bytes: Int) throws -> OutgoingBatch? {
        var (found, size, seen) = ([[UInt8]](), 0, runs)
        let end = try reports.forEachChange(of: source, behind: position, runs: &seen) { row in
            let line = try lines.line(row)
            if !found.isEmpty, found.count >= count || size + line.count > bytes { return false }
            found.append(line)
            size += line.count
            return true
        }
        following = (end.position, seen)
        let through = source.hasLines ? base : end.position.through
        if !found.isEmpty || through > base && !source.hasLines {
            return OutgoingBatch(from: base + 1, through: through, lines: found)
        }
        guard !hasSentAbandoned else { return nil }
        hasSentAbandoned = true
        // Few: those of processes that were killed since their store was written last.
        let abandoned = try reports.abandonedReports(of: source).filter {
            !told.contains($0.report.id)
        }
        guard !abandoned.isEmpty else { return nil }
        told.formUnion(abandoned.map(\.report.id))
        return OutgoingBatch(
            from: base + 1, through: base,
            lines: try abandoned.map { try lines.line(.report($0)) })
    }

    mutating func accept() {
        guard let following else { return }
        (position, runs) = following
        if !source.hasLines { base = max(base, position.through) }
        self.following = nil
    }

    func isOlder(than revision: Int64) throws -> Bool {
        guard reports.role == .agent, !source.hasLines, source.revision < revision else {
            return false
        }
        // Its agent may have gone on since it was looked at.
        let now = try reports.changeSources().first { $0.store == source.store }
        return now.map { $0.revision < revision } ?? false
    }

    func reportID(seq: Int64) throws -> UniqueID? {
        try reports.reportID(of: source, seq: seq)
    }
}
#endif
