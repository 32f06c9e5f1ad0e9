// What came of it, and how a store is judged.

import CSQLite
import Glibc
import StallModel
import StallArchive
import StallIngest
import StallQuery

/// The counts of the last line.
struct Tally: CustomStringConvertible {
    var rounds = 0
    var lost = 0
    var duplicate = 0
    var broken = 0

    var isClean: Bool { lost == 0 && duplicate == 0 && broken == 0 }
    var description: String {
        "faults rounds=\(rounds) lost=\(lost) duplicate=\(duplicate) broken=\(broken)"
    }

    /// Judges a store by what was acknowledged: ids, and whether their reports had ended.
    mutating func judge(_ path: String, acknowledged: [String: Bool]) {
        do {
            let reports = try ReportStore.open(path: path).reports(ReportFilter())
            let states = Dictionary(reports.map { ($0.id.description, $0.state) }) { first, _ in
                first
            }
            for (id, hasEnded) in acknowledged
            where states[id] == nil || hasEnded && states[id] != .ended {
                lost += 1
                say("lost in \(path): \(id), which is \(states[id].map { "\($0)" } ?? "nowhere")")
            }
            if reports.count != states.count {
                duplicate += reports.count - states.count
                say("duplicate in \(path): \(reports.count - states.count)")
            }
            if reports.contains(where: { $0.samples.contains { $0.locations.isEmpty } }) {
                complain("a report without its stack", path)
            }
            for verdict in try check(path) where verdict != "ok" { complain(verdict, path) }
            // Hashes, and whether the roll-ups say what the reports say.
            for fault in try checkStore(path: path) { complain(fault.description, path) }
        } catch {
            complain("\(error)", path)
        }
    }

    mutating func complain(_ what: String, _ path: String) {
        broken += 1
        say("broken: \(path): \(what)")
    }

    /// What SQLite itself says.
    private func check(_ path: String) throws -> [String] {
        var connection: OpaquePointer?
        defer { sqlite3_close(connection) }
        guard sqlite3_open(path, &connection) == SQLITE_OK else { return ["cannot be opened"] }
        return ["pragma integrity_check", "pragma foreign_key_check"].flatMap { sql in
            var statement: OpaquePointer?
            defer { sqlite3_finalize(statement) }
            guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else {
                return [String(cString: sqlite3_errmsg(connection))]
            }
            var lines: [String] = []
            while sqlite3_step(statement) == SQLITE_ROW {
                lines.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
            }
            return lines
        }
    }
}
