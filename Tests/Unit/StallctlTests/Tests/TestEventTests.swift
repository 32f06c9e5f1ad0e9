import Foundation
import TestSupport
import Testing

@testable import stallctl

/// Goal: the stream is read as far as it is written, and no byte in it does harm.
/// Method: lines as Swift 6.3.1 wrote them, whole, cut and changed; a file that grows and shrinks.
@Suite struct TestEventTests {
    static let described =
        #"{"kind":"test","payload":{"displayName":"a \"b\"","id":"Mod.Things\/`a \"b\"`(n:)\/A.swift:19:6","isParameterized":true,"kind":"function","name":"`a \"b\"`(n:)","sourceLocation":{"_filePath":"\/p\/A.swift","column":6,"fileID":"Mod\/A.swift","line":19}},"version":0}"#
    static let started =
        #"{"kind":"event","payload":{"instant":{"absolute":1.5,"since1970":1795675699.5},"kind":"testStarted","messages":[],"testID":"Mod.f()\/A.swift:6:2"},"version":"6.3.0"}"#

    @Test func `a test has its name, file and line`() throws {
        guard case .described(let test) = TestEvent(Self.described.utf8) else {
            return #expect(Bool(false))
        }
        #expect(test.name == #"a "b""# && test.path == "/p/A.swift" && test.line == 19)
        #expect(test.fileID == "Mod/A.swift" && !test.isSuite)
        #expect(
            TestEvent(Self.started.utf8)
                == .started(
                    id: "Mod.f()/A.swift:6:2", at: Date(timeIntervalSince1970: 1_795_675_699.5)))
    }

    @Test(arguments: [
        ("Mod.sums()/A.swift:6:2", "sums"), ("Mod.Outer/Inner/sums(of:)/A.swift:6:2", "sums"),
        ("Mod.S/`a / (b) c:1`()/A.swift:6:2", "a / (b) c:1"),
        ("Mod.`raw.name`()/A.swift:1:1", "raw.name"),
        ("sums", "sums"), ("", ""), ("`", "`"), ("Mod./A.swift:1:1", "Mod."),
    ])
    func `the function of a test is found in its id`(id: String, function: String) {
        let test = TestDescription(id: id, name: "", fileID: "Mod/A.swift")
        #expect(test.function == function)
    }

    @Test(arguments: [
        "", "{}", "[]", "null", "\u{0}", #"{"kind":"test","payload":{}}"#,
        #"{"kind":"event"}"#, #"{"kind":"test","payload":{"id":""}}"#,
        #"{"kind":"metadata","payload":{}}"#, String(repeating: "[", count: 2000),
    ])
    func `a line that is not understood is no event`(line: String) {
        #expect(TestEvent(line.utf8) == nil)
    }

    @Test func `no cut and no changed byte of a line does harm`() {
        for line in [Self.described, Self.started] {
            let bytes = Array(line.utf8)
            for count in bytes.indices { #expect(TestEvent(bytes[..<count]) == nil) }
            for index in bytes.indices {
                var changed = bytes
                changed[index] = 0xFF
                _ = TestEvent(changed)
            }
        }
        let time =
            #"{"kind":"event","payload":{"kind":"testStarted","testID":"a","instant":{"since1970":1e400}}}"#
        if case .started(_, let date) = TestEvent(time.utf8) { #expect(date == nil) }
    }

    @Test func `lines are cut wherever the bytes are, and an endless one is dropped`() {
        var cutter = LineCutter()
        #expect(cutter.lines(in: Array("ab".utf8)) == [])
        #expect(cutter.lines(in: Array("c\n\nd\ne".utf8)) == [Array("abc".utf8), Array("d".utf8)])
        let much = [UInt8](repeating: 65, count: 1 << 20)
        for _ in 0..<5 { #expect(cutter.lines(in: much) == []) }
        #expect(cutter.lines(in: Array("\nnext\n".utf8)) == [Array("next".utf8)])
    }

    @Test func `a file is read as it grows, from the start again if it was cut, and a pipe is not`()
        throws
    {
        try withTemporaryDirectory { directory in
            let file = directory.appending(path: "events")
            var stream = TestEventStream(path: file.path)
            #expect(stream.read() == [])
            let text = Self.started + "\nnoise\n" + Self.started
            try Data(text.utf8).write(to: file)
            #expect(stream.read().count == 1 && stream.unknownLines == 1)
            let handle = try FileHandle(forWritingTo: file)
            try handle.seekToEnd()
            try handle.write(contentsOf: Data("\n".utf8))
            #expect(stream.read().count == 1)
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: Data((Self.started + "\n").utf8))
            #expect(stream.read().count == 1)
            let pipe = directory.appending(path: "pipe").path
            mkfifo(pipe, 0o600)
            var piped = TestEventStream(path: pipe)
            #expect(piped.read() == [])
        }
    }
}
