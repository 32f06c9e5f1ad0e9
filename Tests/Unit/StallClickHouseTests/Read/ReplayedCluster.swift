import StallClickHouse
import StallHTTP
import StallModel

/// A cluster of two shards that answers with what was inserted: the columns that are asked for, of all rows. Conditions,
/// orders and limits are not looked at; tests with a server are `make truth-clickhouse`.
final class ReplayedCluster: HTTPSender {
    private struct Table {
        var columns: [String]
        var rows: [[[UInt8]]] = []
    }

    private var tables: [String: Table] = [:]
    /// The hash of the rules of its groups.
    private var rules = ""
    private(set) var questions: [String] = []
    /// What questions are answered whose text contains the key.
    var answers: [String: String] = [:]

    func send(_ request: HTTPRequest, isCancelled: () -> Bool) -> HTTPReply {
        let body = String(decoding: request.body ?? [], as: UTF8.self)
        guard let statement = insert(in: request.url) else { return ok(answer(body)) }
        let name = String(statement.prefix { $0 != " " })
        let columns = list(statement.drop { $0 != "(" }.dropFirst().prefix { $0 != ")" })
        var table = tables[name] ?? Table(columns: columns)
        for line in (request.body ?? []).split(separator: UInt8(ascii: "\n")) {
            let row = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
                .map(Array.init)
            // What every shard has is here once.
            if !table.rows.contains(row) { table.rows.append(row) }
        }
        tables[name] = table
        return ok([])
    }

    private func answer(_ question: String) -> [UInt8] {
        questions.append(question)
        if let answer = answers.first(where: { question.contains($0.key) }) {
            return Array(answer.value.utf8)
        }
        if question.contains("system.clusters") { return Array("1\tone\n2\ttwo\n".utf8) }
        if question.hasPrefix("select 'version'") {
            let version = ClickHouseMigration.newest
            return Array("version\t\(version)\t0\ngrouping\t\(rules)\t0\nshards\t0\t0\n".utf8)
        }
        if question.hasPrefix("insert into grouping"), let begin = question.firstRange(of: "(1, ") {
            rules = question[begin.upperBound...].prefix { $0 != "," }.filter { !"()".contains($0) }
        }
        // Not the one of a question within it.
        let from = question.ranges(of: "from ").first { range in
            let before = question[..<range.lowerBound]
            return before.count { $0 == "(" } == before.count { $0 == ")" }
        }
        guard question.hasPrefix("select "), let from else { return [] }
        let name = question[from.upperBound...].prefix { !$0.isWhitespace }.filter { $0 != "`" }
        guard let table = tables[name == "report" ? "report_local" : name] else { return [] }
        let start = question.hasPrefix("select distinct ") ? 16 : 7
        let asked = list(question[..<from.lowerBound].dropFirst(start))
        let places = asked.map { column in
            // `toInt64(day) as part` is the day.
            let inner = column.split(separator: "(").last?.split(separator: ")").first
            return table.columns.firstIndex { $0 == column || inner.map(String.init) == $0 }
        }
        let counted = asked.firstIndex(of: "count()")
        var counts: [[[UInt8]]: Int] = [:]
        var rows: [[[UInt8]]] = []
        // The latest row of the one day counts.
        for row in name == "rollup_day" ? table.rows.suffix(1) : table.rows {
            let row = places.map { $0.map { row[$0] } ?? [UInt8(ascii: "0")] }
            if counts.updateValue((counts[row] ?? 0) + 1, forKey: row) == nil || counted == nil {
                rows.append(row)
            }
        }
        if let counted {
            for index in rows.indices {
                rows[index][counted] = Array("\(counts[rows[index]]!)".utf8)
            }
        }
        return rows.flatMap { $0.joined(separator: [UInt8(ascii: "\t")]) + [UInt8(ascii: "\n")] }
    }

    /// The parts between commas that are in no parentheses.
    private func list(_ text: Substring) -> [String] {
        var (parts, depth) = ([""], 0)
        for character in text {
            depth += character == "(" ? 1 : character == ")" ? -1 : 0
            if character == ",", depth == 0 {
                parts.append("")
            } else {
                parts[parts.count - 1].append(character.isWhitespace ? " " : character)
            }
        }
        return parts.map { $0.split(separator: " ").joined(separator: " ") }
    }

    /// The statement behind `insert into`, decoded.
    private func insert(in url: String) -> Substring? {
        var decoded: [UInt8] = []
        var rest = Array(url.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2 {
                decoded.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)!)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(byte)
            }
        }
        let text = String(decoding: decoded, as: UTF8.self)
        guard let begin = text.firstRange(of: "query=insert into ") else { return nil }
        return text[begin.upperBound...]
    }

    private func ok(_ body: [UInt8]) -> HTTPReply {
        .answer(HTTPAnswer(status: 200, fields: ScriptedServer.clickHouse, body: body))
    }

    func server() throws -> ClickHouseServer {
        try ClickHouseServer(
            ClickHouseAddress("clickhouse://stall@one:8123/stalls?cluster=stalls"),
            password: "", sender: self, pause: { _ in })
    }
}
