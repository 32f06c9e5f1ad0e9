import StallClickHouse
import StallModel
import Testing

/// Goal: what is written comes back as it was, and an answer that is none is refused with its place.
@Suite struct TabSeparatedRowsTests {
    private func rows(_ text: String, _ columnCount: Int) -> TabSeparatedRows {
        TabSeparatedRows(Array(text.utf8), columnCount: columnCount, of: "store")
    }

    @Test func `every byte survives`() throws {
        let bytes = (0...255).map { UInt8($0) } + Array("\\N".utf8)
        let id = UniqueID((0x0900_5c00_0a00_0d00, 0x5c27_0000_0000_0000))
        var writer = TabSeparatedWriter()
        writer.add(bytes)
        writer.add(id)
        writer.add("\\N")
        writer.null()
        writer.add(Int64.min)
        writer.add(list: [Int64.min, 0, Int64.max])
        writer.endRow()
        writer.add("")
        writer.add(id)
        writer.add("b")
        writer.add("c")
        writer.add(Int64(0))
        writer.add(list: [Int64]())
        writer.endRow()
        var rows = TabSeparatedRows(writer.bytes, columnCount: 6, of: "store")
        #expect(try rows.step())
        #expect(try rows.bytes(at: 0) == bytes)
        #expect(try rows.uniqueID(at: 1) == id)
        #expect(try rows.optionalText(at: 2) == "\\N")
        #expect(try rows.optionalText(at: 3) == nil)
        #expect(try rows.integer(at: 4) == Int64.min)
        #expect(try rows.integers(at: 5) == [.min, 0, .max])
        #expect(try rows.step())
        #expect(try rows.text(at: 0) == "")
        #expect(try rows.integers(at: 5) == [])
        #expect(try rows.step() == false)
    }

    @Test(arguments: ["1\t2", "1\n", "1\t2\t3\n", "Code: 241. DB::Exception: Memory limit", "\n"])
    func `a row with other columns is refused`(text: String) {
        var rows = rows(text, 2)
        #expect(throws: ClickHouseError.self) { try rows.step() }
    }

    @Test(arguments: [
        "", "-", "+1", " 1", "1 ", "0x1", "1.5", "1e3", "9223372036854775808",
        "-9223372036854775809", "nan", "\\N", "１",
    ])
    func `what is no number of 64 bits is refused`(text: String) throws {
        var rows = rows(text + "\n", 1)
        #expect(try rows.step())
        #expect(throws: ClickHouseError.self) { try rows.integer(at: 0, as: Int64.self) }
    }

    @Test func `a number is refused that its place does not hold`() throws {
        var rows = rows("256\t-1\t-129\t65536\n", 4)
        #expect(try rows.step())
        #expect(throws: ClickHouseError.self) { try rows.integer(at: 0, as: UInt8.self) }
        #expect(throws: ClickHouseError.self) { try rows.integer(at: 1, as: UInt8.self) }
        #expect(throws: ClickHouseError.self) { try rows.integer(at: 2, as: Int8.self) }
        #expect(throws: ClickHouseError.self) { try rows.integer(at: 3, as: UInt16.self) }
    }

    @Test(arguments: ["", "[", "]", "1", "[1", "[1,x]", "[1;2]", "[99999999999999999999]"])
    func `what is no list of numbers is refused`(text: String) throws {
        var rows = rows(text + "\n", 1)
        #expect(try rows.step())
        #expect(throws: ClickHouseError.self) { try rows.integers(at: 0) }
    }

    @Test func `an error names the row and the column`() throws {
        var rows = rows("1\t2\n3\tx\n", 2)
        _ = try (rows.step(), rows.step())
        let error = #expect(throws: ClickHouseError.self) {
            try rows.integer(at: 1, as: Int64.self)
        }
        #expect(
            error?.description
                == "store: not an answer of a store: row 2, column 2: expected a number of 64 bits, found x"
        )
    }

    @Test func `a text that ends with a backslash is refused`() throws {
        var rows = rows("a\\\n", 1)
        #expect(try rows.step())
        #expect(throws: ClickHouseError.self) { try rows.text(at: 0) }
    }

    /// Goal: what is computed of a day, its beginning and its end in microseconds, is a number.
    @Test(arguments: ["106000001", "-106000001", "9223372036854775807", "-9223372036854775808", ""])
    func `a day that the calendar has not is refused`(text: String) throws {
        var rows = TabSeparatedRows(Array("20405\t\(text)\n".utf8), columnCount: 2, of: "hub")
        #expect(try rows.step())
        #expect(try rows.day(at: 0) == 20_405)
        #expect(throws: ClickHouseError.self) { try rows.day(at: 1) }
    }
}
