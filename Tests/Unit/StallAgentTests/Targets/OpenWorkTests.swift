import CLinux
import Logging
import StallModel
import Testing

@testable import StallAgent

/// Goal: a report lists at most eight open requests and spans, its own task's first, then the oldest; nothing that has
/// ended, and nothing that belongs to another loop.
/// Method: tasks and threads of the test begin and end spans.
@Suite(.serialized) struct OpenWorkTests {
    func begin(_ name: String, trace: String = "") -> UInt64 {
        var (name, trace) = (name, trace)
        return name.withUTF8 { name in
            trace.withUTF8 { trace in
                name.withMemoryRebound(to: CChar.self) { name in
                    trace.withMemoryRebound(to: CChar.self) { trace in
                        stall_span_begin(
                            name.baseAddress, UInt32(name.count), trace.baseAddress,
                            UInt32(trace.count), "00f067aa0ba902b7", 16)
                    }
                }
            }
        }
    }

    func open(thread: ThreadID? = nil, task: UInt64 = 0) -> [OpenWork] {
        let buffer = OpenWorkBuffer()
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        return buffer.copy(thread: thread, task: task).bindMemory(to: stall_open_work.self).map {
            OpenWork($0, at: now, stalledTask: task)
        }
    }

    /// The calling task's own: other tests may have open work.
    func own() -> [OpenWork] { open(task: stall_task_current()).filter(\.isOwn) }

    @Test func `spans are listed from their begin to their end, the oldest first`() async {
        await Task.detached {
            let spans = (0..<3).map { begin("span \($0)", trace: "trace \($0)") }
            #expect(own().map(\.name) == ["span 0", "span 1", "span 2"])
            #expect(own().map(\.trace) == ["trace 0", "trace 1", "trace 2"])
            stall_span_end(spans[1])
            stall_span_end(spans[1])
            #expect(own().map(\.name) == ["span 0", "span 2"])
            let again = begin("span 3")
            stall_span_end(spans[1])
            #expect(own().map(\.name) == ["span 0", "span 2", "span 3"])
            for span in [spans[0], spans[2], again] { stall_span_end(span) }
            #expect(own().isEmpty)
        }.value
    }

    @Test func `the stalled task's own come first, and eight are shown`() async {
        await Task.detached {
            let spans = (0..<20).map { begin("span \($0)") }
            let own = await Task.detached { (begin("span own"), stall_task_current()) }.value
            let listed = open(task: own.1)
            #expect(listed.count == 8 && listed[0].name == "span own")
            #expect(listed.dropFirst().allSatisfy { !$0.isOwn } && listed[0].isOwn)
            #expect(zip(listed.dropFirst(), listed.dropFirst(2)).allSatisfy { $0.age >= $1.age })
            for span in spans + [own.0] { stall_span_end(span) }
        }.value
    }

    @Test func `a loop's report lists what its own thread began`() async {
        let here = await Task.detached { () -> [OpenWork] in
            let span = begin("span here")
            defer { stall_span_end(span) }
            let thread = ThreadID(rawValue: stall_gettid())
            #expect(open(thread: ThreadID(rawValue: thread.rawValue + 100_000)).isEmpty)
            return open(thread: thread, task: stall_task_current()).filter(\.isOwn)
        }.value
        #expect(here.map(\.name) == ["span here"])
    }

    @Test func `a span has its last name, also after its end, until another one has its place`()
        async
    {
        await Task.detached {
            let span = begin("HTTP GET route not found")
            let listed = own()
            stall_span_rename(span, "GET /orders/{id}", 16)
            #expect(own().map(\.name) == ["GET /orders/{id}"])
            #expect(own().map(\.span) == ["00f067aa0ba902b7"])
            #expect(listed.map(\.renamed.name) == ["GET /orders/{id}"])
            stall_span_end(span)
            stall_span_rename(span, "late", 4)
            #expect(listed.map(\.renamed.name) == ["GET /orders/{id}"])
            for _ in 0..<1100 { stall_span_end(begin("another")) }
            #expect(listed.map(\.renamed.name) == ["HTTP GET route not found"])
        }.value
    }

    /// Goal: another reference to a span, by the context that it is in, has its entry.
    @Test func `an open span is found by its ids`() {
        let (trace, id) = ("5cf92f3577b34da6a3ce929d0e0e4736", "11f067aa0ba902b7")
        func find(_ trace: String, _ id: String) -> UInt64 {
            stall_span_find(trace, UInt32(trace.utf8.count), id, UInt32(id.utf8.count))
        }
        #expect(find(trace, id) == 0)
        let span = stall_span_begin("GET", 3, trace, 32, id, 16)
        let other = stall_span_begin("GET", 3, trace, 32, "22f067aa0ba902b7", 16)
        let nameless = stall_span_begin("GET", 3, "", 0, "", 0)
        #expect(span != 0 && find(trace, id) == span && find(trace, "22f067aa0ba902b7") == other)
        #expect(find("", "") == 0 && find(trace, "") == 0 && find("", id) == 0)
        #expect(find(String(trace.dropLast()), id) == 0 && find(trace, String(id.dropLast())) == 0)
        #expect(find(trace + "0", id) == 0 && find(trace, String(repeating: "1", count: 4000)) == 0)
        stall_span_end(span)
        #expect(find(trace, id) == 0 && find(trace, "22f067aa0ba902b7") == other)
        for open in [other, nameless] { stall_span_end(open) }
    }

    /// Method: names of one letter each, which a torn one is not.
    @Test func `a name is never half of one and half of another`() async {
        let span = begin(String(repeating: "a", count: 60))
        let writer = Task.detached {
            for round in 0..<20_000 {
                stall_span_rename(
                    span, String(repeating: round % 2 == 0 ? "b" : "a", count: 60), 60)
            }
        }
        var work = OpenWork(name: "c", age: .zero, isSpan: true, isOwn: true)
        work.number = span
        for _ in 0..<20_000 { #expect(Set(work.renamed.name).count == 1) }
        await writer.value
        stall_span_end(span)
    }

    @Test func `a full table drops spans and counts them`() {
        let before = stall_span_dropped()
        let spans = (0..<1200).map { begin("span \($0)") }
        #expect(stall_span_dropped() - before >= 176 && spans.contains(0))
        for span in spans { stall_span_end(span) }
        let span = begin("span")
        #expect(span != 0)
        stall_span_end(span)
    }

    @Test func `only what an id names is not called open`() {
        let work = OpenWork(
            name: "GET /orders", trace: "4bf9", age: .milliseconds(1234), isSpan: true, isOwn: false
        )
        #expect(work.evidence == CauseEvidence("open span", "GET /orders, trace 4bf9, for 1.23 s"))
        var own = work
        (own.isOwn, own.trace, own.age) = (true, "", .seconds(75))
        #expect(own.evidence == CauseEvidence("span", "GET /orders, for 75 s"))
        (own.trace, own.span) = ("4bf9", "00f0")
        #expect(
            own.evidence == CauseEvidence("span", "GET /orders, trace 4bf9, span 00f0, for 75 s"))
        own.isSpan = false
        #expect(own.evidence.name == "request")
    }

    @Test func `a metadata provider's trace id is found by its name`() {
        for key in ["trace-id", "trace_id", "traceID"] {
            #expect(([key: "4bf9", "span-id": "1"] as Logger.Metadata).traceID == "4bf9")
        }
        #expect((["request-id": "1"] as Logger.Metadata).traceID == nil)
    }
}
