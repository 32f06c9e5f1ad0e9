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
    @Test(
        arguments: [
            (
                [
                    "span":
                        "GET /, a, trace 4BF92F3577B34DA6A3CE929D0E0E4736, span 00f067aa0ba902b7, for 2 s"
                ],
                "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
            ),
            (
                ["request": "GET /, trace 4bf92f3577b34da6a3ce929d0e0e4736, for 2 s"],
                "4bf92f3577b34da6a3ce929d0e0e4736", nil
            ),
            (
                ["span": "query, trace a3ce929d0e0e4736, for 2 s"],
                "0000000000000000a3ce929d0e0e4736", nil
            ),
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
                CauseEvidence("pod", "shop-7d9"),
                CauseEvidence("container", String(repeating: "a1", count: 32)),
            ])
        let bytes = try StallRecords.document(
            [
                StallRecord(
                    report: report, title: "", signature: "0", stack: "", function: "save(_:)")
            ],
            observed: UnixTime(microseconds: 1))
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(
            text.contains("traceId") == (trace != nil) && text.contains("spanId") == (span != nil))
        if let trace { #expect(text.contains(#""traceId":"\#(trace)""#), "\(text)") }
        if let span { #expect(text.contains(#""spanId":"\#(span)""#), "\(text)") }
        for part in [
            #"{"key":"code.function.name","value":{"stringValue":"save(_:)"}}"#,
            #"{"key":"k8s.pod.name","value":{"stringValue":"shop-7d9"}}"#,
            #"{"key":"container.id","value":{"stringValue":"a1a1"#,
            #"{"key":"thread.id","value":{"intValue":"4711"}}"#,
        ] { #expect(text.contains(part), "\(part) in \(text)") }
    }

    /// Goal: a resource has each attribute once, and a name is never taken for a number.
    @Test(
        arguments: [
            (["container": "abcdef012345", "container id": "abcdef0123450"], nil, "abcdef0123450"),
            (
                [
                    "container": "abcdef012345",
                    "container id": "abcdef012345" + String(repeating: "0", count: 52),
                ], nil, "abcdef012345" + String(repeating: "0", count: 52)
            ),
            (["container": "abcdef012345"], nil, "abcdef012345"),
            (["container": "shop"], "shop", nil),
            (["container": "shop", "container id": "abcdef012345"], "shop", "abcdef012345"),
        ] as [([String: String], String?, String?)])
    func `a container has one number and its name`(
        evidence: [String: String], name: String?, number: String?
    ) throws {
        var generator = ReportGenerator(seed: 3)
        var report = generator.report(state: .ended)
        let all = evidence.merging(["pod": "deadbeefcafe", "namespace": "cafecafecafe"]) { $1 }
        report.cause = StallCause(
            .lock, confidence: 1, shares: [], evidence: all.map { CauseEvidence($0.key, $0.value) })
        let bytes = try StallRecords.document(
            [StallRecord(report: report, title: "", signature: "0", stack: "")],
            observed: UnixTime(microseconds: 1))
        let text = String(decoding: bytes, as: UTF8.self)
        func values(_ key: String) -> [String] {
            text.components(separatedBy: "{\"key\":\"\(key)\",\"value\":{\"stringValue\":\"")
                .dropFirst()
                .map { String($0.prefix { $0 != "\"" }) }
        }
        #expect(values("k8s.pod.name") == ["deadbeefcafe"], "\(text)")
        #expect(values("k8s.namespace.name") == ["cafecafecafe"], "\(text)")
        #expect(values("k8s.container.name") == (name.map { [$0] } ?? []), "\(text)")
        #expect(values("container.id") == (number.map { [$0] } ?? []), "\(text)")
    }

    static func answer(
        _ status: Int, _ text: String, _ type: String? = "application/json",
        _ fields: [String: String] = [:]
    ) -> HTTPReply {
        var all = fields.merging(["retry-after": "3"]) { $1 }
        all["content-type"] = type
        return .answer(HTTPAnswer(status: status, fields: all, body: Array(text.utf8)))
    }

    /// Goal: records that no receiver took are not taken for sent. Method: answers of 200 by programs between a sender
    /// and a receiver: a login page, a proxy, a receiver of gRPC.
    @Test(
        arguments: [
            (answer(200, "", nil), true), (answer(200, "", "application/x-protobuf"), true),
            (answer(200, "{}", nil), true), (answer(200, " { }\r\n", "text/plain"), true),
            (answer(202, "{}"), true), (answer(204, "", nil), true),
            (answer(200, #"{"partialSuccess":{}}"#), true),
            (answer(200, #"{"partialSuccess":null}"#), true),
            (
                answer(200, #"{"partialSuccess":{},"newer":1}"#, "application/json; charset=utf-8"),
                true
            ),
            (
                answer(200, #"{"partialSuccess":{"rejectedLogRecords":"0","errorMessage":""}}"#),
                true
            ),
            (answer(200, "<html>Sign in</html>", "text/html"), false),
            (answer(200, "<html>Sign in</html>"), false), (answer(200, "ok", "text/plain"), false),
            (answer(200, "", "application/grpc"), false),
            (answer(200, "", "application/grpc+proto", ["grpc-status": "0"]), false),
            (answer(200, "", nil, ["grpc-status": "14"]), false),
            (answer(200, "", "text/html"), false),
            (answer(200, #"{"partialSuccess":{}}"#, "text/html"), false),
            (answer(200, #"{"partialSuccess":{}}"#, nil), false),
            (answer(200, #"{"error":"sign in"}"#), false), (answer(200, "[]"), false),
            (answer(200, "null"), false),
            (answer(200, #"{"partialSuccess":{"rejectedLogRecords":3.5}}"#), false),
            (answer(200, #"{"partialSuccess":{"rejectedLogRecords":"x"}}"#), false),
            (answer(200, #"{"partialSuccess":{"rejectedLogRecords":-1}}"#), false),
            (answer(200, #"{"partialSuccess":{"rejectedLogRecords":1e300}}"#), false),
            (answer(200, #"{"partialSuccess":7}"#), false),
            (answer(200, #"{"partialSuccess":"#), false),
        ] as [(HTTPReply, Bool)])
    func `only a receiver's answer says that records are taken`(reply: HTTPReply, isTaken: Bool) {
        switch RecordStep(reply, count: 5) {
        case .taken(let refused, _): #expect(isTaken && refused == 0)
        case .wait(let reason, let seconds):
            #expect(!isTaken && seconds == nil)
            #expect(reason.hasPrefix("answered 200 as no receiver of OTLP does"), "\(reason)")
        default: Issue.record("\(RecordStep(reply, count: 5))")
        }
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
            (
                answer(
                    200, #"{"partial_success":{"rejected_log_records":"2","error_message":"old"}}"#),
                .taken(refused: 2, reason: "old")
            ),
            (answer(413, ""), .halve),
            (answer(429, ""), .wait(reason: "answered 429", seconds: 3)),
            (answer(503, ""), .wait(reason: "answered 503", seconds: 3)),
            (answer(500, "no"), .divide(reason: "answered 500: no", isOfRecords: false)),
            (answer(400, "no"), .divide(reason: "answered 400: no", isOfRecords: true)),
            (answer(422, "no"), .divide(reason: "answered 422: no", isOfRecords: true)),
            (answer(401, "no"), .stop(reason: "answered 401: no")),
            (answer(404, "no"), .stop(reason: "answered 404: no")),
            (answer(501, "no"), .stop(reason: "answered 501: no")),
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
