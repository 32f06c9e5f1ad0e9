import Foundation
import Synchronization
import Testing

@testable import StallCollector
@testable import StallModel

/// Goal: who may do what: right, app, rotation, and how often one may try.
/// Method: token files in a temporary folder; the test owns the clock.
@Suite struct TokenTests {
    let fixture: CollectorFixture
    let lines = Array("photos 1\n".utf8)

    init() throws { fixture = try CollectorFixture() }

    @Test func `a read token cannot write, nor a write token read`() async {
        #expect(await fixture.push(lines, token: fixture.read).status == 403)
        #expect(await fixture.get("/v1/top", token: fixture.write).status == 403)
        #expect(
            await fixture.get("/v1/stores/\(CollectorFixture.store)", token: fixture.read).status
                == 403)
        #expect(fixture.lineCount == 0)
    }

    @Test func `a write token of one app cannot write lines of another`() async {
        let answer = await fixture.push(lines, token: fixture.other)
        #expect(answer.status == 403)
        #expect(answer.text.hasPrefix("{\"line\":1,\"error\":"))
        #expect(fixture.lineCount == 0)
    }

    @Test func `a browser sends the token as a password`() async {
        let password = Data("anyone:\(fixture.write)".utf8).base64EncodedString()
        let answer = await fixture.push(lines) {
            $0.fields["authorization"] = "Basic \(password)"
        }
        #expect(answer.status == 200)
        let without = await fixture.get("/v1/top")
        #expect(without.status == 401)
        // A browser asks for a password only where the challenge has a field of its own.
        let challenges = without.fields.filter { $0.name == "www-authenticate" }.map(\.value)
        #expect(challenges == ["Basic realm=\"stallwatch\"", "Bearer"])
    }

    @Test func `a new token is known at once, and a removed one refused a second later`()
        async throws
    {
        let new = CollectorToken.make(.write, apps: ["photos"])
        try TokenFile.change(fixture.tokenPath) { $0.tokens.append(new.token) }
        #expect(await fixture.push(lines, token: new.text).status == 200)
        #expect(await fixture.push(lines).status == 200)
        try TokenFile.change(fixture.tokenPath) { $0.tokens = [new.token] }
        fixture.clock.now.withLock { $0 += 1.5 }
        #expect(await fixture.push(lines).status == 401)
        #expect(await fixture.push(lines, token: new.text).status == 200)
    }

    @Test func `a token file that breaks leaves the tokens of before`() async throws {
        try "nonsense\n".write(toFile: fixture.tokenPath, atomically: true, encoding: .utf8)
        fixture.clock.now.withLock { $0 += 1.5 }
        #expect(await fixture.push(lines).status == 200)
        #expect(
            await fixture.get("/metrics").text.contains(
                "stall_collector_token_file_errors_total 1\n"))
    }

    /// Goal: what is no token file locks no one out, and is counted. One whose last token was removed is a token file.
    @Test func `a token file that becomes empty or a pipe leaves the tokens of before`()
        async throws
    {
        let (path, files) = (fixture.tokenPath, FileManager.default)
        func count(_ count: Int) async -> Bool {
            fixture.clock.now.withLock { $0 += 1.5 }
            let status = await fixture.push(lines).status
            let text = await fixture.get("/metrics").text
            return status == 200
                && text.contains("stall_collector_token_file_errors_total \(count)\n")
        }
        #expect(truncate(path, 0) == 0)
        #expect(await count(1))
        try files.removeItem(atPath: path)
        #expect(mkfifo(path, 0o600) == 0)
        #expect(await count(2))
        #expect(throws: TokenFileError.notAFile) { try TokenFile(path) }
        try files.removeItem(atPath: path)
        try files.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(await count(3))
        try files.removeItem(atPath: path)
        #expect(files.createFile(atPath: path, contents: nil))
        #expect(throws: TokenFileError.empty) { try TokenFile(path) }
        try TokenFile.change(path) { $0.tokens = [] }
        fixture.clock.now.withLock { $0 += 1.5 }
        #expect(await fixture.push(lines).status == 401)
    }

    @Test func `who fails too often is told to wait, and others are not`() async {
        for _ in 0..<20 { #expect(await fixture.push(lines, token: "swc_no").status == 401) }
        let answer = await fixture.push(lines, token: "swc_no")
        #expect(answer.status == 429)
        #expect(answer.field("retry-after") == "1")
        #expect(await fixture.push(lines).status == 200)
        #expect(
            await fixture.push(lines, token: "swc_no") { $0.peer = "192.0.2.1" }.status == 401)
        fixture.clock.now.withLock { $0 += 3 }
        #expect(await fixture.push(lines, token: "swc_no").status == 401)
    }

    @Test func `a token has a rate`() async throws {
        var limits = CollectorLimits()
        (limits.requestRate, limits.requestBurst) = (0.5, 2)
        let fixture = try CollectorFixture(limits: limits)
        #expect(await fixture.push(lines).status == 200)
        #expect(await fixture.push(lines).status == 200)
        let answer = await fixture.push(lines)
        #expect(answer.status == 429)
        #expect(answer.field("retry-after") == "2")
        fixture.clock.now.withLock { $0 += 2 }
        #expect(await fixture.push(lines).status == 200)
    }

    @Test func `a file of tokens is read as it was written, and holds no token`() throws {
        let tokens = try TokenFile.read(fixture.tokenPath)
        #expect(tokens.tokens.map(\.right) == [.write, .read, .write])
        #expect(tokens.tokens[2].apps == ["music", "a b%"])
        #expect(try CollectorTokens(tokens.text) == tokens)
        let text = try String(contentsOfFile: fixture.tokenPath, encoding: .utf8)
        #expect(!text.contains(fixture.write) && !text.contains("swc_"))
        let mode = try FileManager.default.attributesOfItem(atPath: fixture.tokenPath)
        #expect(mode[.posixPermissions] as? Int == 0o600)
    }

    @Test(arguments: [
        "sha256:00 write photos", "sha1:00 write photos",
        "sha256:\(String(repeating: "0", count: 64)) own photos",
        "sha256:\(String(repeating: "0", count: 64)) write",
        "sha256:\(String(repeating: "0", count: 64)) write a%2",
        "sha256:\(String(repeating: "0", count: 64)) write a%ff",
    ])
    func `a line that is no token is named`(line: String) {
        #expect(throws: TokenFileError.badLine(2)) { try CollectorTokens("# tokens\n\(line)\n") }
    }
}
