// Stalls as log records of OpenTelemetry, for teams that have a collector: OTLP/JSON, written by hand. Each stall is one
// record of the resource that its process is.
//
// Source: opentelemetry-proto 1.6, logs.proto and common.proto; the JSON mapping, in which 64-bit numbers are texts.

internal import Foundation
package import StallHTTP
package import StallModel

/// A stall, as far as a log record holds it.
package struct StallRecord: Hashable, Sendable {
    package var report: StallReport
    package var title: String
    package var signature: String
    /// The stack that it was blocked at for the longest time, a function a line.
    package var stack: String
    /// The app's function that it is attributed to; nil if there is none.
    package var function: String?

    package init(
        report: StallReport, title: String, signature: String, stack: String,
        function: String? = nil
    ) {
        self.report = report
        self.title = title
        self.signature = signature
        self.stack = stack
        self.function = function
    }
}

/// A body for `POST /v1/logs`.
package enum StallRecords {
    /// - Parameter observed: When the records were read.
    package static func document(_ records: [StallRecord], observed: UnixTime) throws -> [UInt8] {
        var order: [UniqueID] = []
        var byRun: [UniqueID: [StallRecord]] = [:]
        for record in records {
            let run = record.report.run.id
            if byRun[run] == nil { order.append(run) }
            byRun[run, default: []].append(record)
        }
        let logs = order.compactMap { byRun[$0] }.map { ResourceLogs($0, observed) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(["resourceLogs": logs]))
    }

    private struct ResourceLogs: Encodable {
        var resource: Resource
        var scopeLogs: [ScopeLogs]

        init(_ records: [StallRecord], _ observed: UnixTime) {
            let run = records[0].report.run
            resource = Resource(attributes: [
                Attribute("service.name", .text(run.app)),
                Attribute("service.version", .text(run.version)),
                Attribute("host.name", .text(run.host)),
                Attribute("process.pid", .number(Int64(run.pid))),
            ])
            resource.attributes += Self.place(of: records[0].report)
            scopeLogs = [
                ScopeLogs(
                    scope: Scope(name: "stallwatch", version: stallwatchVersion),
                    logRecords: records.map { LogRecord($0, observed) })
            ]
        }

        /// The pod and the container, as far as the app's environment and its runtime named them. Older agents wrote the
        /// container's number as its name.
        private static func place(of report: StallReport) -> [Attribute] {
            let names: [(EvidenceName, String)] = [
                (.pod, "k8s.pod.name"), (.namespace, "k8s.namespace.name"),
                (.container, "k8s.container.name"), (.containerID, "container.id"),
            ]
            let hasNumber = report.cause?.evidence(.containerID) != nil
            return names.compactMap { name, key in
                guard let value = report.cause?.evidence(name) else { return nil }
                guard name == .container, isContainerID(value) else {
                    return Attribute(key, .text(value))
                }
                return hasNumber ? nil : Attribute("container.id", .text(value))
            }
        }

        /// 64 digits, as every runtime has them, or the first twelve.
        private static func isContainerID(_ text: String) -> Bool {
            [12, 64].contains(text.utf8.count)
                && text.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
        }
    }
    private struct Resource: Encodable { var attributes: [Attribute] }
    private struct Scope: Encodable {
        var name: String
        var version: String
    }
    private struct ScopeLogs: Encodable {
        var scope: Scope
        var logRecords: [LogRecord]
    }

    private struct LogRecord: Encodable {
        var timeUnixNano: String
        var observedTimeUnixNano: String
        var severityNumber: Int
        var severityText: String
        var eventName = "stall"
        var body: [String: String]
        var attributes: [Attribute]
        /// In hexadecimal, other than bytes elsewhere in the JSON of protobuf. Nil ones are not written.
        var traceId: String?
        var spanId: String?

        init(_ record: StallRecord, _ observed: UnixTime) {
            let report = record.report
            let seconds = Double(report.duration.nanoseconds) / 1e9
            timeUnixNano = "\(report.start.microseconds)000"
            observedTimeUnixNano = "\(observed.microseconds)000"
            let isHang = report.state == .hang
            (severityNumber, severityText) = isHang ? (17, "ERROR") : (13, "WARN")
            let milliseconds = report.duration.nanoseconds / 1_000_000
            body = [
                "stringValue":
                    "\(report.loop) \(isHang ? "hung" : "stalled") for \(milliseconds) ms: \(record.title)"
            ]
            attributes = [
                Attribute("stall.id", .text(report.id.description)),
                Attribute("stall.duration", .real(seconds)),
                Attribute("stall.state", .text(report.state.word)),
                Attribute("stall.verdict", .text(report.verdict.word)),
                Attribute("stall.loop", .text(report.loop)),
                Attribute("stall.signature", .text(record.signature)),
            ]
            if let cause = report.cause {
                attributes.append(Attribute("stall.cause", .text(cause.cause.word)))
            }
            if let activity = report.activity {
                attributes.append(Attribute("stall.activity", .text(activity)))
            }
            if let function = record.function {
                attributes.append(Attribute("code.function.name", .text(function)))
            }
            if let thread = report.samples.first(where: { $0.thread.rawValue > 0 })?.thread {
                attributes.append(Attribute("thread.id", .number(Int64(thread.rawValue))))
            }
            let context = report.cause?.traceContext
            (traceId, spanId) = (context?.trace, context?.span)
            if !record.stack.isEmpty {
                attributes.append(Attribute("code.stacktrace", .text(record.stack)))
            }
        }
    }

    private struct Attribute: Encodable {
        var key: String
        var value: Value

        init(_ key: String, _ value: Value) { (self.key, self.value) = (key, value) }
    }

    private enum Value: Encodable {
        case text(String)
        case number(Int64)
        case real(Double)

        private enum CodingKeys: CodingKey { case stringValue, intValue, doubleValue }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            switch self {
            case .text(let text): try container.encode(text, forKey: .stringValue)
            case .number(let number): try container.encode("\(number)", forKey: .intValue)
            case .real(let number): try container.encode(number, forKey: .doubleValue)
            }
        }
    }
}

/// The step after the answer to log records.
///
/// **Source:** OTLP specification 1.6, "OTLP/HTTP response": only 429, 502, 503 and 504 are to be tried again.
package enum RecordStep: Hashable, Sendable {
    /// Taken, but for the number that was refused.
    case taken(refused: Int, reason: String)
    case halve
    /// Something of the request is not taken, and the same request would not be the next time: send its records apart,
    /// to find which of them it is.
    ///
    /// - Parameter isOfRecords: A receiver says this of a request only. Otherwise it may be the state that it is in.
    case divide(reason: String, isOfRecords: Bool)
    case wait(reason: String, seconds: Int?)
    case stop(reason: String)

    package init(_ reply: HTTPReply, count: Int) {
        guard case .answer(let answer) = reply else {
            switch reply {
            case .failed(let reason), .timedOut(let reason):
                self = .wait(reason: reason, seconds: nil)
            case .refused(let reason): self = .stop(reason: reason)
            case .answer: self = .stop(reason: "no answer")
            }
            return
        }
        switch answer.status {
        case 200, 202, 204:
            guard let partial = RecordsAnswer(answer) else {
                let type = answer.fields["content-type"].map { " (\($0.prefix(80)))" } ?? ""
                self = .wait(
                    reason:
                        "answered \(answer.status) as no receiver of OTLP does\(type)\(answer.words)",
                    seconds: nil)
                return
            }
            self = .taken(
                refused: min(partial.refusedCount, count),
                reason: String(partial.message.prefix(200)))
        case 400, 422:
            self = .divide(reason: "answered \(answer.status)\(answer.words)", isOfRecords: true)
        case 500:
            self = .divide(reason: "answered \(answer.status)\(answer.words)", isOfRecords: false)
        case 413: self = .halve
        case 429, 502, 503, 504:
            self = .wait(reason: "answered \(answer.status)", seconds: answer.retryAfter)
        case 300...399:
            self = .stop(reason: "redirects, which is not followed: give that address itself")
        default: self = .stop(reason: "answered \(answer.status)\(answer.words)")
        }
    }
}
