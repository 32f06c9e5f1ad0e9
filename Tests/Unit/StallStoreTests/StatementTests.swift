@testable import StallStore
import Testing

/// Goal: no row, NULL and zero are three things, and no read takes the column of another one. Method: rows of constants,
/// read in each way.
@Suite struct StatementTests {
    let connection = try! Connection(to: "", as: "store.sqlite", .inMemory)

    func row(_ sql: String) throws -> Statement {
        let statement = try connection.prepare(sql)
        #expect(try statement.step())
        return statement
    }

    @Test func `the first row says whether it is there and holds a number`() throws {
        let (none, null) = ("select 1 where 0", "select null")
        #expect(try connection.prepare(none).first() == .noRow)
        #expect(try connection.prepare(null).first() == .null)
        #expect(try connection.prepare("select 0").first() == .value(0))
        #expect(try connection.prepare(none).found() == nil)
        #expect(try connection.prepare("select 0").found() == 0)
        #expect(try connection.prepare("select 7").number() == 7)
        let missing = StoreError.damaged(path: "store.sqlite", detail: "a number is missing")
        #expect(throws: missing) { try connection.prepare(null).found() }
        #expect(throws: missing) { try connection.prepare(null).number() }
        #expect(throws: missing) { try connection.prepare(none).number() }
    }

    @Test func `a column that must hold a number is not zero without one`() throws {
        let row = try row("select 0 as start_us, null as duration_ns, -1")
        #expect(try (row.integer(at: 0), row.integer(at: 2)) == (0, -1))
        #expect(row.optionalInteger(at: 0) == 0)
        #expect(row.optionalInteger(at: 1) == nil)
        let missing = StoreError.damaged(path: "store.sqlite", detail: "duration_ns is missing")
        #expect(throws: missing) { try row.integer(at: 1) }
        #expect(throws: missing) { try row.duration_ns(at: 1) }
        #expect(throws: missing) { try row.count(at: 1) }
    }

    @Test func `columns are read one after the other, and the rest is skipped by its name`() throws
    {
        let rows = try connection.prepare(
            "select 1, 'one', null union all select 2, 'two', x'0102'")
        var found: [Int64] = []
        while try rows.step() {
            found.append(try rows.integer())
            guard rows.text() == "one" else {
                rows.skipRest()
                continue
            }
            #expect(rows.optionalBytes() == nil)
        }
        #expect(found == [1, 2])
        // Nothing of the row was read in turn, and a statement that is started over has no row that is half read.
        #expect(try rows.step())
        #expect(rows.text(at: 1) == "one")
        #expect(try rows.step())
        #expect(try rows.integer() == 2)
        try rows.bind()
        #expect(try rows.step())
        #expect(try rows.integer() == 1)
        rows.reset()
    }

    #if DEBUG
    /// A read that a row goes without gives its column to the read behind it.
    @Test func `a row that is left before its last column ends a debug build`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let connection = try Connection(to: "", as: "store.sqlite", .inMemory)
            let rows = try connection.prepare("select 1, 2, 3 union all select 4, 5, 6")
            while try rows.step() {
                let isFirst = try rows.integer() == 1
                if isFirst { _ = try rows.integer() }
                _ = try rows.integer()
            }
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(message.contains("the row ends at column 2: select 1, 2, 3"))
    }

    @Test func `a read behind the last column ends a debug build`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            let connection = try Connection(to: "", as: "store.sqlite", .inMemory)
            let rows = try connection.prepare("select 1")
            _ = try rows.step()
            _ = try (rows.integer(), rows.integer())
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(message.contains("there is no column 1: select 1"))
    }
    #endif
}
