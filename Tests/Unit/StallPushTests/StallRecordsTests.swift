import Foundation
import StallHTTP
import StallModel
import StallPush
import TestSupport
import Testing

/// Goal: stalls are the log records that an OpenTelemetry collector reads, and its answers are understood.
/// Method: the document against the one that the official protobuf reads (facts/fleet.md), and every kind of answer.
@Suite struct StallRecordsTests {
    @Test func `a stall is a log record of its process`() throws {
        var generator = ReportGenerator(seed: 3)
        var report = generator.report(state: .ended)
        report.duration = .milliseconds(1840)
        report.cause = StallCause(.lock, confidence: 0.98, shares: [], evidence: [])
        let record = StallRecord(
            report: report, title: "waitForWorker()", signature: "00ff", stack: "a\nb")
        let bytes = try StallRecords.document(
            [record, record], observed: UnixTime(microseconds: 1_700_000_000_000_001))
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
        let logs = try #require(object["resourceLogs"] as? [[String: Any]])
        #expect(logs.count == 1)
        let text = String(decoding: bytes, as: UTF8.self)
        for part in [
            #"{"key":"service.name","value":{"stringValue":"photos"}}"#,
            #"{"key":"process.pid","value":{"intValue":"5"}}"#,
            #""scope":{"name":"stallwatch","version":""#,
            #""observedTimeUnixNano":"1700000000000001000""#,
            #""severityNumber":13,"severityText":"WARN""#, #""eventName":"stall""#,
            #"{"key":"stall.duration","value":{"doubleValue":1.84}}"#,
            #"{"key":"stall.cause","value":{"stringValue":"lock"}}"#,
            #"{"key":"code.stacktrace","value":{"stringValue":"a\nb"}}"#,
            #"stalled for 1840 ms: waitForWorker()"}"#,
        ] { #expect(text.contains(part), "\(part) in \(text)") }
    }

    /// Goal: a trace's other half finds its stalls. Source: the JSON mapping of OTLP, which has these ids in hexadecimal.
    @Test(arguments: [
        (
            ["span": "GET /, a, trace 4BF92F3577B34DA6A3CE929D0E0E4736, span 00f067aa0ba902b7, for 2 s"],
            "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        ),
        (
            ["request": "GET /, trace 4bf92f3577b34da6a3ce929d0e0e4736, for 2 s"],
            "4bf92f3577b34da6a3ce929d0e0e4736", nil
        ),
        (["span": "query, trace a3ce929d0e0e4736, for 2 s"], "0000000000000000a3ce929d0e0e4736", nil),
        (["open span": "GET /, trace 4bf92f3577b34da6a3ce929d0e0e4736, for 2 s"], nil, nil),
        (["span": "GET /, trace 00000000000000000000000000000000, for 2 s"], nil, nil),
        (["span": "GET /, trace none, span 12, for 2 s"], nil, nil),
    ] as [([String: String], String?, String?)])
    func `a record has the ids of its request's trace`(
        evidence: [String: String], trace: String?, span: String?
    ) throws {
        var generator = ReportGenerator(seed: 3)
        var report = generator.report(state: .ended)
        while report.samples.isEmpty { report = generator.report(state: .ended) }
        report.samples[0].thread = ThreadID(rawValue: 4711)
        report.cause = StallCause(
            .lock, confidence: 1, shares: [],
            evidence: evidence.map { CauseEvidence($0.key, $0.value) } + [
                CauseEvidence("pod", "shop-7d9"), CauseEvidence("container", String(repeating: "a1", count: 32)),
            ])
        let bytes = try StallRecords.document(
            [StallRecord(report: report, title: "", signature: "0", stack: "", function: "save(_:)")],
            observed: UnixTime(microseconds: 1))
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("traceId") == (trace != nil) && text.contains("spanId") == (span != nil))
        if let trace { #expect(text.contains(#""traceId":"\#(trace)""#), "\(text)") }
        if let span { #expect(text.contains(#""spanId":"\#(span)""#), "\(text)") }
        for part in [
            #"{"key":"code.function.name","value":{"stringValue":"save(_:)"}}"#,
            #"{"key":"k8s.pod.name","value":{"stringValue":"shop-7d9"}}"#,
            #"{"key":"container.id","value":{"stringValue":"a1a1"#, #"{"key":"thread.id","value":{"intValue":"4711"}}"#,
        ] { #expect(text.contains(part), "\(part) in \(text)") }
    }

    static func answer(_ status: Int, _ text: String) -> HTTPReply {
        .answer(HTTPAnswer(status: status, fields: ["retry-after": "3"], body: Array(text.utf8)))
    }

    @Test(
        arguments: [
            (answer(200, ""), .taken(refused: 0, reason: "")),
            (answer(200, "{}"), .taken(refused: 0, reason: "")),
            (
                answer(200, #"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"old"}}"#),
                .taken(refused: 2, reason: "old")
            ),
            (
                answer(200, #"{"partialSuccess":{"rejectedLogRecords":99}}"#),
                .taken(refused: 5, reason: "")
            ),
            (answer(413, ""), .halve),
            (answer(429, ""), .wait(reason: "answered 429", seconds: 3)),
            (answer(503, ""), .wait(reason: "answered 503", seconds: 3)),
            (answer(500, "no"), .stop(reason: "answered 500: no")),
            (answer(400, "no"), .stop(reason: "answered 400: no")),
            (
                answer(302, ""),
                .stop(reason: "redirects, which is not followed: give that address itself")
            ),
            (.failed(reason: "reset"), .wait(reason: "reset", seconds: nil)),
            (.refused(reason: "tls"), .stop(reason: "tls")),
        ] as [(HTTPReply, RecordStep)])
    func `an answer says what becomes of the records`(reply: HTTPReply, step: RecordStep) {
        #expect(RecordStep(reply, count: 5) == step)
    }
}
