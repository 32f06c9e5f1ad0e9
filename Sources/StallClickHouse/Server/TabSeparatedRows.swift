// A server's answer as it is on the wire: one line per row, columns separated by tabs, with backslashes before
// characters that would be read as either. Any program may answer there: no number is used before its range is checked.
//
// **Source:** ClickHouse documentation, "Formats", "TabSeparated".

package import StallModel

/// Steps through the rows of an answer.
package struct TabSeparatedRows {
    private let bytes: [UInt8]
    /// For messages.
    private let store: String
    private let columnCount: Int
    /// Where the next row begins, and where each column of the current one lies.
    private var end = 0
    private var columns: [Range<Int>] = []
    /// The column that is read next, where a read names none.
    private let cursor = Cursor()
    /// The number of the current row, from 1.
    private var number = 0

    package init(_ bytes: [UInt8], columnCount: Int, of store: String) {
        (self.bytes, self.columnCount, self.store) = (bytes, columnCount, store)
        columns.reserveCapacity(columnCount)
    }

    /// All rows as they came, which an insert of the same columns takes.
    package var all: [UInt8] { bytes }

    /// Goes to the next row; false at the end.
    package mutating func step() throws(ClickHouseError) -> Bool {
        assert(
            cursor.column == 0 || cursor.column >= columnCount,
            "row \(number) was left at column \(cursor.column) of \(columnCount)")
        cursor.column = 0
        guard end < bytes.count else { return false }
        number += 1
        columns.removeAll(keepingCapacity: true)
        var begin = end
        var isWhole = false
        bytes.withUnsafeBufferPointer { bytes in
            var index = end
            while index < bytes.count {
                if bytes[index] == UInt8(ascii: "\t") {
                    columns.append(begin..<index)
                    begin = index + 1
                } else if bytes[index] == UInt8(ascii: "\n") {
                    columns.append(begin..<index)
                    (end, isWhole) = (index + 1, true)
                    return
                }
                index += 1
            }
        }
        // A server that fails half-way has said that all is well before, and then writes why in place of a row.
        let start = columns.first?.lowerBound ?? begin
        // An end of line of another system is before it in later versions, and nowhere in rows: it has a backslash there.
        let isOther = end - start > 1 && bytes[end - 2] == 13
        if !isWhole || columns.count != columnCount || isOther
            || columnCount == 1 && bytes[start] == UInt8(ascii: "C"),
            let exception = exception(from: start)
        {
            throw exception.error
        }
        guard isWhole, columns.count == columnCount, !isOther else {
            throw .badAnswer(
                store: store,
                detail: "row \(number) has \(columns.count) columns and not \(columnCount): "
                    + String(decoding: bytes[begin...].prefix(200), as: UTF8.self))
        }
        return true
    }

    private func exception(from begin: Int) -> ServerException? {
        let text = bytes[begin...].prefix(2000)
        return ServerException(in: String(decoding: text, as: UTF8.self), store: store)
    }

    private final class Cursor {
        var column = 0
    }

    /// Passes over a column. Reads without an index take the columns one after the other: all of them, in each row, or
    /// `skipRest` says that the others are not read. Debug builds trap where that is forgotten, as `Statement` does.
    package func next() -> Int {
        defer { cursor.column += 1 }
        return cursor.column
    }

    /// Leaves the rest of the row unread.
    package func skipRest() { cursor.column = .max }

    package func isNull(at column: Int) -> Bool {
        let range = columns[column]
        return range.count == 2 && bytes[range.lowerBound] == UInt8(ascii: "\\")
            && bytes[range.lowerBound + 1] == UInt8(ascii: "N")
    }

    package func integer(at place: Int? = nil) throws(ClickHouseError) -> Int64 {
        try integer(at: place, as: Int64.self)
    }

    /// A number of any width that fits the type asked for.
    package func integer<Number: FixedWidthInteger>(
        at place: Int? = nil, as _: Number.Type = Number.self
    ) throws(ClickHouseError) -> Number {
        let column = place ?? next()
        let number = bytes.withUnsafeBufferPointer {
            Self.number($0[columns[column]], as: Number.self)
        }
        guard let number else {
            throw bad(column, "a number of \(Number.bitWidth) bits")
        }
        return number
    }

    /// A day since 1970 that has microseconds of 64 bits, and so have the days beside it.
    package func day(at place: Int? = nil) throws(ClickHouseError) -> Int64 {
        let column = place ?? next()
        let day: Int64 = try integer(at: column)
        guard -106_000_000...106_000_000 ~= day else { throw bad(column, "a day") }
        return day
    }

    package func optionalInteger(at place: Int? = nil) throws(ClickHouseError) -> Int64? {
        let column = place ?? next()
        return isNull(at: column) ? nil : try integer(at: column)
    }

    package func double(at place: Int? = nil) throws(ClickHouseError) -> Double {
        let column = place ?? next()
        let text = String(decoding: bytes[columns[column]], as: UTF8.self)
        guard let number = Double(text) else { throw bad(column, "a number") }
        return number
    }

    package func text(at place: Int? = nil) throws(ClickHouseError) -> String {
        let column = place ?? next()
        let unescaped = try self.bytes(at: column)
        // Names are stored as they came; views escape characters that do not belong on a terminal.
        return String(decoding: unescaped, as: UTF8.self)
    }

    package func optionalText(at place: Int? = nil) throws(ClickHouseError) -> String? {
        let column = place ?? next()
        return isNull(at: column) ? nil : try text(at: column)
    }

    /// The bytes of a string column.
    package func bytes(at place: Int? = nil) throws(ClickHouseError) -> [UInt8] {
        let column = place ?? next()
        let range = columns[column]
        let raw = bytes[range]
        guard raw.contains(UInt8(ascii: "\\")) else { return Array(raw) }
        var unescaped: [UInt8] = []
        unescaped.reserveCapacity(raw.count)
        var index = range.lowerBound
        while index < range.upperBound {
            let byte = bytes[index]
            index += 1
            guard byte == UInt8(ascii: "\\") else {
                unescaped.append(byte)
                continue
            }
            guard index < range.upperBound else { throw bad(column, "a character after \\") }
            let code = bytes[index]
            index += 1
            switch code {
            case UInt8(ascii: "n"): unescaped.append(10)
            case UInt8(ascii: "t"): unescaped.append(9)
            case UInt8(ascii: "r"): unescaped.append(13)
            case UInt8(ascii: "b"): unescaped.append(8)
            case UInt8(ascii: "f"): unescaped.append(12)
            case UInt8(ascii: "a"): unescaped.append(7)
            case UInt8(ascii: "v"): unescaped.append(11)
            case UInt8(ascii: "0"): unescaped.append(0)
            default: unescaped.append(code)
            }
        }
        return unescaped
    }

    package func optionalBytes(at place: Int? = nil) throws(ClickHouseError) -> [UInt8]? {
        let column = place ?? next()
        return isNull(at: column) ? nil : try bytes(at: column)
    }

    package func uniqueID(at place: Int? = nil) throws(ClickHouseError) -> UniqueID {
        let column = place ?? next()
        guard let id = UniqueID(bytes: try bytes(at: column)) else { throw bad(column, "16 bytes") }
        return id
    }

    package func optionalUniqueID() throws(ClickHouseError) -> UniqueID? {
        let column = next()
        return isNull(at: column) ? nil : try uniqueID(at: column)
    }

    /// An array of numbers: `[1,2,3]`.
    package func integers(at place: Int? = nil) throws(ClickHouseError) -> [Int64] {
        let column = place ?? next()
        var numbers: [Int64] = []
        try readIntegers(at: column, into: &numbers)
        return numbers
    }

    /// Reads an array of numbers into the memory of another one: of millions of rows, that is most of the time.
    func readIntegers(
        at column: Int, into numbers: inout [Int64]
    ) throws(ClickHouseError) {
        numbers.removeAll(keepingCapacity: true)
        let range = columns[column]
        let isList = bytes.withUnsafeBufferPointer { bytes in
            let raw = bytes[range]
            guard raw.count >= 2, raw.first == UInt8(ascii: "["), raw.last == UInt8(ascii: "]")
            else { return false }
            guard raw.count > 2 else { return true }
            var begin = range.lowerBound + 1
            for index in begin..<range.upperBound
            where bytes[index] == UInt8(ascii: ",") || index == range.upperBound - 1 {
                guard let number = Self.number(bytes[begin..<index], as: Int64.self) else {
                    return false
                }
                numbers.append(number)
                begin = index + 1
            }
            return true
        }
        guard isList else { throw bad(column, "a list of numbers") }
    }

    /// The error for the column that was read last.
    package func bad(_ expected: String) -> ClickHouseError { bad(cursor.column - 1, expected) }

    package func bad(_ column: Int, _ expected: String) -> ClickHouseError {
        .badAnswer(
            store: store,
            detail: "row \(number), column \(column + 1): expected \(expected), found "
                + String(decoding: bytes[columns[column]].prefix(50), as: UTF8.self))
    }

    private static func number<Number: FixedWidthInteger>(
        _ digits: Slice<UnsafeBufferPointer<UInt8>>, as _: Number.Type
    ) -> Number? {
        var rest = digits
        let isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest = rest.dropFirst() }
        guard !rest.isEmpty else { return nil }
        var number: Number = 0
        for byte in rest {
            guard 48...57 ~= byte else { return nil }
            let (shifted, overflow) = number.multipliedReportingOverflow(by: 10)
            let digit = Number(truncatingIfNeeded: byte - 48)
            // Downwards for negative ones: there is one more of them.
            let (sum, carry) =
                isNegative
                ? shifted.subtractingReportingOverflow(digit)
                : shifted.addingReportingOverflow(digit)
            guard !overflow, !carry else { return nil }
            number = sum
        }
        return number
    }
}
