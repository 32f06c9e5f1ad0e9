// A server of ClickHouse over HTTP: one statement a request. Which server it is, who asks and how long it may take are said
// once, here.

package import StallHTTP

/// A server that is asked and told.
package struct ClickHouseServer {
    package let address: ClickHouseAddress
    /// How often a question is asked before it counts as unanswered. Statements that write are sent once: their caller
    /// knows what else has to be repeated.
    package static let attempts = 3
    /// Seconds before the second and the third attempt.
    package static let pauses = [0.2, 1.0]
    private let password: String
    private let sender: any HTTPSender
    private let pause: (Double) -> Void
    /// Also ask where shards are missing: the answer is then a part of it, which the caller has to say.
    package var skipsMissingShards = false
    private let ahead = AnswersAhead()

    /// - Parameters:
    ///   - password: Empty for none.
    ///   - pause: Waits so many seconds.
    package init(
        _ address: ClickHouseAddress, password: String, sender: any HTTPSender = Curl(),
        pause: @escaping (Double) -> Void = ClickHouseServer.sleep(seconds:)
    ) {
        (self.address, self.password, self.sender) = (address, password, sender)
        self.pause = pause
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
        return other(address)
    }

    private func other(_ address: ClickHouseAddress) -> ClickHouseServer {
        var other = ClickHouseServer(address, password: password, sender: sender, pause: pause)
        other.skipsMissingShards = skipsMissingShards
        return other
    }

    /// A table within a part of a statement that other shards run: these look names up in a database of their own choice.
    package func table(_ name: StaticString) -> ClickHouseQuery {
        "\(name: address.database).\(name: name.description)"
    }

    /// The address for messages.
    package var name: String { address.description }

    /// Asks a question and reads the whole answer.
    ///
    /// - Parameter columnCount: How many columns each row has.
    package func rows(
        _ question: ClickHouseQuery, columnCount: Int, settings: [(String, String)] = []
    ) throws(ClickHouseError) -> TabSeparatedRows {
        var attempt = 0
        while true {
            attempt += 1
            do throws(ClickHouseError) {
                let request = request(asking: question, settings)
                let kept = ahead.take(request)
                let answer = if let kept { kept } else { try read(send(request)) }
                return TabSeparatedRows(answer, columnCount: columnCount, of: name)
            } catch {
                guard attempt < Self.attempts, error.passes else { throw error }
                pause(Self.pauses[attempt - 1])
            }
        }
    }

    /// Asks questions at once, and keeps their answers until `rows` asks the same, each for once. What fails is left to
    /// `rows`, and asked again there; what is kept already is not asked.
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

    /// How many questions a server is asked at once.
    private static let togetherLimit = 12

    /// Runs a statement that answers nothing, once.
    package func execute(
        _ statement: ClickHouseQuery, settings: [(String, String)] = []
    ) throws(ClickHouseError) {
        _ = try send(statement.sql, body: nil, settings)
    }

    /// Inserts rows, once. When it fails, none, some or all of them may be there.
    ///
    /// - Parameters:
    ///   - table: `report (id, start_us)`: the table and its columns.
    ///   - rows: As `TabSeparatedWriter` has them.
    package func insert(
        into table: ClickHouseQuery, _ rows: [UInt8], settings: [(String, String)] = []
    ) throws(ClickHouseError) {
        _ = try send("insert into \(table.sql) format TabSeparated", body: rows, settings)
    }

    /// Sends what servers of the same cluster are told.
    func send(together writes: [ClickHouseWrite]) throws(ClickHouseError) {
        let requests = writes.map { $0.server.request($0.statement, body: $0.rows, []) }
        let replies = sender.send(together: requests, isCancelled: { false })
        for (write, reply) in zip(writes, replies) { _ = try write.server.read(reply) }
    }

    // MARK: Requests

    private func request(
        asking question: ClickHouseQuery, _ settings: [(String, String)]
    ) -> HTTPRequest {
        // The status tells whether all of it went well only if the server waits for the end before it answers. Roll-ups
        // are read again and again: they are worth their room in a cache of what was decompressed.
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
        var parameters =
            [("database", address.database), ("max_query_size", "67108864")] + settings
        if body != nil { parameters.append(("query", statement)) }
        if skipsMissingShards { parameters.append(("skip_unavailable_shards", "1")) }
        let query = parameters.map { "\($0)=\(ClickHouseAddress.encoded($1))" }
        var request = HTTPRequest(
            method: "POST", url: address.url + "?" + query.joined(separator: "&"),
            body: body ?? Array(statement.utf8), authorityFile: address.authorityFile)
        request.user = (address.user, password)
        request.fields = [("Content-Type", "text/plain; charset=utf-8")]
        request.limits.connect_s = 5
        request.limits.answer_s = 600
        request.limits.answerBytes = 1 << 30
        return request
    }

    private func send(_ request: HTTPRequest) -> HTTPReply {
        sender.send(request, isCancelled: { false })
    }

    private func read(_ reply: HTTPReply) throws(ClickHouseError) -> [UInt8] {
        switch reply {
        case .failed(let reason): throw .unreachable(store: name, reason: reason)
        case .refused(let reason): throw .refused(store: name, reason: reason)
        case .answer(let answer) where answer.status == 200: return answer.body
        case .answer(let answer):
            let text = String(decoding: answer.body.prefix(2000), as: UTF8.self)
            guard let code = Self.code(text) else {
                throw .badAnswer(
                    store: name, detail: "HTTP status \(answer.status): \(Self.line(text))")
            }
            throw .server(store: name, code: code, text: Self.reason(text))
        }
    }

    /// The number in `Code: 60, e.displayText() = DB::Exception: ...`, and in `Code: 60. DB::Exception: ...`.
    private static func code(_ text: String) -> Int? {
        guard text.hasPrefix("Code: ") else { return nil }
        return Int(text.dropFirst(6).prefix { $0.isASCII && $0.isNumber })
    }

    private static func reason(_ text: String) -> String {
        let mark = "DB::Exception: "
        var rest = text[...]
        // What a shard said is within what was made of it.
        while let begin = Self.end(of: mark, in: rest) { rest = rest[begin...] }
        // What only programmers of the server want to know.
        if let name = begin(of: ", e.what() =", in: rest) { rest = rest[..<name] }
        return line(String(rest))
    }

    private static func begin(of mark: String, in text: Substring) -> Substring.Index? {
        var rest = text
        while !rest.isEmpty {
            if rest.hasPrefix(mark) { return rest.startIndex }
            rest = rest.dropFirst()
        }
        return nil
    }

    private static func end(of mark: String, in text: Substring) -> Substring.Index? {
        begin(of: mark, in: text).map { text.index($0, offsetBy: mark.count) }
    }

    private static func line(_ text: String) -> String {
        String(text.prefix { !$0.isNewline }.prefix(300))
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
