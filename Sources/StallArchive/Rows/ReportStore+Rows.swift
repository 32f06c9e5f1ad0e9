// The rows of a store besides reports, for another store: without them rates and losses would be missing there.

import StallModel
package import StallQuery
internal import StallStore

extension ReportStore {
    /// Passes every row that is not a report to `body`, one by one from one snapshot: process runs, names, and the rows
    /// that rates, losses and suppressed stalls are computed from.
    ///
    /// **Cost:** memory does not grow with the store.
    package func forEachOtherRow(_ body: (PortableRow) throws -> Void) throws {
        try walk { connection in
            let reader = try StoreRowReader(connection)
            let single = reader.stores.count == 1 ? reader.stores.first?.value : nil
            let runs = try connection.prepare(
                """
                select id from process_run where id in (
                    select run from loop where id in (
                        select loop from report union select loop from exposure
                        union select loop from suppression)
                    union select run from loss)
                order by id
                """)
            while try runs.step() { try body(.run(reader.run(runs.integer(), of: single))) }
            try forEachLocation(connection, reader, body)
            let watched = try connection.prepare(
                """
                select source, loop from watched_loop except select source, loop from exposure
                """)
            while try watched.step() {
                let (source, loop) = try (watched.integer(), watched.integer())
                try body(reader.watchedLoop(loop, source: source))
            }
            let exposures = try connection.prepare(
                "select source, revision, loop from exposure order by source, revision, loop")
            while try exposures.step() {
                let row = try reader.exposure(
                    source: exposures.integer(), revision: exposures.integer(),
                    loop: exposures.integer())
                if let row { try body(row) }
            }
            let suppressions = try connection.prepare(
                "select source, loop, place, reason from suppression order by source, revision")
            while try suppressions.step() {
                let row = try reader.suppression(
                    source: suppressions.integer(), loop: suppressions.integer(),
                    place: suppressions.integer(), reason: suppressions.integer())
                if let row { try body(row) }
            }
            let losses = try connection.prepare(
                "select source, run, reason from loss order by source, revision")
            while try losses.step() {
                let row = try reader.loss(
                    source: losses.integer(), run: losses.integer(),
                    reason: losses.integer())
                if let row { try body(row) }
            }
        }
    }

    /// Names of locations: before the reports, so that each location keeps the source whose names it has.
    private func forEachLocation(
        _ connection: Connection, _ reader: StoreRowReader, _ body: (PortableRow) throws -> Void
    ) throws {
        // Where a location's source is not known, `ingest` takes the last one.
        guard let last = reader.stores.max(by: { $0.key < $1.key })?.value else { return }
        let rows = try connection.prepare(
            "select id, namer from location where detail > 0 order by id")
        while try rows.step() {
            let (id, namer) = (try rows.integer(), rows.optionalInteger())
            let store = namer.flatMap { reader.stores[$0] } ?? last
            if let row = try reader.location(id, of: store) {
                try body(row)
            }
        }
    }
}
