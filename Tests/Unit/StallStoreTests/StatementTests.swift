@testable import StallStore
import Testing

/// Goal: no row, NULL and zero are three things. Method: rows of constants, read in each way.
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
}
