// The schema's history: the files of the folder migrations/, embedded in the binary.

internal import CStoreSchema

/// One numbered step of the schema.
package struct Migration: Sendable {
    /// The file's name without its extension; it begins with four digits.
    package let name: String
    /// The `user_version` of a store whose last migration it is.
    package let version: Int
    package let sql: String

    fileprivate init(_ embedded: StallMigration) {
        name = String(cString: embedded.name)
        // No file has the number 6, and `user_version` counted files up to 0009: 6, 7 and 8 mean 0007, 0008 and 0009
        // forever. From 0010 on it is the file's number.
        let number = Int(name.prefix(4))!
        version = 7...9 ~= number ? number - 1 : number
        sql = String(cString: embedded.sql)
    }

    /// The tables that it creates: `create table` begins a line in every migration.
    package var tables: [String] {
        sql.split(separator: "\n").compactMap { line in
            line.hasPrefix("create table ") ? String(line.split(separator: " ")[2]) : nil
        }
    }
}

/// Every migration, in order.
package let embeddedMigrations = (0..<stall_migration_count).map {
    Migration(stall_migration($0).pointee)
}

/// The schema after all migrations, as one script. They take seven times as long, because each change of a table reads the whole
/// schema again.
package let newestSchema = String(cString: stall_newest_schema())

/// The `user_version` of a store of the newest schema.
package let newestSchemaVersion = embeddedMigrations.last!.version

/// How many of the migrations a store of this `user_version` has seen; nil for a number that no store has. The number
/// comes out of a file: any is possible.
package func migrationCount(ofVersion version: Int) -> Int? {
    if version == 0 { return 0 }
    return embeddedMigrations.firstIndex { $0.version == version }.map { $0 + 1 }
}
