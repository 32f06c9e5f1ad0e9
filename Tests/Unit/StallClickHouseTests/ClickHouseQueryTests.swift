import Foundation
import StallClickHouse
import StallModel
import Testing

/// Goal: no value that is put into a statement can end its literal, whatever it holds.
/// Method: hostile texts, and a reader of literals by ClickHouse's rules that has to find one literal and the text in it.
@Suite struct ClickHouseQueryTests {
    static let hostile = [
        "", "'", "\\", "\\'", "' or 1 = 1 --", "\\' or 1=1 --", "'; drop table report; --", "''",
        "\\\\'", "a\nb",
        "a\tb\r", "\0", "end\\", "{database}", "%27", "\u{2028}", "＇", "日本", "`", "/*",
        "\u{1B}[31m",
        String(repeating: "'\\", count: 500),
    ]

    @Test(arguments: hostile)
    func `a text is one literal`(text: String) throws {
        let query: ClickHouseQuery = "select \(text)"
        let literal = String(query.sql.dropFirst("select ".count))
        #expect(try Self.read(literal) == text)
    }

    @Test func `texts of a list are literals of their own`() throws {
        let query: ClickHouseQuery = "\(list: Self.hostile)"
        let joined = query.sql.dropFirst().dropLast()
        let single: [String] = Self.hostile.map { text in
            let query: ClickHouseQuery = "\(text)"
            return query.sql
        }
        #expect(joined == single.joined(separator: ", "))
    }

    @Test func `nothing is in an empty list`() {
        let query: ClickHouseQuery = "app in \(list: [String]())"
        #expect(query.sql == "app in (NULL)")
    }

    /// ClickHouse adds up integers modulo 2^64.
    @Test func `a sum ends at the largest number`() {
        let query: ClickHouseQuery = "select \(sum: "cpu_ns") as cpu"
        #expect(
            query.sql
                == "select if(sum(cpu_ns) < 0 or sum(toFloat64(cpu_ns)) > 1e19, toInt64(9223372036854775807), sum(cpu_ns)) as cpu"
        )
    }

    @Test func `no statement adds up times in another way`() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Sources/StallClickHouse").standardized
        let files = try #require(
            FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        var count = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            count += 1
            let text = try String(contentsOf: file, encoding: .utf8)
            let plain = text.matches(of: /\bsum\(\w+_ns\)/).map { String(text[$0.range]) }
            #expect(plain == [], "\(file.lastPathComponent)")
        }
        #expect(count > 20)
    }

    @Test func `a negative number does not begin a comment`() {
        let query: ClickHouseQuery = "select 1 -\(Int64(-1)), \(Int64.min), \(UInt64.max)"
        #expect(query.sql == "select 1 -(-1), (-9223372036854775808), 18446744073709551615")
    }

    @Test func `bytes are hexadecimal`() {
        let id = UniqueID((0x0193_c1e2_f0aa_7000, 0x8000_0000_0000_0027))
        let query: ClickHouseQuery = "select \(id), \([0x27, 0x5C, 0] as [UInt8])"
        #expect(
            query.sql == "select unhex('0193c1e2f0aa70008000000000000027'), unhex('275c00')")
    }

    @Test(arguments: ["a`b", "`; drop table report", "a\\", "\\`"])
    func `a name stays in its quotes`(name: String) {
        let query: ClickHouseQuery = "\(name: name)"
        var rest = query.sql.dropFirst().dropLast()
        var found = ""
        while let character = rest.popFirst() {
            #expect(character != "`")
            found.append(character == "\\" ? rest.popFirst()! : character)
        }
        #expect(found == name)
    }

    @Test func `a part of a statement is put in as it is`() {
        let part: ClickHouseQuery = "app = \("x'y")"
        let query: ClickHouseQuery =
            "select 1 where \(part) and \(.joined([part, part], by: " or "))"
        #expect(query.sql == #"select 1 where app = 'x\'y' and app = 'x\'y' or app = 'x\'y'"#)
    }

    struct NoLiteral: Error {}

    /// Reads a literal as ClickHouse does; throws when anything is behind its end.
    static func read(_ literal: String) throws -> String {
        var rest = literal.unicodeScalars[...]
        guard rest.popFirst() == "'" else { throw NoLiteral() }
        var text = String.UnicodeScalarView()
        while let scalar = rest.popFirst() {
            if scalar == "'" {
                guard rest.isEmpty else { throw NoLiteral() }
                return String(text)
            }
            guard scalar == "\\" else {
                text.append(scalar)
                continue
            }
            switch rest.popFirst() {
            case "n": text.append("\n")
            case "r": text.append("\r")
            case "t": text.append("\t")
            case "0": text.append("\0")
            case let other?: text.append(other)
            case nil: throw NoLiteral()
            }
        }
        throw NoLiteral()
    }
}
