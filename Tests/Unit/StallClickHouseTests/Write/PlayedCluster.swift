import StallClickHouse
import StallHTTP
import StallModel
import Testing

/// A cluster of two shards that notes what it is told. It knows no SQL: tests with a server are `make truth-clickhouse`.
final class PlayedCluster: HTTPSender {
    struct Insert {
        var host: String
        var table: String
        var rows: [String]
    }

    private(set) var inserts: [Insert] = []
    private(set) var statements: [(host: String, sql: String)] = []
    /// What questions are answered whose text contains the key.
    var answers: [String: [UInt8]] = [:]
    /// The codes of the errors that statements end with whose text contains the key.
    var errors: [String: Int] = [:]
    /// What one shard answers otherwise.
    var answersOfHost: [String: [String: [UInt8]]] = [:]
    /// The inserts that fail, by their number.
    var failures: Set<Int> = []
    private var insertCount = 0
    /// How often it was spoken to, several requests at once or one.
    private(set) var turnCount = 0

    func send(together requests: [HTTPRequest], isCancelled: () -> Bool) -> [HTTPReply] {
        turnCount += 1
        return requests.map { answer($0) }
    }

    func send(_ request: HTTPRequest, isCancelled: () -> Bool) -> HTTPReply {
        turnCount += 1
        return answer(request)
    }

    private func answer(_ request: HTTPRequest) -> HTTPReply {
        let host = request.url.split(separator: "/")[1].split(separator: ":")[0]
        let body = String(decoding: request.body ?? [], as: UTF8.self)
        guard let table = table(in: request.url) else {
            statements.append((String(host), body))
            if body.contains("system.clusters") { return ok(Array("1\tone\n2\ttwo\n".utf8)) }
            if let code = errors.first(where: { body.contains($0.key) })?.value {
                return ScriptedServer.error(code, "played")
            }
            let own = answersOfHost[String(host)]?.first { body.contains($0.key) }
            return ok((own ?? answers.first { body.contains($0.key) })?.value ?? [])
        }
        insertCount += 1
        guard !failures.contains(insertCount) else {
            let text = "Code: 210, e.displayText() = DB::NetException: Connection refused"
            return .answer(HTTPAnswer(status: 500, body: Array(text.utf8)))
        }
        inserts.append(
            Insert(
                host: String(host), table: table,
                rows: body.split(separator: "\n").map(String.init)))
        return ok([])
    }

    private func table(in url: String) -> String? {
        let begin = "query=insert%20into%20"
        guard let place = url.firstRange(of: begin) else { return nil }
        // Without the quotes around it.
        return String(url[place.upperBound...].replacing("%60", with: "").prefix { $0 != "%" })
    }

    private func ok(_ body: [UInt8]) -> HTTPReply {
        .answer(HTTPAnswer(status: 200, fields: ScriptedServer.clickHouse, body: body))
    }

    func cluster() throws -> ClickHouseCluster {
        try ClickHouseCluster(
            ClickHouseServer(
                ClickHouseAddress("clickhouse://stall@one:8123/stalls?cluster=stalls"),
                password: "", sender: self, pause: { _ in }))
    }

    func rows(of table: String, on host: String? = nil) -> [String] {
        inserts.filter { $0.table == table && (host == nil || $0.host == host) }.flatMap(\.rows)
    }
}
