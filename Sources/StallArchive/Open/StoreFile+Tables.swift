// Checks that the tables of a store are tables: code of its maker must not run.

internal import StallModel
internal import StallStore
internal import Synchronization

extension StoreFile {
    /// The tables that a store of a version has, by the migration that created them.
    static func tables(ofVersion version: Int) -> [String] {
        tablesOfMigrations.prefix(migrationCount(ofVersion: version) ?? 0).flatMap { $0 }
    }

    private static let tablesOfMigrations = embeddedMigrations.map(\.tables)

    /// A store's tables are tables: a view of the same name would run whatever its maker wrote.
    static func expectTables(
        _ connection: Connection, version: Int
    ) throws(StoreError) {
        let path = connection.path
        let rows = try connection.prepare(
            "select name, sql from sqlite_schema where type = 'table' and sql is not null")
        var found: [String: String] = [:]
        while try rows.step() {
            let name = rows.text()
            found[name] = rows.text()
        }
        for table in tables(ofVersion: version) {
            guard let sql = found[table] else {
                throw StoreError.damaged(path: path, detail: "it has no table \(table)")
            }
            // A virtual one is a program that reads data of its maker.
            guard sql.prefix(12).lowercased() == "create table" else {
                throw StoreError.damaged(
                    path: path, detail: "its table \(table) is not an ordinary table")
            }
            guard knownTables.withLock({ !$0.contains(sql) }) else { continue }
            // A column that is computed runs whatever its maker wrote, and may be of any size.
            let columns = try connection.prepare("pragma table_xinfo(\(table))")
            while try columns.step() {
                guard try columns.integer(at: 6) != 0 else { continue }
                throw StoreError.damaged(
                    path: path, detail: "its table \(table) has a generated column")
            }
            knownTables.withLock { if $0.count < 1000 { $0.insert(sql) } }
        }
    }

    /// The tables that were found to be plain: those of all stores of one version are the same.
    private static let knownTables = Mutex<Set<String>>([])
}
