import StallModel
import StallQuery
import Testing

@testable import StallFormats

/// Goal: an event of Sentry is one report, of its own time and of the thread that it names.
@Suite struct ForeignEventsTests {
    private static func stack(_ function: String) -> String {
        #"{"frames": [{"function": "main"}, {"function": "\#(function)"}]}"#
    }

    private static func event(
        _ id: String = "a", time: String = "1795166071", mechanism: String = "AppHang",
        value: String = "App hanging for at least 2000 ms.", exception: String = "",
        threads: String = #"[{"id": 1, "main": true, "stacktrace": \#(stack("wait"))}]"#
    ) -> String {
        #"{"event_id": "\#(id)", "timestamp": \#(time), "platform": "cocoa", "exception": {"values": [{"type": "\#(mechanism)", "#
            + #""value": "\#(value)", "mechanism": {"type": "\#(mechanism)"}\#(exception)}]}, "threads": {"values": \#(threads)}}"#
            + "\n"
    }

    private static func innermost(_ report: StallReport?) -> String? {
        report?.samples.first?.frames.first?.function
    }

    @Test func `events of one second and one stack are as many reports, each once`() {
        let text = Self.event("a") + Self.event("b") + Self.event("a")
        #expect(Set(readWhole(text).map(\.id)).count == 2)
    }

    @Test func `an event's identifier has several spellings`() {
        let text = ["0a1b2c3d4e5f", "0A1B2C3D4E5F", "0a1b-2c3d-4e5f"].map { Self.event($0) }
            .joined()
        #expect(Set(readWhole(text).map(\.id)).count == 1)
    }

    @Test(arguments: [
        #""2026-11-20T09:14:31""#, #""2026-11-20T09:14:31.000000""#, #""2026-11-20T09:14:31Z""#,
        #""2026-11-20T10:14:31+01:00""#, "1795166071",
    ]) func `a time without a zone is in UTC`(time: String) {
        // It ended then.
        #expect(
            readWhole(Self.event(time: time)).map(\.start) == [
                UnixTime(microseconds: 1_795_166_069_000_000)
            ])
    }

    @Test func `hangs that MetricKit reported are stalls of their duration`() {
        let report = readWhole(
            Self.event(
                mechanism: "mx_hang_diagnostic", value: "MXHangDiagnostic hangDuration:6.6 sec")
        ).first
        #expect(report?.verdict == .stalled && report?.duration == .milliseconds(6600))
    }

    @Test func `the thread that an exception names is the stuck one, whatever its number`() {
        let threads =
            #"[{"id": 5, "stacktrace": \#(Self.stack("other"))}, {"id": 8372224000, "name": "x", "stacktrace": "#
            + #"\#(Self.stack("wait"))}]"#
        let report = readWhole(
            Self.event(exception: #", "thread_id": 8372224000"#, threads: threads)
        ).first
        #expect(report?.loop == "x" && Self.innermost(report) == "wait")
    }

    @Test func `an exception's own stack is the stuck thread's`() {
        let report = readWhole(
            Self.event(
                exception: #", "stacktrace": \#(Self.stack("read"))"#,
                threads: #"[{"id": 7, "crashed": true, "stacktrace": \#(Self.stack("poll"))}]"#)
        ).first
        #expect(Self.innermost(report) == "read")
    }

    /// An iPhone's app has some 400 images.
    @Test(arguments: [700, 20_000]) func `an event's stacks may be far behind its beginning`(
        count: Int
    ) {
        let images = (0..<count).map {
            #"{"type": "macho", "image_addr": "0x\#(String($0 + 4096, radix: 16))000", "code_file": "/usr/lib/lib\#($0).dylib"}"#
        }.joined(separator: ", ")
        let event = Self.event().replacing(
            #""exception""#, with: #""debug_meta": {"images": [\#(images)]}, "exception""#,
            maxReplacements: 1)
        #expect(readWhole(event).map { Self.innermost($0) } == ["wait"])
    }
}
