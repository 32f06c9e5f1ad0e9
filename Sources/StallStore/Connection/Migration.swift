// The schema's history: the files of the folder migrations/, embedded in the binary.

/// One numbered step of the schema.
package struct Migration: Sendable {
    /// The file's name without its extension; it begins with four digits.
    package let name: String
    /// The `user_version` of a store whose last migration it is.
    package let version: Int
    package let sql: String

    init(name: String, bytes: [UInt8]) {
        self.name = name
        // No file has the number 6, and `user_version` counted files up to 0009: 6, 7 and 8 mean 0007, 0008 and 0009
        // for ever. From 0010 on it is the file's number.
        let number = Int(name.prefix(4))!
        version = 7...9 ~= number ? number - 1 : number
        sql = String(decoding: bytes, as: UTF8.self)
    }

    /// The tables that it creates: `create table` begins a line in every migration.
    package var tables: [String] {
        sql.split(separator: "\n").compactMap { line in
            line.hasPrefix("create table ") ? String(line.split(separator: " ")[2]) : nil
        }
    }
}

/// Every migration, in order. A store's `user_version` says which was its last.
/// The embedded members' names lose their first digit.
package let embeddedMigrations = [
    Migration(name: "0001_create_reports", bytes: PackageResources._001_create_reports_sql),
    Migration(name: "0002_create_views", bytes: PackageResources._002_create_views_sql),
    Migration(name: "0003_add_cause", bytes: PackageResources._003_add_cause_sql),
    Migration(name: "0004_add_exposure", bytes: PackageResources._004_add_exposure_sql),
    Migration(name: "0005_add_groups", bytes: PackageResources._005_add_groups_sql),
    Migration(name: "0007_add_agent_cost", bytes: PackageResources._007_add_agent_cost_sql),
    Migration(name: "0008_imply_weights", bytes: PackageResources._008_imply_weights_sql),
    Migration(name: "0009_add_hang_index", bytes: PackageResources._009_add_hang_index_sql),
    Migration(name: "0010_add_checksums", bytes: PackageResources._010_add_checksums_sql),
    Migration(name: "0011_add_ending", bytes: PackageResources._011_add_ending_sql),
    Migration(name: "0012_add_watched_loops", bytes: PackageResources._012_add_watched_loops_sql),
    Migration(name: "0013_add_origins", bytes: PackageResources._013_add_origins_sql),
    Migration(name: "0014_add_group_facts", bytes: PackageResources._014_add_group_facts_sql),
    Migration(name: "0015_roll_up_exposure", bytes: PackageResources._015_roll_up_exposure_sql),
    Migration(
        name: "0016_add_partial_imports", bytes: PackageResources._016_add_partial_imports_sql),
    Migration(name: "0017_shorten_reports", bytes: PackageResources._017_shorten_reports_sql),
]

/// The `user_version` of a store of the newest schema.
package let newestSchemaVersion = embeddedMigrations.last!.version

/// How many of the migrations a store of this `user_version` has seen; nil for a number that no store has. The number
/// comes out of a file: any is possible.
package func migrationCount(ofVersion version: Int) -> Int? {
    if version == 0 { return 0 }
    return embeddedMigrations.firstIndex { $0.version == version }.map { $0 + 1 }
}
