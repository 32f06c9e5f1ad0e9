// A server of ClickHouse over HTTP: one statement per request. The server, its user and the time limit are given once,
// here.

package import StallHTTP

/// A server: queries and writes.
package struct ClickHouseServer {
    package let address: ClickHouseAddress
    /// How often a query is sent before it counts as unanswered. Statements that write are sent once: their caller
    /// knows what else has to be repeated.
    package static let attempts = 3
    /// Seconds before the second and the third attempt.
    package static let pauses = [0.2, 1.0]
    private let password: String
    private let sender: any HTTPSender
    private let pause: (Double) -> Void
    /// Also query where shards are missing: the answer is then a part of it, which the caller has to report.
    var skipsMissingShards = false
    private let ahead = AnswersAhead()
    private var traits = ServerTraits()
    /// The address for messages.
    package private(set) var name: String

    /// - Parameters:
    ///   - password: Empty for none.
    ///   - pause: Waits for a number of seconds.
    package init(
        _ address: ClickHouseAddress, password: String, sender: any HTTPSender = Curl(),
        pause: @escaping (Double) -> Void = ClickHouseServer.sleep(seconds:)
    ) {
        (self.address, self.password, self.sender) = (address, password, sender)
        self.pause = pause
        name = address.description
    }

    /// Another server of the same cluster: its servers answer HTTP at one port, and know the same user.
    package func at(host: String) -> ClickHouseServer {
        var address = address
        address.host = host
        return other(address)
    }

    /// The same server, asked for another database.
    package func on(database: String) -> ClickHouseServer {
        var address = address
        address.database = database
        var other = other(address)
        other.name = name
        return other
    }

    private func other(_ address: ClickHouseAddress) -> ClickHouseServer {
        var other = ClickHouseServer(address, password: password, sender: sender, pause: pause)
        other.skipsMissingShards = skipsMissingShards
        other.traits = traits
        return other
    }

    /// A table within a part of a statement that other shards run: these look names up in a database of their own choice.
    package func table(_ name: StaticString) -> ClickHouseQuery {
        "\(name: address.database).\(name: name.description)"
    }

    /// Sends a query and reads the whole answer.
    ///
    /// - Parameter columnCount: How many columns each row has.
    package func rows(
        _ question: ClickHouseQuery, columnCount: Int, settings: [(String, String)] = []
    ) throws(ClickHouseError) -> TabSeparatedRows {
        var attempt = 0
        while true {
            if let timeOut = traits.timeOut { throw timeOut }
            attempt += 1
            do throws(ClickHouseError) {
                let request = request(asking: question, settings)
                let kept = ahead.take(request)
                let answer = if let kept { kept } else { try read(send(request)) }
                return TabSeparatedRows(answer, columnCount: columnCount, of: name)
            } catch  where error.code == ClickHouseCode.readOnly && !traits.refusesSettings {
                // A question does without them.
                traits.refusesSettings = true
            } catch {
                guard attempt < Self.attempts, error.passes else { throw error }
                pause(Self.pauses[attempt - 1])
            }
        }
    }

    /// Sends queries at once, and keeps their answers until `rows` needs the same, each for once. A query that fails is
    /// left to `rows`, and sent again there; one whose answer is kept already is not sent.
    ///
    /// - Parameter keepingOthers: Otherwise answers that were kept before, and not asked for, are dropped.
    package func ask(ahead questions: [ClickHouseQuery], keepingOthers: Bool = false) {
        let wanted = questions.map { request(asking: $0, []) }
        if !keepingOthers { ahead.retain(wanted) }
        let requests = wanted.filter { !ahead.contains($0) }
        for start in stride(from: 0, to: requests.count, by: Self.togetherLimit) {
            let part = Array(requests[start...].prefix(Self.togetherLimit))
            let replies = sender.send(together: part, isCancelled: { false })
            for (request, reply) in zip(part, replies) {
                if let answer = try? read(reply) { ahead.keep(answer, to: request) }
            }
        }
    }

    /// How many queries are sent to a server at once.
    private static let togetherLimit = 20

    /// Runs a statement that answers nothing, once.
    package func execute(
        _ statement: ClickHouseQuery, settings: [(String, String)] = []
    ) throws(ClickHouseError) {
        try expectNothing(send(statement.sql, body: nil, settings))
    }

    /// Inserts rows, once. When it fails, none, some or all of them may be there.
    ///
    /// - Parameters:
    ///   - table: `report (id, start_us)`: the table and its columns.
    ///   - rows: As `TabSeparatedWriter` has them.
    package func insert(
        into table: ClickHouseQuery, _ rows: [UInt8], settings: [(String, String)] = []
    ) throws(ClickHouseError) {
        try expectNothing(
            send("insert into \(table.sql) format TabSeparated", body: rows, settings))
    }

    /// Statements that write answer with their status alone; a longer answer is an error, or not from ClickHouse.
    private func expectNothing(_ answer: [UInt8]) throws(ClickHouseError) {
        guard answer.contains(where: { $0 != UInt8(ascii: "\n") }) else { return }
        let text = String(decoding: answer.prefix(2000), as: UTF8.self)
        throw ServerException(text, store: name)?.error
            ?? .badAnswer(store: name, detail: "expected none, found \(ServerException.line(text))")
    }

    /// Sends writes to servers of the same cluster.
    func send(together writes: [ClickHouseWrite]) throws(ClickHouseError) {
        let requests = writes.map { $0.server.request($0.statement, body: $0.rows, []) }
        let replies = sender.send(together: requests, isCancelled: { false })
        for (write, reply) in zip(writes, replies) { _ = try write.server.read(reply) }
    }

    // MARK: Requests

    private func request(
        asking question: ClickHouseQuery, _ settings: [(String, String)]
    ) -> HTTPRequest {
        // The status says whether all of it went well only if the server waits for the end before it answers. Roll-ups
        // are read again and again: they are worth their room in the cache of decompressed blocks.
        request(
            question.sql + "\nformat TabSeparated", body: nil,
            settings + [
                ("wait_end_of_query", "1"), ("buffer_size", "16777216"),
                ("use_uncompressed_cache", "1"),
            ])
    }

    private func send(
        _ statement: String, body: [UInt8]?, _ settings: [(String, String)]
    ) throws(ClickHouseError) -> [UInt8] {
        try read(send(request(statement, body: body, settings)))
    }

    /// - Parameter body: Rows; the statement is the body where there are none.
    private func request(
        _ statement: String, body: [UInt8]?, _ settings: [(String, String)]
    ) -> HTTPRequest {
        // These two are of HTTP. All others are settings.
        var parameters = [("database", address.database)]
        if body != nil { parameters.append(("query", statement)) }
        var settings = settings
        settings.append(("max_query_size", "67108864"))
        if skipsMissingShards { settings.append(("skip_unavailable_shards", "1")) }
        parameters += settings.filter {
            !traits.refusesSettings || ["wait_end_of_query", "buffer_size"].contains($0.0)
        }
        let query = parameters.map { "\($0)=\(ClickHouseAddress.encoded($1))" }
        var request = HTTPRequest(
            method: "POST", url: address.url + "?" + query.joined(separator: "&"),
            body: body ?? Array(statement.utf8), authorityFile: address.authorityFile)
        request.user = (address.user, password)
        request.fields = [
            ("Content-Type", "text/plain; charset=utf-8"),
            // Each of the queries that are sent at once has its own connection, which the server need not keep while
            // others wait.
            ("Connection", "close"),
        ]
        request.limits.connect_s = 5
        request.limits.answer_s = address.timeout_s
        request.limits.answerBytes = 1 << 30
        return request
    }

    private func send(_ request: HTTPRequest) -> HTTPReply {
        sender.send(request, isCancelled: { false })
    }

    private func read(_ reply: HTTPReply) throws(ClickHouseError) -> [UInt8] {
        switch reply {
        case .failed(let reason): throw .unreachable(store: name, reason: reason)
        case .timedOut(let reason):
            let error = ClickHouseError.timedOut(
                store: name, seconds: address.timeout_s, reason: reason)
            traits.timeOut = error
            throw error
        case .refused(let reason):
            throw .refused(store: name, reason: reason + hint(onRefusal: reason))
        case .answer(let answer):
            let text = String(decoding: answer.body.prefix(2000), as: UTF8.self)
            guard answer.status == 200 else {
                if let exception = ServerException(text, store: name) { throw exception.error }
                let detail = Self.detail("HTTP status \(answer.status)", text)
                // A proxy answers so while it has no server.
                throw [429, 502, 503, 504].contains(answer.status)
                    ? .unreachable(store: name, reason: detail)
                    : .badAnswer(store: name, detail: detail)
            }
            guard answer.fields.keys.contains(where: { $0.hasPrefix("x-clickhouse-") }) else {
                throw .badAnswer(
                    store: name, detail: Self.detail("no ClickHouse answers there", text))
            }
            guard answer.endIsKnown else {
                throw .unreachable(store: name, reason: "the answer does not say where it ends")
            }
            return answer.body
        }
    }

    private static func detail(_ fact: String, _ text: String) -> String {
        let line = ServerException.line(text)
        return line.isEmpty ? fact : "\(fact): \(line)"
    }

    private func hint(onRefusal reason: String) -> String {
        guard address.authorityFile == nil, reason.contains("(60)") else { return "" }
        return "; ca-file= names the authority to trust"
    }
}

extension ClickHouseError {
    /// Whether another attempt may succeed.
    package var passes: Bool {
        switch self {
        case .unreachable: true
        case .server(_, let code, _): ClickHouseCode.passing.contains(code)
        default: false
        }
    }
}
