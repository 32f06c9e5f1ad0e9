// The history of the schema in ClickHouse: the files of migrations/clickhouse, embedded in the binary.

/// One numbered step of the schema.
package struct ClickHouseMigration: Sendable {
    /// The file's name without its extension; it begins with four digits.
    package let name: String
    package let version: Int
    private let text: String

    /// A statement with all names in it.
    struct Statement {
        let sql: String

        fileprivate init(_ sql: String) { self.sql = sql }

        var addsColumn: Bool { sql.contains(" add column ") }
    }

    private init(_ name: String, _ bytes: [UInt8]) {
        self.name = name
        version = Int(name.prefix(4))!
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// Every migration, in order. The embedded members' names lose their first digit.
    package static let all = [
        ClickHouseMigration(
            "0001_create_dimensions", PackageResources._001_create_dimensions_sql),
        ClickHouseMigration("0002_create_reports", PackageResources._002_create_reports_sql),
        ClickHouseMigration("0003_create_rollups", PackageResources._003_create_rollups_sql),
        ClickHouseMigration(
            "0004_order_rollups_by_group", PackageResources._004_order_rollups_by_group_sql),
        ClickHouseMigration(
            "0005_add_delayed_time", PackageResources._005_add_delayed_time_sql),
        ClickHouseMigration("0006_keep_rules", PackageResources._006_keep_rules_sql),
        ClickHouseMigration("0007_add_device", PackageResources._007_add_device_sql),
    ]

    package static let newest = all.last!.version

    /// The statements for a database, on one of its servers.
    func statements(for address: ClickHouseAddress) -> [Statement] {
        let database = Self.quoted(address.database)
        return text.split(separator: ";\n").map(String.init).filter(Self.isStatement).map {
            statement in
            Statement(
                Self.replacing("{shards of ", upTo: "}", in: statement) { table in
                    Self.engine(of: String(table), address)
                }.replacing("{database}", with: database))
        }
    }

    /// The engine that reads a table of every shard as one.
    private static func engine(of table: String, _ address: ClickHouseAddress) -> String {
        guard let cluster = address.cluster else {
            return "Merge(\(quoted(address.database)), '^\(table)$')"
        }
        return "Distributed(\(quoted(cluster)), \(quoted(address.database)), \(table))"
    }

    private static func quoted(_ name: String) -> String {
        let query: ClickHouseQuery = "\(name: name)"
        return query.sql
    }

    /// Whether there is more than comments.
    private static func isStatement(_ text: String) -> Bool {
        text.split(separator: "\n").contains {
            !$0.hasPrefix("--") && !$0.allSatisfy(\.isWhitespace)
        }
    }

    private static func replacing(
        _ opening: String, upTo closing: Character, in text: String, _ body: (Substring) -> String
    ) -> String {
        var (result, rest) = ("", text[...])
        while let begin = rest.firstRange(of: opening),
            let end = rest[begin.upperBound...].firstIndex(of: closing)
        {
            result += rest[..<begin.lowerBound] + body(rest[begin.upperBound..<end])
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }
}

extension String {
    fileprivate func replacing(_ word: String, with other: String) -> String {
        split(separator: word, omittingEmptySubsequences: false).joined(separator: other)
    }
}
