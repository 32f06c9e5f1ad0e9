// Deletes the oldest reports, and rows that no report needs any more. Works within the transaction of its caller, which
// forgets afterwards which rows there were.

package import StallModel

/// Makes room in a store.
package struct Eviction {
    private let connection: Connection

    package init(_ connection: Connection) { self.connection = connection }

    /// The bytes of pages that hold something. Pages that became free are used again before the
    /// file grows.
    func usedBytes() throws -> Int64 {
        func number(_ name: String) throws -> Int64 {
            try connection.prepare("pragma \(name)").number()
        }
        return try (number("page_count") - number("freelist_count")) * number("page_size")
    }

    /// Deletes the oldest reports, until the used bytes are at most `target`, when they are more than `limit`.
    ///
    /// - Parameters:
    ///   - source: The agent's own source, whose reports are as old as their numbers say; nil goes
    ///     by their start.
    ///   - collect: Deletes the rows that only these reports used.
    /// - Returns: How many reports there were.
    package func shrink(
        to target: Int64, below limit: Int64, of source: Int64?, collect: () throws -> Void
    ) throws -> Int {
        var total = 0
        var used = try usedBytes()
        // Content that reports share is deleted late, so that a share of the reports may free less than that share of
        // the bytes.
        while used > limit {
            let share = Double(used - target) / Double(used)
            let count = try deleteOldest(share: share, of: source)
            let stretches = try source.map { try deleteOldestExposure(share: share, of: $0) } ?? 0
            guard count + stretches > 0 else { break }
            try collect()
            total += count
            used = try usedBytes()
        }
        return total
    }

    /// Deletes that part of all reports, oldest first; open ones stay. Returns how many there were.
    func deleteOldest(share: Double, of source: Int64?) throws -> Int {
        let all = try connection.prepare("select count(*) from report").number()
        let count = Int64((Double(all) * share).rounded(.up))
        // Rows written at the store's earlier location on disk are older than all that were written here.
        let others = try source.map {
            try connection.prepare("select count(*) from source where id <> ?").number($0)
        }
        if let source, others == 0 {
            try connection.prepare(
                """
                delete from report where source = ? and seq in (
                    select seq from report where source = ? and state <> 0 order by seq limit ?)
                """
            ).run(source, source, count)
        } else if let source {
            try connection.prepare(
                """
                delete from report where (source, seq) in (
                    select source, seq from report where state <> 0 or source <> ?
                    order by source = ?, source, seq limit ?)
                """
            ).run(source, source, count)
        } else {
            try connection.prepare(
                """
                delete from report where (source, seq) in (
                    select source, seq from report where state <> 0 order by start_us limit ?)
                """
            ).run(count)
        }
        return connection.changeCount
    }

    /// Deletes that part of an agent's exposure, oldest first. Returns how many stretches there were.
    private func deleteOldestExposure(share: Double, of source: Int64) throws -> Int {
        let all = try connection.prepare("select count(*) from exposure").number()
        try connection.prepare(
            """
            delete from exposure where (source, revision) in (
                select source, revision from exposure order by source = ?, source, revision limit ?)
            """
        ).run(source, Int64((Double(all) * share).rounded(.up)))
        return connection.changeCount
    }

    /// Deletes stretches of watched time that began before then.
    package func deleteExposure(before time: UnixTime) throws {
        try connection.prepare("delete from exposure where start_us < ?").run(time.microseconds)
    }

    /// Deletes reports that started before then; open ones stay. Returns how many there were.
    package func delete(before time: UnixTime) throws -> Int {
        try connection.prepare("delete from report where start_us < ? and state <> 0")
            .run(time.microseconds)
        return connection.changeCount
    }

    /// Deletes stacks, locations, names, images, loops and runs that no report leads to.
    ///
    /// - Parameter time: Runs that started at or after it stay in any case, with the losses that they counted.
    package func collect(runsBefore time: UnixTime) throws {
        try collectStacks()
        try collectLocations()
        for sql in [
            """
            delete from function where id not in (
                select function from location_frame where function is not null)
            """,
            """
            delete from label where id not in (
                select mode from report union all
                select activity from report where activity is not null)
            """,
            """
            delete from loop where id not in (
                select loop from report union all select loop from exposure union all
                select loop from suppression)
            """,
            "delete from watched_loop where loop not in (select id from loop)",
            """
            delete from unnamed_report where not exists (
                select 1 from report
                where report.source = unnamed_report.source and report.seq = unnamed_report.seq)
            """,
            """
            delete from report_day where not exists (
                select 1 from report where report.source = report_day.source
                    and report.seq between report_day.first_seq and report_day.last_seq)
            """,
            """
            delete from signature where id not in (
                select signature from rollup union
                select signature from report where signature is not null)
            """,
            "delete from signature_frame where signature not in (select id from signature)",
            """
            delete from evidence where id not in (
                select evidence from report where evidence is not null)
            """,
            "delete from evidence_fact where evidence not in (select id from evidence)",
            """
            delete from cohort where id not in (
                select cohort from rollup union select cohort from host_rollup)
            """,
            "delete from host where id not in (select host from host_rollup)",
            """
            delete from loss where run not in (select run from loop)
                and run in (select id from process_run where started_us < ?)
            """,
            "delete from run_source where run not in (select run from loop)",
            """
            delete from image_load where run not in (select run from loop)
                or image not in (select image from location)
            """,
            "delete from image where id not in (select image from location)",
            """
            delete from process_run where id not in (
                select run from loop union all select run from loss union all
                select run from image where run is not null) and started_us < ?
            """,
        ] {
            let statement = try connection.prepare(sql)
            if sql.contains("?") {
                try statement.run(time.microseconds)
            } else {
                try statement.run()
            }
        }
    }

    /// Stacks that no report names.
    private func collectStacks() throws {
        try keepOnly("stack") { keep in
            var seen: Set<Int64> = []
            let rows = try connection.prepare("select samples, threads from report")
            while try rows.step() {
                let stacks =
                    try rows.samples().compactMap(\.stack)
                    + rows.threads().compactMap(\.stack)
                for stack in stacks where seen.insert(stack).inserted { try keep(stack) }
            }
        }
    }

    /// Locations that no stack names, with their frames.
    private func collectLocations() throws {
        try keepOnly("location") { keep in
            var seen: Set<Int64> = []
            let rows = try connection.prepare("select locations from stack")
            while try rows.step() {
                guard let entries = [StackEntry](encoded: rows.blob()) else {
                    throw rows.damage("a stack is not a list of locations")
                }
                for entry in entries where seen.insert(entry.location).inserted {
                    try keep(entry.location)
                }
            }
        }
    }

    /// Deletes the rows of a table whose numbers `list` does not give.
    private func keepOnly(_ table: String, _ list: ((Int64) throws -> Void) throws -> Void) throws {
        try connection.prepare(
            "create temp table if not exists kept (id integer primary key) strict"
        ).run()
        try connection.prepare("delete from temp.kept").run()
        let add = try connection.prepare("insert into temp.kept (id) values (?)")
        try list { try add.run($0) }
        if table == "location" {
            try connection.prepare(
                "delete from location_frame where location not in (select id from temp.kept)"
            ).run()
        }
        try connection.prepare("delete from \(table) where id not in (select id from temp.kept)")
            .run()
        try connection.prepare("delete from temp.kept").run()
    }
}
