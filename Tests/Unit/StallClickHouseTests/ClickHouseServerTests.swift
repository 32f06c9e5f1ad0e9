import StallClickHouse
import StallHTTP
import Testing

/// Goal: a question that passes is asked again, a statement that writes is not, and no password is where others see it.
/// Method: a scripted server; nothing waits.
@Suite struct ClickHouseServerTests {
    @Test func `a question is asked again while its failure may pass`() throws {
        let script = ScriptedServer([
            .failed(reason: "connection reset"), ScriptedServer.error(209, "Timeout"),
            ScriptedServer.answer("7\n"),
        ])
        var rows = try script.server().rows("select 7", columnCount: 1)
        #expect(try rows.step())
        #expect(try rows.integer(at: 0) == Int64(7))
        #expect(script.requests.count == 3)
        #expect(script.pauses == [0.2, 1.0])
    }

    @Test func `a question is given up after three attempts`() throws {
        let script = ScriptedServer(Array(repeating: .failed(reason: "refused"), count: 9))
        let error = try #require(throws: ClickHouseError.self) {
            try script.server().rows("select 1", columnCount: 1)
        }
        #expect(
            error.description
                == "clickhouse://reader@hub:8123/stalls?cluster=two: no answer: refused")
        #expect(script.requests.count == 3)
    }

    @Test(arguments: [
        (
            "Code: 60, e.displayText() = DB::Exception: Table x.y doesn't exist., e.what() = DB::Exception\n",
            60,
            "Table x.y doesn't exist."
        ),
        ("Code: 62. DB::Exception: Syntax error\nmore", 62, "Syntax error"),
        (
            "Code: 279, e.displayText() = DB::Exception: Received from a: DB::Exception: inner",
            279, "inner"
        ),
    ])
    func `the server's own error is told, and not asked again`(
        body: String, code: Int, text: String
    ) throws {
        let script = ScriptedServer([ScriptedServer.answer(body, status: 500)])
        #expect(
            throws: ClickHouseError.server(
                store: "clickhouse://reader@hub:8123/stalls?cluster=two", code: code, text: text)
        ) { try script.server().rows("select 1", columnCount: 1) }
        #expect(script.requests.count == 1)
    }

    @Test func `what is no answer of a server is told`() throws {
        let script = ScriptedServer([ScriptedServer.answer("<html>hello", status: 404)])
        let error = try #require(throws: ClickHouseError.self) {
            try script.server().rows("select 1", columnCount: 1)
        }
        #expect(error.description.hasSuffix("HTTP status 404: <html>hello"))
    }

    @Test func `a statement that writes is sent once`() throws {
        let script = ScriptedServer(Array(repeating: .failed(reason: "reset"), count: 3))
        #expect(throws: ClickHouseError.self) {
            try script.server().insert(into: "stack (hash)", Array("1\n".utf8))
        }
        #expect(script.requests.count == 1)
        #expect(script.requests[0].body == Array("1\n".utf8))
        #expect(
            script.requests[0].url.contains(
                "query=insert%20into%20stack%20%28hash%29%20format%20TabSeparated"))
    }

    @Test func `the password is in no address and no error`() throws {
        let script = ScriptedServer([
            .refused(reason: "certificate"), ScriptedServer.error(516, "Wrong password"),
        ])
        for _ in 1...2 {
            let error = try #require(throws: ClickHouseError.self) {
                try script.server().rows("select 1", columnCount: 1)
            }
            #expect(!"\(error)".contains("s3cret"))
        }
        for request in script.requests {
            #expect(!request.url.contains("s3cret"))
            #expect(request.user?.name == "reader")
            #expect(request.user?.password == "s3cret")
        }
    }

    @Test func `an answer is only taken when the server has come to its end`() throws {
        let script = ScriptedServer([ScriptedServer.answer("")])
        _ = try script.server().rows("select 1", columnCount: 1)
        #expect(script.requests[0].url.contains("wait_end_of_query=1"))
    }

    @Test
    func `questions that were asked at once are not sent again, and each answer is used once`()
        throws
    {
        let script = ScriptedServer([
            ScriptedServer.answer("1\n"), ScriptedServer.answer("2\n"),
            ScriptedServer.answer("3\n"),
        ])
        let server = try script.server()
        server.ask(ahead: ["select 1", "select 2"])
        for (question, expected) in [("select 2", 2), ("select 1", 1), ("select 1", 3)]
            as [(ClickHouseQuery, Int64)]
        {
            var rows = try server.rows(question, columnCount: 1)
            #expect(try rows.step())
            #expect(try rows.integer(at: 0) == expected)
        }
        #expect(script.requests.count == 3)
    }

    @Test func `a question that failed among others is asked again on its own`() throws {
        let script = ScriptedServer([
            ScriptedServer.answer("1\n"), ScriptedServer.error(210, "reset"),
            ScriptedServer.answer("2\n"),
        ])
        let server = try script.server()
        server.ask(ahead: ["select 1", "select 2"])
        _ = try server.rows("select 1", columnCount: 1)
        var rows = try server.rows("select 2", columnCount: 1)
        #expect(try rows.step())
        #expect(try rows.integer(at: 0) == Int64(2))
        #expect(script.requests.count == 3)
    }

    @Test func `answers that were not used are dropped before others are asked ahead`() throws {
        let script = ScriptedServer(["1\n", "2\n", "3\n", "4\n"].map { ScriptedServer.answer($0) })
        let server = try script.server()
        server.ask(ahead: ["select 1"])
        server.ask(ahead: ["select 2"], keepingOthers: true)
        _ = try server.rows("select 1", columnCount: 1)
        #expect(script.requests.count == 2)
        server.ask(ahead: ["select 3"])
        _ = try server.rows("select 2", columnCount: 1)
        #expect(script.requests.count == 4)
    }
}
