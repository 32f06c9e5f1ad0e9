// The part that the rows of a process share. Each row has all of it, so that none needs another one to have come
// before.

internal import Foundation
internal import StallModel

/// The process that a row is of.
struct ProcessLine: Decodable {
    var app: String
    var version: String
    var buildId: String?
    var host: String
    var pid: Int32
    var os: String?
    var device: String?
    var run: ReportLine.RunLine

    enum CodingKeys: String, CodingKey {
        case app, version, host, pid, os, device, run
        case buildId = "build_id"
    }

    func process() throws -> ProcessRun {
        ProcessRun(
            id: try ReportLine.identifier(run.id, "run.id"), app: app, version: version,
            buildID: try ReportLine.buildID(buildId, "build_id"), host: host, pid: pid,
            bootID: run.bootId, startTicks: run.startTicks,
            started: try ReportLine.time(run.started, "run.started"), os: os, device: device)
    }
}

/// The store that a row is of, and the row's revision there.
struct OriginLine: Decodable {
    var store: String
    var revision: Int64

    func origin() throws -> (store: UniqueID, revision: Int64) {
        guard revision >= 0 else { throw LineProblem("has a revision out of range") }
        return (try ReportLine.identifier(store, "store"), revision)
    }
}

/// The loop that a row is of.
struct LoopOfLine: Decodable {
    var loop: String
    var thresholdMs: ExactMilliseconds

    enum CodingKeys: String, CodingKey {
        case loop
        case thresholdMs = "threshold_ms"
    }
}

/// Milliseconds to the nanosecond, of at most ten years. A double has no room for the nanoseconds of a month.
struct ExactMilliseconds: Decodable, JSONWritable {
    var nanoseconds: Int64
    var duration: Duration { .nanoseconds(nanoseconds) }

    init(_ duration: Duration) { nanoseconds = duration.nanoseconds }

    func write(to text: inout JSONText) {
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
        whole.write(to: &text)
        guard rest > 0 else { return }
        var digits = Array(String(1_000_000 + rest).utf8.dropFirst())
        while digits.last == UInt8(ascii: "0") { digits.removeLast() }
        text.syntax(".")
        text.raw(digits)
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let milliseconds = try container.decode(Double.self)
        guard milliseconds >= 0, milliseconds <= 3.2e11 else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "a duration out of range")
        }
        nanoseconds = Int64((milliseconds * 1e6).rounded())
        if milliseconds > 1e9 {
            nanoseconds = Self.exact(try container.decode(Decimal.self)) ?? nanoseconds
        }
    }

    private static func exact(_ milliseconds: Decimal) -> Int64? {
        let parts = "\(milliseconds)".split(separator: ".")
        guard (1...2).contains(parts.count), let whole = Int64(parts[0]) else { return nil }
        guard parts.count == 2 else { return whole * 1_000_000 }
        let digits = parts[1].prefix(6)
        guard let rest = Int64(digits), rest >= 0 else { return nil }
        return whole * 1_000_000 + (digits.count..<6).reduce(rest) { rest, _ in rest * 10 }
    }
}
