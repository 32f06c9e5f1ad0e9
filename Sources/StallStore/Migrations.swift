// The schema's history: the files of the folder migrations/, embedded in the binary.

/// One numbered step of the schema.
package struct Migration: Sendable {
    /// The file's name without its extension.
    package let name: String
    package let sql: String

    /// The tables that it creates: `create table` begins a line in every migration.
    var tables: [String] {
        sql.split(separator: "\n").compactMap { line in
            line.hasPrefix("create table ") ? String(line.split(separator: " ")[2]) : nil
        }
    }
}

/// Every migration, in order. A store's `user_version` says how many of them it has seen.
/// The embedded members' names lose their first digit.
package let embeddedMigrations = [
    Migration(name: "0001_create_reports", sql: text(PackageResources._001_create_reports_sql)),
    Migration(name: "0002_create_views", sql: text(PackageResources._002_create_views_sql)),
    Migration(name: "0003_add_cause", sql: text(PackageResources._003_add_cause_sql)),
    Migration(name: "0004_add_exposure", sql: text(PackageResources._004_add_exposure_sql)),
    Migration(name: "0005_add_groups", sql: text(PackageResources._005_add_groups_sql)),
    Migration(name: "0007_add_agent_cost", sql: text(PackageResources._007_add_agent_cost_sql)),
]

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// Brings a store of either role to the newest schema.
///
/// - Returns: The schema versions before and after; equal when there was nothing to do.
package func migrateStore(path: String) throws(StoreError) -> (from: Int, to: Int) {
    try StoreFile.migrate(path: path)
}
