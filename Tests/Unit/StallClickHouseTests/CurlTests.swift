import StallClickHouse
import StallHTTP
import Testing

private let hasCurl =
    Curl().send(HTTPRequest(method: "GET", url: "http://127.0.0.1:1/"))
    != .refused(reason: "curl is not installed: stallctl speaks HTTP through it")

/// Goal: requests that are sent at once get the answers that they would get one by one, and one that fails takes none of the
/// others' numbers with it.
/// Method: the real `curl` against a server of the test, on loopback.
@Suite(.enabled(if: hasCurl, "curl is not installed")) struct CurlTests {
    private func requests(_ bodies: [String], _ server: LocalServer) -> [HTTPRequest] {
        bodies.map {
            var request = HTTPRequest(
                method: "POST", url: "http://127.0.0.1:\(server.port)/", body: Array($0.utf8))
            request.limits.answerBytes = 1 << 20
            return request
        }
    }

    private func body(_ reply: HTTPReply) -> String? {
        guard case .answer(let answer) = reply else { return nil }
        return String(decoding: answer.body, as: UTF8.self)
    }

    @Test(arguments: [1, 2, 12])
    func `each request gets its own answer`(count: Int) throws {
        let server = try LocalServer {
            LocalServer.whole($0 + String(repeating: "x", count: 300_000))
        }
        defer { server.end() }
        let replies = Curl().send(together: requests((0..<count).map { "\($0):" }, server))
        #expect(replies.map { body($0)?.prefix { $0 != ":" } } == (0..<count).map { "\($0)" })
        #expect(replies.allSatisfy { body($0)?.utf8.count ?? 0 > 300_000 })
    }

    @Test func `an answer that is cut fails`() throws {
        let server = try LocalServer { body in
            let whole = LocalServer.whole("1\n2\n3\n")
            return body == "cut" ? String(whole.dropLast(2)) : whole
        }
        defer { server.end() }
        let replies = Curl().send(together: requests(["a", "cut", "b"], server))
        for reply in replies {
            guard case .failed(let reason) = reply else {
                Issue.record("an answer beside one that was cut: \(reply)")
                continue
            }
            #expect(reason.hasPrefix("curl: ("))
        }
    }

    @Test func `an answer that is too long is refused, with its length said before or not`() throws
    {
        let server = try LocalServer { body in
            let long = String(repeating: "x", count: 2 << 20)
            return body == "said"
                ? LocalServer.whole(long)
                : "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n\(long)\r\n0\r\n\r\n"
        }
        defer { server.end() }
        for kind in ["said", "unsaid"] {
            #expect(
                Curl().send(together: requests(["\(kind)"], server))
                    == [.refused(reason: "the answer is longer than 1048576 bytes")])
        }
    }

    @Test func `questions that fail among others are asked again, and their answers are right`()
        throws
    {
        let server = try LocalServer { body in
            // The first of these is cut each time, wherever it is asked.
            let number = body.split(separator: " ")[1]
            return body.hasPrefix("select 3")
                ? "HTTP/1.1 200 OK\r\n" : LocalServer.whole("\(number)\n")
        }
        defer { server.end() }
        let clickHouse = ClickHouseServer(
            try ClickHouseAddress("clickhouse://127.0.0.1:\(server.port)/x"), password: "",
            pause: { _ in })
        clickHouse.ask(ahead: ["select 1 a", "select 2 a", "select 3 a"])
        for (question, number) in [("select 2 a", 2), ("select 1 a", 1)]
            as [(ClickHouseQuery, Int64)]
        {
            var rows = try clickHouse.rows(question, columnCount: 1)
            #expect(try rows.step())
            #expect(try rows.integer(at: 0) == number)
        }
        #expect(throws: ClickHouseError.self) {
            try clickHouse.rows("select 3 a", columnCount: 1)
        }
    }

    @Test func `a program that is missing is said`() {
        #expect(
            Curl(program: "no-such-curl").send(
                HTTPRequest(method: "GET", url: "http://127.0.0.1:1/"))
                == .refused(reason: "curl is not installed: stallctl speaks HTTP through it"))
    }
}
