import Foundation
import Testing

@testable import StallCollector

/// Goal: a reader's question becomes exactly one question of stallctl, about the token's apps and this store only.
/// Method: arguments as values; answers from a script that plays stallctl.
@Suite struct ToolReaderTests {
    func arguments(
        _ kind: ReadQuestion.Kind, _ parameters: [(name: String, value: String)],
        apps: [String] = []
    ) throws -> [String] {
        try ToolReader.arguments(
            ReadQuestion(kind: kind, parameters: parameters, apps: apps), store: "/s")
    }

    @Test func `a question has the token's apps`() throws {
        #expect(
            try arguments(.top, [("since", "7d"), ("limit", "5")], apps: ["photos", "-x"])
                == [
                    "top", "--store=/s", "--json", "--since=7d", "--limit=5", "--app=photos",
                    "--app=-x",
                ])
        #expect(try arguments(.top, []) == ["top", "--store=/s", "--json", "--app=*"])
        #expect(
            try arguments(.top, [("app", "mail")]) == ["top", "--store=/s", "--json", "--app=mail"])
        #expect(throws: ReadQuestionError.self) {
            try arguments(.top, [("app", "mail")], apps: ["photos"])
        }
        #expect(throws: ReadQuestionError.self) {
            try arguments(.top, [("app", "*")], apps: ["photos"])
        }
        #expect(throws: ReadQuestionError.self) { try arguments(.status, [], apps: ["photos"]) }
    }

    @Test func `no value becomes an option, and no option is reached that is not meant`() throws {
        #expect(
            try arguments(.trend, [("name", "--rules=/etc/passwd")])
                == ["trend", "--store=/s", "--json", "--app=*", "--", "--rules=/etc/passwd"])
        #expect(
            try arguments(.top, [("version", "--store=/x")])
                == ["top", "--store=/s", "--json", "--version=--store=/x", "--app=*"])
        for name in ["store", "rules", "output", "--x", ""] {
            #expect(throws: ReadQuestionError.self) { try arguments(.top, [(name, "x")]) }
        }
        #expect(throws: ReadQuestionError.self) { try arguments(.top, [("since", "7d\0x")]) }
    }

    @Test(arguments: ["/etc/passwd", "../x", "./x", ".", "a/b", ""])
    func `a side of a comparison is no path`(side: String) {
        #expect(throws: ReadQuestionError.self) {
            try arguments(.diff, [("a", side), ("b", "2.0")])
        }
        #expect(throws: ReadQuestionError.self) {
            try arguments(.diff, [("a", "2.0"), ("b", side)])
        }
    }

    @Test(arguments: ["0193c1e2", "latest"])
    func `a report is shown by its id`(id: String) throws {
        #expect(
            try arguments(.show, [("id", id)]) == ["show", "--store=/s", "--json", "--", id])
    }

    @Test(arguments: ["1", "0193c1e", "waitForWorker", "-v", "0193c1e2/.."])
    func `a report is not shown by other names`(id: String) {
        #expect(throws: ReadQuestionError.self) { try arguments(.show, [("id", id)]) }
    }

    @Test func `another app's report is not shown`() throws {
        let reader = try Script("echo '{\"app\":\"mail\"}'; echo '{\"app\":\"photos\",\"x\":1}'")
        let question = ReadQuestion(
            kind: .show, parameters: [("id", "0193c1e2")], apps: ["photos"])
        guard case .lines(let lines) = try reader.reader.answer(question) else {
            Issue.record("no lines")
            return
        }
        #expect(lines == ["{\"app\":\"photos\",\"x\":1}"])
        let other = try Script("echo '{\"app\":\"mail\"}'")
        guard case .nothing = try other.reader.answer(question) else {
            Issue.record("another app's report was shown")
            return
        }
    }

    @Test func `a page is served under the policy that it names`() throws {
        let page =
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\"><p>hello"
        let reader = try Script("cat <<'END'\n\(page)\nEND")
        let question = ReadQuestion(kind: .report, parameters: [], apps: ["photos"])
        guard case .page(let bytes, let policy) = try reader.reader.answer(question) else {
            Issue.record("no page")
            return
        }
        #expect(String(decoding: bytes, as: UTF8.self) == page + "\n")
        #expect(policy == "default-src 'none'")
    }

    @Test func `a wrong question is the reader's, a broken store the operator's`() throws {
        let question = ReadQuestion(kind: .top, parameters: [], apps: [])
        for (kind, status) in [("usage", 64), ("question", 1)] {
            let wrong = try Script.failing(status, kind: kind, "narrow the range")
            #expect { try wrong.reader.answer(question) } throws: {
                ($0 as? ReadQuestionError)?.description == "narrow the range"
            }
        }
        let missing = try Script.failing(1, kind: "nothing", "/s: no report id begins with 7")
        guard case .nothing = try missing.reader.answer(question) else {
            Issue.record("an answer about nothing")
            return
        }
        // Whatever its words are, and whatever is said before it.
        for words in ["/s: damaged", "no report id begins with 7", "narrow the range"] {
            let broken = try Script.failing(1, kind: "failure", words)
            #expect { try broken.reader.answer(question) } throws: {
                !($0 is ReadQuestionError) && "\($0)" == words
            }
        }
        for silent in ["exit 1", "echo 'Killed: no group' >&2; exit 64", "echo '{}' >&2; exit 1"] {
            let dead = try Script(silent)
            #expect { try dead.reader.answer(question) } throws: { !($0 is ReadQuestionError) }
        }
        let endless = try Script("exec yes", byteLimit: 1 << 16)
        #expect(throws: ReadQuestionError.self) { try endless.reader.answer(question) }
    }

    @Test func `a cluster is asked by its address, and may answer in part`() throws {
        let question = ReadQuestion(kind: .top, parameters: [], apps: [])
        let cluster = "clickhouse://stall@hub:8123/stalls?cluster=stalls"
        let part = try Script(#"echo "{\"words\":\"$*\"}"; exit 3"#, store: cluster)
        guard case .lines(let lines) = try part.reader.answer(question) else {
            Issue.record("no lines")
            return
        }
        #expect(lines.count == 1 && lines[0].contains("--store=\(cluster)"))
        let broken = try Script.failing(
            1, kind: "failure", "\(cluster): no answer", store: cluster)
        #expect { try broken.reader.answer(question) } throws: { !($0 is ReadQuestionError) }
        // A page says what it lacks in its first note.
        let text = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">"
        let page = try Script(
            "cat <<'END'\n\(text)\nEND\necho 'stallctl: partial answer' >&2; exit 3", store: cluster
        )
        guard
            case .page(let bytes, _) = try page.reader.answer(
                ReadQuestion(kind: .report, parameters: [], apps: []))
        else {
            Issue.record("no page")
            return
        }
        #expect(String(decoding: bytes, as: UTF8.self) == text + "\n")
    }

    @Test func `a query is decoded once`() {
        let read = ReadQuestion.parameters(of: "/v1/top?a=1+2&b=%252f&c&=d&a=%C3%A4")
        #expect(read?.map(\.name) == ["a", "b", "c", "", "a"])
        #expect(read?.map(\.value) == ["1 2", "%2f", "", "d", "ä"])
        for bad in ["?a=%", "?a=%f", "?a=%zz", "?a=%ff"] {
            #expect(ReadQuestion.parameters(of: bad) == nil)
        }
    }

    /// A script that plays stallctl.
    final class Script {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        let reader: ToolReader

        init(_ text: String, store: String = "/s", byteLimit: Int = 1 << 20) throws {
            // Not written here: a program that another test starts meanwhile would hold the file open for writing, and a
            // file that is open for writing cannot be run.
            let writer = try Process.run(
                URL(filePath: "/bin/sh"),
                arguments: [
                    "-c", #"printf '%s\n' '#!/bin/sh' "$1" >"$0" && chmod 700 "$0""#, path.path,
                    text,
                ])
            writer.waitUntilExit()
            reader = ToolReader(tool: path.path, store: store, byteLimit: byteLimit)
        }

        /// Ends with an error, after a note, where it is asked for JSON.
        static func failing(
            _ status: Int, kind: String, _ message: String, store: String = "/s"
        ) throws -> Script {
            let line =
                #"{"schema":"stallctl.error/1","kind":"\#(kind)","message":"\#(message)"}"#
            return try Script(
                "[ $STALLCTL_ERRORS = json ] && printf 'a note\\n%s\\n' '\(line)' >&2; exit \(status)",
                store: store)
        }

        deinit { try? FileManager.default.removeItem(at: path) }
    }
}
