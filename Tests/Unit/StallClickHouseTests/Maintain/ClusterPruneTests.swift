import StallClickHouse
import StallModel
import Testing

/// Goal: what is old goes, open reports stay, a time to come says nothing of reports to come, and a size is reached by whole
/// days. Method: a played cluster notes what it is told.
@Suite struct ClusterPruneTests {
    let played = PlayedCluster()
    let day: Int64 = 86_400_000_000

    init() {
        // A report of day 100 is the last one, and the tables' partitions are 1 (days 32 to 63) and 3.
        answer("select count(), max(start_us)", "9\t8640000000005\n")
        answer("select count() from report final prewhere", "7\n")
        answer("from grouping final", "42\t0\n")
        answer("select distinct partition", "1\n3\n")
    }

    private func answer(_ question: String, _ rows: String) {
        played.answers[question] = Array(rows.utf8)
    }

    private func prune(
        _ since: Int64? = nil, bytes: Int64? = nil, rollUpsSince: Int64? = nil
    ) throws -> Int {
        try ClusterPrune(
            played.cluster(), clock: { UnixTime(microseconds: 1) }, pause: { _ in }
        ).run(
            reportsSince: since.map { UnixTime(microseconds: $0) }, bytes: bytes,
            rollUpsSince: rollUpsSince.map { UnixTime(microseconds: $0) })
    }

    private var alterations: [String] {
        played.statements.filter { $0.host == "two" && $0.sql.hasPrefix("alter") }.map(\.sql)
    }
    private var notes: [String] {
        played.statements.filter { $0.sql.hasPrefix("insert into grouping") }.map(\.sql)
    }

    @Test func `whole partitions are dropped, and rows of the others deleted`() throws {
        #expect(try prune(70 * day) == 7)
        #expect(
            alterations == [
                "alter table report_local drop partition 1",
                "alter table report_local delete where start_us < \(70 * day)",
            ])
        #expect(notes.count == 2 && notes[0].contains("(1, 42, \(70 * day), 1)"))
    }

    @Test func `open reports stay, and the partition that they are in`() throws {
        answer("state = 0", "aaaaaaaaaaaaaaaa\t40\n")
        #expect(try prune(70 * day) == 6)
        let id = "unhex('\(String(repeating: "61", count: 16))')"
        #expect(
            alterations == [
                "alter table report_local delete where start_us < \(70 * day) and id not in (\(id))"
            ])
    }

    @Test func `a time to come is not noted`() throws {
        _ = try prune(Int64.max)
        #expect(notes.first?.contains("(1, 42, 8640000000006, 1)") == true)
    }

    @Test func `nothing is noted where nothing is deleted`() throws {
        answer("select count() from report final prewhere", "0\n")
        #expect(try prune(70 * day) == 0)
        #expect(notes.isEmpty && alterations.isEmpty)
    }

    @Test func `rows are waited for`() throws {
        answer("system.mutations", "1\n")
        let error = #expect(throws: ClickHouseError.self) { try prune(70 * day) }
        #expect(error?.description.contains("rows of report_local are not deleted") == true)
    }

    @Test func `roll-ups go with the reports of their days`() throws {
        _ = try prune(rollUpsSince: 70 * day + 5)
        #expect(
            alterations.contains("alter table report_local delete where start_us < \(70 * day)"))
        #expect(alterations.contains("alter table cohort_rollup_local delete where day < 70"))
        #expect(
            alterations.contains("alter table exposure_local delete where start_us < \(70 * day)"))
    }

    /// Each shard has ten rows of 100 bytes in the partition of these days, and 150 bytes in all.
    private func answerSizes() {
        answer("select toInt64(sum(bytes_on_disk))", "150\n")
        answer("select toInt64(partition)", "1\t10\t100\n")
        answer("select day, count() from report_local", "41\t5\n40\t2\n42\t3\n")
    }

    @Test func `the oldest days go until the rest fits`() throws {
        answerSizes()
        // Of 300 bytes 41 are too many: day 40 takes 40 of them.
        #expect(try prune(bytes: 300) == 0 && alterations.isEmpty)
        // The played cluster never gets smaller: the first look at it is to be the last.
        answer("system.mutations", "1\n")
        #expect(throws: ClickHouseError.self) { try prune(bytes: 259) }
        #expect(alterations.last == "alter table report_local delete where start_us < \(42 * day)")
    }

    @Test func `a size below that of the other tables is refused`() throws {
        answerSizes()
        let error = #expect(throws: ClickHouseError.self) { try prune(bytes: 99) }
        #expect(
            error?.description.contains("its tables take 100 bytes without any reports") == true)
        #expect(alterations.isEmpty)
    }
}
