import Foundation
import StallModel
import StallSymbols
import TestSupport
import Testing

/// Goal: functions that were compiled at run time have the names that their compiler wrote.
/// Method: files as Node and CPython write them, and files that are none.
@Suite struct PerfMapTests {
    private func functions(_ text: String, at addresses: [UInt64]) throws -> [UInt64: ScriptFrame] {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "perf-1.map").path
            try Data(text.utf8).write(to: URL(filePath: path))
            var map = PerfMap(path: path)
            return map.functions(at: addresses)
        }
    }

    @Test(
        arguments: [
            ("JS:*Server.answer /srv/app.js:12:34", "Server.answer", "/srv/app.js", 12),
            ("JS:~ file:///srv/app.mjs:3:5", "(anonymous)", "/srv/app.mjs", 3),
            ("LazyCompile:~listen node:net:1900:40", "listen", "node:net", 1900),
            ("py::answer:/srv/app.py", "answer", "/srv/app.py", nil),
            ("Builtin:ArrayMap", "Builtin:ArrayMap", nil, nil),
            ("Lcom/example/App;::run", "Lcom/example/App;::run", nil, nil),
        ] as [(String, String, String?, Int?)])
    func `a name is taken apart`(name: String, function: String, file: String?, line: Int?) throws {
        let found = try functions("1000 20 \(name)\n", at: [0x101f])[0x101f]
        #expect(found == ScriptFrame(function: function, file: file, line: line))
    }

    @Test func `the function that contains an address is found, and the last one that does`() throws
    {
        let found = try functions(
            "1000 10 first\n1010 10 second\n0x1018 8 third\n",
            at: [0xfff, 0x1000, 0x100f, 0x1010, 0x1018, 0x1020])
        #expect(
            found.mapValues(\.function) == [
                0x1000: "first", 0x100f: "first", 0x1010: "second", 0x1018: "third",
            ])
    }

    @Test func `what is no line is skipped`() throws {
        let found = try functions(
            """
            \u{0}\u{1}
            xyz 10 bad
            10000000000000000000 10 large
            ffffffffffffffff ffffffffffffffff edge
            2000 10
            1000
            3000 10 good

            """, at: [0x1000, 0x2000, 0x3000, .max])
        #expect(found.mapValues(\.function) == [0x3000: "good", .max: "edge"])
    }

    @Test func `what a process before this one left is not read`() throws {
        try withTemporaryDirectory { directory in
            let url = directory.appending(path: "perf-1.map")
            try Data("1000 10 old\n".utf8).write(to: url)
            let past = Date(timeIntervalSinceNow: -86_400 * 365)
            try FileManager.default.setAttributes([.modificationDate: past], ofItemAtPath: url.path)
            var map = PerfMap(path: url.path)
            #expect(map.functions(at: [0x1000]).isEmpty)
        }
    }

    @Test func `what is added to the file is found`() throws {
        try withTemporaryDirectory { directory in
            let url = directory.appending(path: "perf-1.map")
            var map = PerfMap(path: url.path)
            #expect(map.functions(at: [0x1000]).isEmpty)
            var text = String(repeating: "5000 10 other function of no interest\n", count: 5_000)
            try Data(text.utf8).write(to: url)
            #expect(map.functions(at: [0x1000]).isEmpty)
            text += "1000 10 ne"
            try Data(text.utf8).write(to: url)
            #expect(map.functions(at: [0x1000]).isEmpty)
            text += "w\n"
            try Data(text.utf8).write(to: url)
            #expect(map.functions(at: [0x1000])[0x1000]?.function == "new")
            // And again, while another address is looked for from the beginning.
            text += "1000 10 newer\n"
            try Data(text.utf8).write(to: url)
            #expect(map.functions(at: [0x1000, 0x2000])[0x1000]?.function == "newer")
        }
    }
}
