import StallClickHouse
import StallHTTP
import Testing

/// Goal: what is no answer, or the half of one, is no answer; and what a user may not do is done without where it can be.
/// Method: a scripted server; nothing waits.
@Suite struct ServerFaultTests {
    private func message(_ replies: [HTTPReply], columnCount: Int = 1) throws -> String {
        let script = ScriptedServer(replies)
        let error = try #require(throws: ClickHouseError.self) {
            var rows = try script.server().rows("select 1", columnCount: columnCount)
            while try rows.step() { _ = try rows.text(at: 0) }
        }
        #expect(!error.description.contains { $0.isNewline })
        return error.description
    }

    @Test(arguments: ["", "1\n", "<!DOCTYPE html>\n<html>"])
    func `an answer of another program is none`(body: String) throws {
        let answer = HTTPReply.answer(HTTPAnswer(status: 200, body: Array(body.utf8)))
        #expect(try message([answer]).contains("not an answer of a store: no ClickHouse answers"))
    }

    @Test func `an answer that ends with its connection is asked for again`() throws {
        let heads = "HTTP/1.1 200 OK\r\nX-ClickHouse-Query-Id: 1\r\n\r\n"
        let cut = try #require(HTTPAnswer(heads: Array(heads.utf8), body: Array("1\n".utf8)))
        let script = ScriptedServer([.answer(cut), ScriptedServer.answer("1\n2\n")])
        var rows = try script.server().rows("select 1", columnCount: 1)
        #expect(try rows.step())
        #expect(try rows.step())
        #expect(
            try message(Array(repeating: .answer(cut), count: 3))
                .hasSuffix("no answer: the answer does not say where it ends"))
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 2", "HTTP/1.1 200\r\nTransfer-Encoding: chunked",
        "HTTP/2 200",
    ])
    func `the end of other answers is known`(heads: String) throws {
        #expect(try #require(HTTPAnswer(heads: Array(heads.utf8), body: [])).endIsKnown)
    }

    @Test(arguments: [
        (
            1,
            "a\nCode: 241, e.displayText() = DB::Exception: Memory limit, e.what() = DB::Exception\n"
        ),
        (2, "a\tb\nc\tdCode: 241, e.displayText() = DB::Exception: Memory limit, e.what() = x"),
        (2, "a\tb\ncCode: 241, e.displayText() = DB::Exception: Memory limit, e.what() = x\n"),
        (
            1,
            "a\nb\r\n__exception__\r\nabc\r\nCode: 241. DB::Exception: Memory limit\n20 abc\r\n__exception__\r\n"
        ),
        (
            3,
            "a\tb\tc\r\n__exception__\r\nabc\r\nCode: 241. DB::Exception: Memory limit\n20 abc\r\n__exception__\r\n"
        ),
    ])
    func `an error after rows is the server's error`(columnCount: Int, body: String) throws {
        #expect(
            try message([ScriptedServer.answer(body)], columnCount: columnCount)
                .hasSuffix("ClickHouse error 241: Memory limit"))
    }

    @Test func `a name that looks like an error is a name`() throws {
        let name = "Code: 60, e.displayText() = DB::Exception: x, e.what() = DB::Exception"
        var rows = try ScriptedServer([ScriptedServer.answer("1\t\(name)\n")]).server()
            .rows("select 1", columnCount: 2)
        #expect(try rows.step())
        #expect(try rows.text(at: 1) == name)
    }

    @Test func `what stands before a server is asked again while it has none`() throws {
        let busy = HTTPReply.answer(HTTPAnswer(status: 503))
        let script = ScriptedServer([busy, ScriptedServer.answer("1\n")])
        _ = try script.server().rows("select 1", columnCount: 1)
        #expect(try message([busy, busy, busy]).hasSuffix("no answer: HTTP status 503"))
    }

    @Test func `a question that took all of its time is not asked again`() throws {
        let script = ScriptedServer([.timedOut(reason: "slow"), ScriptedServer.answer("1\n")])
        let server = try script.server("clickhouse://hub/stalls?timeout=30")
        server.ask(ahead: ["select 1"])
        for _ in 1...2 {
            let error = try #require(throws: ClickHouseError.self) {
                try server.at(host: "other").rows("select 2", columnCount: 1)
            }
            #expect(error.description.hasSuffix("no answer within 30 s (timeout=): slow"))
        }
        #expect(script.requests.count == 1)
        #expect(script.requests[0].limits.answer_s == 30)
    }

    @Test func `a user who may not set anything asks without settings`() throws {
        let script = ScriptedServer([
            ScriptedServer.error(164, "Cannot override setting (max_query_size) in readonly mode"),
            ScriptedServer.answer("1\n"), ScriptedServer.answer("1\n"),
        ])
        let server = try script.server()
        _ = try server.rows("select 1", columnCount: 1)
        _ = try server.on(database: "system").rows("select 2", columnCount: 1)
        #expect(script.pauses.isEmpty)
        #expect(script.requests[0].url.contains("max_query_size="))
        for request in script.requests[1...] {
            #expect(!request.url.contains("max_query_size"))
            #expect(!request.url.contains("use_uncompressed_cache"))
            #expect(request.url.contains("wait_end_of_query=1"))
        }
    }

    @Test func `who may only read is told so when something is to be written`() throws {
        let reply = ScriptedServer.error(164, "Cannot insert into table in readonly mode")
        let error = try #require(throws: ClickHouseError.self) {
            try ScriptedServer([reply]).server().insert(into: "stack (hash)", Array("1\n".utf8))
        }
        #expect(
            error.description.contains(
                "the user may only read: ClickHouse error 164: Cannot insert"))
    }

    @Test(arguments: ["Code: 241, e.displayText() = DB::Exception: Memory limit", "welcome"])
    func `rows are in only when the server says nothing`(body: String) throws {
        let script = ScriptedServer([ScriptedServer.answer(body)])
        #expect(throws: ClickHouseError.self) {
            try script.server().insert(into: "stack (hash)", Array("1\n".utf8))
        }
    }

    @Test func `messages name the address that was given`() throws {
        let script = ScriptedServer([ScriptedServer.error(60, "none")])
        let error = try #require(throws: ClickHouseError.self) {
            try script.server().on(database: "system").rows("select 1", columnCount: 1)
        }
        #expect(error.description.hasPrefix("clickhouse://reader@hub:8123/stalls?cluster=two:"))
    }

    @Test func `a certificate that is not trusted comes with what to do`() throws {
        let reply = HTTPReply.refused(reason: "curl: (60) SSL certificate problem")
        #expect(try message([reply]).hasSuffix("problem; ca-file= names the authority to trust"))
    }
}
