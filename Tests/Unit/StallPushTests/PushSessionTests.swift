import StallHTTP
import StallModel
import StallPush
import StallQuery
import Testing

/// Goal: whatever a collector answers, every row arrives once or is counted as refused, and nothing loops.
/// Method: a collector, a store and a clock that the test owns. Nothing is sent, and nothing sleeps.
@Suite struct PushSessionTests {
    /// Rows of the revisions 1 to so many, one each.
    struct Spool: PushSpool {
        let store = UniqueID(bytes: [UInt8](repeating: 7, count: 16))!
        var count: Int64
        var through: Int64 = 0
        var pending: Int64?
        var ids: [Int64: UniqueID] = [:]

        init(_ count: Int64) { self.count = count }

        mutating func rewind(to through: Int64) { (self.through, pending) = (through, nil) }

        mutating func next(lines: Int, bytes: Int) -> OutgoingBatch? {
            guard through < count else { return nil }
            let end = min(count, through + Int64(lines))
            pending = end
            return OutgoingBatch(
                from: through + 1, through: end,
                lines: (through + 1...end).map { Array("row \($0)\n".utf8) })
        }

        mutating func accept() {
            through = pending ?? through
            pending = nil
        }

        func reportID(seq: Int64) -> UniqueID? { ids[seq] }
        func isOlder(than revision: Int64) -> Bool { isAgents && revision > count }
        var isAgents = false
    }

    /// A collector that keeps rows, and answers what the script says before it does as it should.
    struct Line: PushLine {
        var through: Int64 = 0
        var rows: Set<String> = []
        var script: [HTTPReply] = []
        /// Answers in place of the collector, by the number of the request.
        var positions: [HTTPReply] = []
        var waits: [Double] = []
        var reasons: [String] = []
        var requests = 0
        var patience = 20
        var isCancelled = false
        /// The most rows that it takes.
        var limit = Int.max
        /// Rows that it does not take.
        var bad: Set<String> = []
        var last = ""
        /// Stores the batch before the script's answer, which is then lost or wrong.
        var storesFirst = false

        mutating func position(of store: UniqueID) -> HTTPReply {
            positions.isEmpty
                ? json(200, "{\"through\":\(through)\(last)}") : positions.removeFirst()
        }

        mutating func send(_ batch: OutgoingBatch, of store: UniqueID) -> HTTPReply {
            requests += 1
            guard requests < 1000 else { return .refused(reason: "loops") }
            let answer = storesFirst || script.isEmpty ? take(batch) : nil
            return script.isEmpty ? answer! : script.removeFirst()
        }

        private mutating func take(_ batch: OutgoingBatch) -> HTTPReply {
            guard batch.from <= through + 1 else { return json(409, "{\"through\":\(through)}") }
            guard batch.lines.count <= limit else { return json(413, "") }
            let texts = batch.lines.map { String(decoding: $0.dropLast(), as: UTF8.self) }
            let faults = texts.indices.filter { bad.contains(texts[$0]) }
            if let first = faults.first {
                let all = faults.map { "{\"line\":\($0 + 1),\"error\":\"bad\"}" }
                return json(
                    422,
                    "{\"line\":\(first + 1),\"error\":\"bad\",\"lines\":[\(all.joined(separator: ","))]}"
                )
            }
            let before = rows.count
            rows.formUnion(texts)
            through = max(through, batch.through)
            return json(
                200, "{\"through\":\(through),\"added\":\(rows.count - before),\"changed\":0}")
        }

        mutating func wait(seconds: Double, reason: String) -> Bool {
            waits.append(seconds)
            reasons.append(reason)
            patience -= 1
            return patience > 0
        }
    }

    static func json(_ status: Int, _ text: String) -> HTTPReply {
        .answer(HTTPAnswer(status: status, body: Array(text.utf8)))
    }

    private func push(
        _ count: Int64, over line: inout Line, at through: Int64 = 0
    ) throws -> PushResult {
        var spool = Spool(count)
        var session = PushSession()
        return try session.push(&spool, over: &line)
    }

    @Test func `what is new is sent in batches, and then nothing`() throws {
        var line = Line()
        var result = try push(2500, over: &line)
        #expect(result.batchCount == 3 && result.lineCount == 2500 && result.added == 2500)
        #expect(result.through == 2500 && result.failure == nil && line.rows.count == 2500)
        result = try push(2500, over: &line)
        #expect(result.batchCount == 0 && line.requests == 3)
        result = try push(2501, over: &line)
        #expect(result.lineCount == 1 && line.rows.count == 2501)
    }

    @Test(arguments: [(asked: 30, waits: 30.0), (600, 600), (86_400, 600), (99_999_999, 600)])
    func `a collector may ask for ten minutes at most`(asked: Int, waits: Double) throws {
        var line = Line()
        line.script = [
            .answer(HTTPAnswer(status: 503, fields: ["retry-after": "\(asked)"], body: []))
        ]
        let result = try push(1, over: &line)
        #expect(line.waits == [waits] && result.lineCount == 1, "\(line.waits)")
        // And it is said, since the sender's operator sees a collector that asks for more.
        let bound = " and asks for 86400 s, of which at most 600 s are waited"
        #expect(line.reasons == ["answered 503" + (asked > 600 ? bound : "")])
    }

    /// An answer that did not come, that is none of ours, or that asks for patience.
    @Test(
        arguments: [
            .failed(reason: "connection reset"), json(503, ""), json(500, "<html>"), json(429, ""),
            json(200, ""), json(200, "hello"), json(200, "{\"through\":3}"), json(200, "{}"),
            json(200, "{\"through\":1e300}"), json(408, ""), json(599, ""),
        ] as [HTTPReply], [false, true])
    func `a batch whose answer makes no sense is sent again`(
        answer: HTTPReply, storesFirst: Bool
    ) throws {
        var line = Line()
        line.script = [answer, answer, answer]
        line.storesFirst = storesFirst
        let result = try push(1500, over: &line)
        #expect(result.failure == nil && line.rows.count == 1500 && result.lineCount == 1500)
        #expect(line.waits.count == 3)
    }

    @Test(arguments: [
        (400, "answered 400: no"), (401, "refused the token (401): no"), (404, "answered 404: no"),
        (403, "refused the token (403): no"), (415, "answered 415: no"), (204, "answered 204: no"),
        (418, "answered 418: no"), (600, "answered 600: no"),
        (301, "redirects, which is not followed: give that address itself"),
        (422, "answered 422 without a line of the batch: no"),
        (409, "answered 409 without a position"),
    ])
    func `what will not change is not asked again`(status: Int, reason: String) throws {
        var line = Line()
        line.script = [Self.json(status, "{\"error\":\"no\"}")]
        let result = try push(10, over: &line)
        #expect(result.failure == reason)
        #expect(line.requests == 1 && line.waits.isEmpty && result.through == 0)
    }

    @Test func `a batch that is too large is halved`() throws {
        var line = Line()
        line.limit = 70
        let result = try push(1000, over: &line)
        #expect(line.rows.count == 1000 && result.refusedCount == 0)
        // 1000, 500, 250, 125, then 62 at a time.
        #expect(line.requests == 4 + 17)
    }

    @Test func `a line that is too large alone is left out, and counted`() throws {
        var line = Line()
        line.limit = 0
        let result = try push(3, over: &line)
        #expect(result.refusedCount == 3 && result.lineCount == 0 && result.failure == nil)
        #expect(line.through == 3 && line.rows.isEmpty)
        #expect(result.refused.first?.reason == "is too large for the collector (6 bytes)")
    }

    @Test func `refused lines are left out, and counted`() throws {
        var line = Line()
        line.bad = ["row 1", "row 17", "row 1000", "row 1500"]
        let result = try push(2000, over: &line)
        #expect(result.refusedCount == 4 && result.lineCount == 1996)
        #expect(line.rows.count == 1996 && line.requests == 4)
        // One after the other, as another collector names them.
        var other = Line()
        other.script = (1...3).map { Self.json(422, "{\"line\":\($0),\"error\":\"bad\"}") }
        let second = try push(10, over: &other)
        #expect(second.refusedCount == 3 && second.lineCount == 7)
        // A line that is none of the batch.
        for line in ["0", "-1", "11", "9223372036854775807", "null", "\"x\""] {
            var nonsense = Line()
            nonsense.script = [Self.json(422, "{\"line\":\(line),\"error\":\"bad\"}")]
            let result = try push(10, over: &nonsense)
            #expect(result.failure == "answered 422 without a line of the batch: bad")
        }
    }

    /// Goal: no count in an answer is trusted. Method: one that refuses a line however few there are, and one that names
    /// one line as often as its answer is long.
    @Test(arguments: [1, 900])
    func `a collector that refuses whatever is left ends the push`(names: Int) throws {
        var line = Line()
        let fault = "{\"line\":1,\"error\":\"no\"}"
        let faults = Array(repeating: fault, count: names).joined(separator: ",")
        let refusal = Self.json(422, "{\"line\":1,\"error\":\"no\",\"lines\":[\(faults)]}")
        line.script = Array(repeating: refusal, count: 100)
        let result = try push(15, over: &line)
        #expect(result.failure == "answered 422 without a line of the batch: no")
        #expect(line.requests == 16 && result.refusedCount == 0 && result.lineCount == 0)
        line = Line()
        line.script = Array(repeating: refusal, count: 3)
        let other = try push(15, over: &line)
        #expect(other.failure == nil && other.refusedCount == 3 && other.lineCount == 12)
        #expect(other.refused.count == 3)
        #expect(
            PushStep(refusal, through: 1, lineCount: -1)
                == PushStep(refusal, through: 1, lineCount: 0))
    }

    @Test func `after a gap it goes on from where the collector is`() throws {
        var line = Line()
        // It was restored from a backup.
        line.positions = [Self.json(200, "{\"through\":50}")]
        line.through = 20
        let result = try push(100, over: &line)
        #expect(line.rows.count == 80 && line.through == 100 && result.failure == nil)
        // One that always says gap.
        var stuck = Line()
        stuck.script = (0..<10).map { _ in Self.json(409, "{\"through\":0}") }
        #expect(try push(100, over: &stuck).failure != nil)
        #expect(stuck.requests == 1)
        var moving = Line()
        moving.positions = [Self.json(200, "{\"through\":90}")]
        moving.script = (0..<10).map { Self.json(409, "{\"through\":\(80 - $0)}") }
        #expect(try push(100, over: &moving).failure != nil)
        #expect(moving.requests == 4)
    }

    @Test func `a collector that is ahead is left alone`() throws {
        var line = Line()
        line.through = 5000
        let result = try push(100, over: &line)
        #expect(result.lineCount == 0 && line.requests == 0 && result.failure == nil)
        // An agent's own store cannot be behind, unless it is a backup that was restored.
        var spool = Spool(100)
        spool.isAgents = true
        var session = PushSession()
        let old = try session.push(&spool, over: &line)
        #expect(old.failure?.contains("restored from a backup") == true && line.requests == 0)
    }

    @Test(arguments: ["9223372036854775807", "-1", "1e400", "null", "\"7\"", "1152921504606846977"])
    func `a position that no store has is none`(number: String) throws {
        var line = Line()
        line.positions = [Self.json(200, "{\"through\":\(number)}")]
        #expect(try push(10, over: &line).lineCount == 10)
        #expect(line.waits.count == 1)
        line = Line()
        line.script = [Self.json(409, "{\"through\":\(number)}")]
        #expect(try push(10, over: &line).failure == "answered 409 without a position")
        line = Line()
        line.script = [
            Self.json(200, "{\"through\":10,\"added\":9223372036854775807,\"changed\":-1}")
        ]
        let result = try push(10, over: &line)
        #expect(result.added == 10 && result.changed == 0)
    }

    @Test func `a copy that went its own way is not sent in place of the other`() throws {
        var spool = Spool(100)
        spool.ids = [50: UniqueID(bytes: [UInt8](repeating: 1, count: 16))!]
        var line = Line()
        line.through = 60
        line.last =
            ",\"last\":{\"seq\":50,\"id\":\"\(UniqueID(bytes: [UInt8](repeating: 2, count: 16))!)\"}"
        var session = PushSession()
        let other = try session.push(&spool, over: &line)
        #expect(other.failure?.contains("is a copy") == true && line.requests == 0)
        line.last =
            ",\"last\":{\"seq\":50,\"id\":\"\(UniqueID(bytes: [UInt8](repeating: 1, count: 16))!)\"}"
        #expect(try session.push(&spool, over: &line).lineCount == 40)
        // Evicted at the sender.
        line.last =
            ",\"last\":{\"seq\":51,\"id\":\"\(UniqueID(bytes: [UInt8](repeating: 2, count: 16))!)\"}"
        spool.count = 101
        #expect(try session.push(&spool, over: &line).lineCount == 1)
    }

    @Test func `it gives up when there is no more time, and says why`() throws {
        var line = Line()
        line.patience = 5
        line.positions = (0..<9).map { _ in .failed(reason: "connection refused") }
        var result = try push(10, over: &line)
        #expect(result.failure == "connection refused" && line.waits.count == 5)
        line = Line()
        line.isCancelled = true
        result = try push(10, over: &line)
        #expect(result.isCancelled && result.failure == nil && line.requests == 0)
        line = Line()
        line.positions = [.refused(reason: "the certificate is not trusted")]
        #expect(try push(10, over: &line).failure == "the certificate is not trusted")
        #expect(line.waits.isEmpty)
    }

    @Test func `waits have full jitter from one second to ten minutes`() {
        var backoff = Backoff()
        var random = SystemRandomNumberGenerator()
        for attempt in 0..<100 {
            let wait = backoff.next(asked: nil, using: &random)
            #expect((0.1...min(600, Double(1 << min(attempt, 20)))).contains(wait))
        }
        #expect(backoff.next(asked: 3600, using: &random) == 600)
        backoff.reset()
        #expect(backoff.next(asked: nil, using: &random) <= 1)
        struct Largest: RandomNumberGenerator {
            mutating func next() -> UInt64 { .max }
        }
        var largest = Largest()
        var waits: [Double] = []
        for _ in 0..<12 { waits.append(backoff.next(asked: nil, using: &largest)) }
        #expect(waits.last! > 599 && waits.last! <= 600 && waits == waits.sorted())
    }

    @Test func `the head that counts is the last one`() throws {
        let heads = """
            HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
            HTTP/2 503 \r\nRetry-After:  17\r\nLocation: a\r\nlocation: b\r\n\r\n
            """
        let answer = try #require(HTTPAnswer(heads: Array(heads.utf8), body: []))
        #expect(answer.status == 503 && answer.retryAfter == 17 && answer.fields["location"] == "b")
        #expect(HTTPAnswer(heads: Array("SSH-2.0-x\r\n".utf8), body: []) == nil)
        #expect(HTTPAnswer(heads: Array("HTTP/1.1 99999999999999999999\r\n".utf8), body: []) == nil)
        for (text, seconds) in [
            ("-5", 0), ("1e9", nil), ("99999999", 86_400), ("", nil), ("3 ", 3), ("\t3\t", 3),
            ("3 4", nil),
            ("99999999999999999999", 86_400), (String(repeating: "9", count: 5000), 86_400),
            ("-99999999999999999999", 0), ("Wed, 21 Oct 2026 07:28:00 GMT", nil), ("+", nil),
            ("-", nil),
        ]
            as [(String, Int?)]
        {
            #expect(HTTPAnswer(status: 429, fields: ["retry-after": text]).retryAfter == seconds)
        }
    }
}
