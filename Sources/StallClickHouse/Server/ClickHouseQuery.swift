// Statements, with values that cannot become statements. ClickHouse 18.16 has no parameters that are bound apart, so every
// value is written as a literal, and only here.

package import StallModel

/// A statement or a part of one. The text of a program becomes it as it is; what is interpolated becomes a literal:
///
///     let query: ClickHouseQuery = "select title from signature where hash = \(hash) and title != \(title)"
///
/// There is deliberately no way to make one from a string that is not in the program's text.
package struct ClickHouseQuery: Hashable, Sendable {
    package private(set) var sql: String

    /// Joins parts: conditions with ` and `, columns with `, `.
    package static func joined(
        _ parts: [ClickHouseQuery], by separator: StaticString
    ) -> ClickHouseQuery {
        var query: ClickHouseQuery = ""
        query.sql = parts.map(\.sql).joined(separator: separator.description)
        return query
    }

    /// A statement of a migration: its file is a part of the program.
    init(_ statement: ClickHouseMigration.Statement) { sql = statement.sql }

    package static func + (left: ClickHouseQuery, right: ClickHouseQuery) -> ClickHouseQuery {
        var query = left
        query.sql += right.sql
        return query
    }
}

extension ClickHouseQuery: ExpressibleByStringInterpolation {
    package init(stringLiteral text: StaticString) { sql = text.description }

    package init(stringInterpolation: StringInterpolation) { sql = stringInterpolation.sql }

    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var sql = ""

        package init(literalCapacity: Int, interpolationCount: Int) {
            sql.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        package mutating func appendLiteral(_ text: StaticString) { sql += text.description }

        package mutating func appendInterpolation(_ part: ClickHouseQuery) { sql += part.sql }

        package mutating func appendInterpolation(_ number: some FixedWidthInteger) {
            // In parentheses: `a -\(-1)` is not to become a comment.
            sql += number < 0 ? "(\(number))" : "\(number)"
        }

        package mutating func appendInterpolation(_ text: String) { sql += Self.literal(text) }

        /// The sum of a column of numbers that are not negative. It ends at the largest number, as SQLite's roll-ups
        /// do: `sum` of integers wraps. A sum below 2^64 that wrapped is negative, any greater one is far above 10^19.
        package mutating func appendInterpolation(sum column: ClickHouseQuery) {
            let sum = "sum(\(column.sql))"
            let isBeyond = "\(sum) < 0 or sum(toFloat64(\(column.sql))) > 1e19"
            sql += "if(\(isBeyond), toInt64(\(Int64.max)), \(sum))"
        }

        package mutating func appendInterpolation(_ bytes: [UInt8]) {
            sql += "unhex('" + Self.hexadecimal(bytes) + "')"
        }

        package mutating func appendInterpolation(_ id: UniqueID) {
            appendInterpolation(id.bytes)
        }

        /// The name of a column, a table or a cluster, which is not a value.
        package mutating func appendInterpolation(name: String) {
            sql += "`"
            for scalar in name.unicodeScalars {
                if scalar == "`" || scalar == "\\" { sql += "\\" }
                sql.unicodeScalars.append(scalar)
            }
            sql += "`"
        }

        /// The list for `in`. An empty list is a list that nothing is in.
        package mutating func appendInterpolation(list: some Sequence<some FixedWidthInteger>) {
            append(list.map { "\($0)" })
        }

        package mutating func appendInterpolation(list: some Sequence<String>) {
            append(list.map(Self.literal))
        }

        package mutating func appendInterpolation(list: some Sequence<[UInt8]>) {
            append(list.map { "unhex('" + Self.hexadecimal($0) + "')" })
        }

        private mutating func append(_ values: [String]) {
            sql += values.isEmpty ? "(NULL)" : "(" + values.joined(separator: ", ") + ")"
        }

        /// **Source:** ClickHouse documentation, "Syntax", "String": what a backslash means.
        private static func literal(_ text: String) -> String {
            var literal = "'"
            for scalar in text.unicodeScalars {
                switch scalar {
                case "'", "\\": literal += "\\\(scalar)"
                case "\0": literal += "\\0"
                case "\n": literal += "\\n"
                case "\r": literal += "\\r"
                case "\t": literal += "\\t"
                default: literal.unicodeScalars.append(scalar)
                }
            }
            return literal + "'"
        }

        private static func hexadecimal(_ bytes: [UInt8]) -> String {
            let digits = Array("0123456789abcdef".utf8)
            return String(
                decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
                as: UTF8.self)
        }
    }
}
