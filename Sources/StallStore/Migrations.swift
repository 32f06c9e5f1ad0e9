// The schema's history: the files of the folder migrations/, embedded in the binary.

/// One numbered step of the schema.
package struct Migration: Sendable {
    /// The file's name without its extension.
    package let name: String
    package let sql: String

    /// The tables that it creates: `create table` begins a line in every migration.
    let tables: [String]

    init(name: String, bytes: [UInt8]) {
        self.name = name
        sql = String(decoding: bytes, as: UTF8.self)
        tables = sql.split(separator: "\n").compactMap { line in
            line.hasPrefix("create table ") ? String(line.split(separator: " ")[2]) : nil
        }
    }
}

/// Every migration, in order. A store's `user_version` says how many of them it has seen.
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
]

/// Brings a store of either role to the newest schema.
///
/// - Returns: The schema versions before and after; equal when there was nothing to do.
package func migrateStore(path: String) throws(StoreError) -> (from: Int, to: Int) {
    try StoreFile.migrate(path: path)
}
