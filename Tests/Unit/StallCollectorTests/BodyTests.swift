import Foundation
import TestSupport
import Testing

@testable import StallCollector
@testable import StallGzip
@testable import StallModel

/// Goal: a body is what its digest says, and takes no more memory than it may.
/// Method: gzip files of /bin/gzip, changed by hand.
@Suite struct BodyTests {
    let fixture: CollectorFixture
    let lines = Array("photos 1\nphotos 2\n".utf8)

    init() throws {
        var limits = CollectorLimits()
        limits.inflatedBytes = 1 << 20
        fixture = try CollectorFixture(limits: limits)
    }

    func push(gzip body: [UInt8]) async -> CollectorAnswer {
        await fixture.push(body) { $0.fields["content-encoding"] = "gzip" }
    }

    @Test func `gzip is unpacked`() async throws {
        let body = try gzip(lines)
        #expect(await push(gzip: body).status == 200)
        #expect(fixture.lineCount == 2)
        #expect(try Gzip.inflate(body, limit: lines.count) == lines)
    }

    @Test func `gzip of any size comes out whole`() throws {
        for size in [0, 1, 65_535, 65_536, 65_537, 1 << 20] {
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            #expect(try Gzip.inflate(gzip(bytes), limit: size) == bytes)
        }
    }

    @Test func `a bomb is refused when it is too large, not when it is unpacked`() async throws {
        let bomb = try gzip([UInt8](repeating: 0x20, count: 64 << 20))
        #expect(bomb.count < 100_000)
        #expect(await push(gzip: bomb).status == 413)
        #expect(fixture.lineCount == 0)
    }

    @Test func `gzip that is cut, changed or followed by something is refused`() async throws {
        let body = try gzip(lines)
        for end in 0..<body.count {
            #expect(await push(gzip: Array(body[..<end])).status == 400)
        }
        #expect(await push(gzip: body + [0]).status == 400)
        #expect(await push(gzip: body + body).status == 400)
        #expect(await push(gzip: lines).status == 400)
        var changed = body
        changed[changed.count - 6] ^= 1
        #expect(await push(gzip: changed).status == 400)
        #expect(fixture.lineCount == 0)
    }

    @Test func `a body that is not what its digest says is refused`() async throws {
        let body = try gzip(lines)
        for place in 0..<body.count {
            var changed = body
            changed[place] ^= 1
            let answer = await fixture.push(changed) {
                $0.fields["content-encoding"] = "gzip"
                $0.fields["content-digest"] = digestField(body)
            }
            #expect(answer.status == 400)
        }
        #expect(fixture.lineCount == 0)
    }

    @Test(
        arguments: [
            ("", []), ("AA==", [0]), ("AAA=", [0, 0]), ("+/+/", [0xfb, 0xff, 0xbf]), ("A", nil),
            ("AA=A", nil), ("A===", nil), ("AA==AAAA", nil), ("-_-_", nil), ("AA\n=", nil),
        ] as [(String, [UInt8]?)])
    func `base64 is read strictly`(text: String, bytes: [UInt8]?) {
        #expect([UInt8](base64: text) == bytes)
    }

    func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
        let file = fixture.folder.appending(path: UUID().uuidString)
        try Data(bytes).write(to: file)
        let (process, pipe) = (Process(), Pipe())
        process.executableURL = URL(filePath: "/bin/gzip")
        process.arguments = ["-nc", file.path]
        process.standardOutput = pipe
        try process.start()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Array(output)
    }
}
