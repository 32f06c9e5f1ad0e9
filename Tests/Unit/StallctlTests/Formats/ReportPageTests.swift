import Foundation
import StallAnalysis
import StallFormats
import StallModel
import TestSupport
import Testing

@testable import stallctl

/// Goal: a page shows names and is steered by none; its policy names exactly its own script and style.
/// Method: the page of a store with hostile names, as text. `make truth-pictures` opens it in a browser.
@Suite struct ReportPageTests {
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `the hash is that of FIPS 180-4`(text: String, digest: String) {
        #expect(SHA256.digest(Array(text.utf8)).hexadecimal == digest)
    }

    @Test func `a policy's hash is in base64`() {
        #expect(
            SHA256.policySource("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
    }

    @Test func `no name ends the text that it stands in`() throws {
        try withTemporaryDirectory { directory in
            let names =
                hostileNames + [
                    "</script><script>x()</script>", "<!--", "@@data@@", "'\"><img src=x>",
                    String(repeating: "std::vector<", count: 900),
                ]
            let reports = names.enumerated().map { number, name in
                SampleReports.report(
                    UInt64(number + 1),
                    samples: [
                        SampleReports.sample(
                            at: 1, for: 1840,
                            [SampleReports.frame(name, offset: UInt64(number * 64 + 64))])
                    ])
            }
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), reports)
            let page = directory.appending(path: "page.html")
            let said = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["report", "-o", page.path],
                environment: ["TZ": "UTC", "HOME": directory.path, "PATH": "/usr/bin:/bin"],
                directory: directory)
            #expect(said.status == 0 && said.errors == "", "\(said.errors)")
            let text = try String(contentsOf: page, encoding: .utf8)
            #expect(text.ranges(of: "<script").count == 2)
            #expect(text.ranges(of: "</script").count == 2)
            #expect(!text.contains("<img") && text.contains("@@data@@"))
            #expect(text.ranges(of: "</style").count == 1)
            #expect(!text.unicodeScalars.contains { $0.steersTerminal && $0 != "\n" })
            // The policy's hashes are those of what a browser will see between the tags.
            for tag in ["style", "script"] {
                let start = try #require(text.range(of: "<\(tag)>")).upperBound
                let end = try #require(text.range(of: "</\(tag)>", range: start..<text.endIndex))
                let source = SHA256.policySource(String(text[start..<end.lowerBound]))
                #expect(text.contains("\(tag)-src '\(source)'"), "\(tag)")
            }
            for word in ["http:", "https:", "@import", "url(", "innerHTML", "fetch("] {
                #expect(!text.replacing("http://www.w3.org/2000/svg", with: "").contains(word))
            }
        }
    }

    @Test func `comparing needs two sides`() throws {
        let said = try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path,
            ["report", "-o", "/tmp/x.html", "--compare", "1.0"])
        #expect(said.status == 64 && said.errors.contains("--compare needs two sides"))
    }
}
