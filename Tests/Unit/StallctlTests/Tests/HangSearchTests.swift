import StallModel
import Testing

@testable import stallctl

/// Goal: a frame is counted to the test whose function it is in, and to no other with a similar name.
/// Method: names as Swift 6.3.1's demangler writes them.
@Suite struct HangSearchTests {
    func frame(
        _ function: String?, file: String? = "/p/A.swift", line: Int? = 3,
        image: String = "/b/pPackageTests.xctest", kind: CodeAddressKind = .returnAddress,
        raw: String? = nil
    ) -> Frame {
        var frame = Frame(
            CodeLocation(imagePath: image, buildID: nil, offset: 1, kind: kind, isGuessed: false))
        (frame.function, frame.file, frame.line, frame.rawName) = (function, file, line, raw)
        return frame
    }

    @Test(arguments: [
        ("M.sums()/A.swift:1:2", "sums()", true),
        ("M.sums()/A.swift:1:2", "closure #1 in sums()", true),
        ("M.sums()/A.swift:1:2", "closure #2 in closure #1 in sums()", true),
        ("M.sums()/A.swift:1:2", "resums()", false), ("M.sums()/A.swift:1:2", "sums2()", false),
        ("M.sums()/A.swift:1:2", "Other.sums()", false), ("M.sums()/A.swift:1:2", "_sums()", false),
        ("M.S/sums(of:)/A.swift:1:2", "S.sums(of:)", true),
        ("M.S/sums(of:)/A.swift:1:2", "closure #1 in S.sums(of:)", true),
        ("M.S/sums(of:)/A.swift:1:2", "T.sums(of:)", false),
        ("M.S/sums(of:)/A.swift:1:2", "sums(of:)", false),
        ("M.A/B/sums()/A.swift:1:2", "A.B.sums()", true),
        ("M.A/B/sums()/A.swift:1:2", "A.C.sums()", false),
        ("M.S/`a (b) / c`()/A.swift:1:2", "S.`a (b) / c`()", true),
        ("M.S/`a (b) / c`()/A.swift:1:2", "S.`a (b) / d`()", false),
        ("M.sums()/A.swift:1:2", "", false), ("", "sums()", false),
    ])
    func `a function belongs to a test by its whole name`(
        id: String, function: String, belongs: Bool
    ) {
        let test = TestDescription(id: id, name: "", fileID: "M/A.swift", path: "/p/A.swift")
        #expect(frame(function).isOf(test) == belongs)
        #expect(frame(function, file: nil).isOf(test) == belongs)
        #expect(!frame(function, file: "/p/B.swift").isOf(test))
    }

    @Test func `a stack is shown from its innermost frame to the test's function`() {
        let test = TestDescription(id: "M.sums()/A.swift:1:2", name: "", fileID: "M/A.swift")
        let frames = [
            frame("futex_wait", file: nil, image: "/lib/libc.so.6"), frame("helper()"),
            frame("swift_job_run", file: nil, image: "/lib/libswift_Concurrency.so"),
            frame("start_thread", file: nil, image: "/lib/libc.so.6"),
            frame("sums()", kind: .asyncResume),
            frame("thunk for @escaping ()", kind: .asyncResume),
            frame("static Runner._run()", file: nil, kind: .asyncResume),
        ]
        let shown = HangSearch.relevant(frames, upTo: test).map(\.title)
        #expect(shown == ["futex_wait", "helper()", "sums()"])
        #expect(HangSearch.relevant([frames[0]], upTo: test).count == 1)
        #expect(HangSearch.relevant([], upTo: nil).isEmpty)
    }

    @Test(
        arguments: [
            ("Old.testHang()", "$s9HangTests3OldC8testHangyyF", "HangTests.Old/testHang()"),
            ("Old.testHang()", nil, "Tests.Old/testHang()"),
            ("Old.testHang()", "$s999HangTests", "Tests.Old/testHang()"),
            ("testHang()", nil, nil), (nil, nil, nil),
        ] as [(String?, String?, String?)])
    func `XCTest's test is named by its method`(function: String?, raw: String?, id: String?) {
        let test = TestDescription(xctest: frame(function, raw: raw))
        #expect(test?.id == id)
        if let test { #expect(frame(function).isOf(test)) }
    }
}
