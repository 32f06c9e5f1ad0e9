// Imports one source's exposure and suppressed stalls, beside its reports (SourceTransfer.swift).

internal import StallArchive
internal import StallModel
internal import StallStore

/// The exposure of an incoming store, each row checked when it is read.
struct ExposureImporter {
    private let findExposure, findSuppressed: Statement

    init(_ connection: Connection) throws {
        findExposure = try connection.prepare(
            """
            select \(ExposureRow.columns()) from exposure where source = ? and revision > ?
            """)
        findSuppressed = try connection.prepare(
            """
            select loop, place, reason, stall_count, total_ns, revision
            from suppression where source = ? and revision > ?
            """)
    }

    /// Imports the rows that are newer than `revision`.
    ///
    /// - Parameters:
    ///   - days: Adds the stretches up by day.
    ///   - target: The source's number in the central store.
    ///   - isKnown: Whether a source that it was one with has the stretch of this revision and start.
    ///   - loop: A loop's number in the central store, by its number in the incoming one.
    /// - Returns: The loops that have watched time, by their numbers in the central store.
    func take(
        ofSource source: Int64, after revision: Int64, to rows: ExposureRows,
        _ days: ExposureDays, target: Int64, loop: (Int64) throws -> Int64,
        isKnown: (_ revision: Int64, _ start_us: Int64) throws -> Bool
    ) throws -> Set<Int64> {
        var watched: Set<Int64> = []
        days.forget()
        try findExposure.bind(source, revision)
        while try findExposure.step() {
            var row = try ExposureRow(findExposure)
            // Readers accept more: older programs let it into central stores.
            try findExposure.expect(
                row.start_us, in: 0...ValueLimits.time_us, "time in microseconds")
            try findExposure.expect(
                row.watched_ns, in: 0...ValueLimits.watched_ns,
                "period of watched time in nanoseconds")
            try findExposure.expect(row.revision, in: 0...ValueLimits.revision, "revision")
            row.loop = try loop(row.loop)
            watched.insert(row.loop)
            guard try !isKnown(row.revision, row.start_us) else { continue }
            if try rows.isElsewhere(row, source: target) { continue }
            try days.note(row, source: target)
            try rows.put(row, source: target)
        }
        try days.flush()
        try findSuppressed.bind(source, revision)
        while try findSuppressed.step() {
            let row = SuppressionRow(
                loop: try loop(findSuppressed.integer()),
                place: try findSuppressed.integer(), reason: try findSuppressed.value(),
                count: max(
                    0,
                    try findSuppressed.limited(-ValueLimits.count...ValueLimits.count, "count")),
                total_ns: try findSuppressed.limited_ns())
            let changed = try findSuppressed.limited(0...ValueLimits.revision, "revision")
            try rows.raise(row, source: target, revision: changed)
        }
        return watched
    }
}
