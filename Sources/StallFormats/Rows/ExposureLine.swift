// Lines of watched time (`stallctl.exposure/1`), of loops that have some (`stallctl.loop/1`), and of stalls without a
// report (`stallctl.suppression/1`).

internal import StallModel
internal import StallQuery

/// A stretch of a loop's watched time.
struct ExposureLine: RowLine {
    var origin: OriginLine
    var process: ProcessLine
    var loop: LoopOfLine
    var part: Part

    struct Part: Decodable {
        var start: String
        var watchedMs: ExactMilliseconds
        var busyMs: ExactMilliseconds
        var readyDelayMs: ExactMilliseconds
        var microStalls: Int
        var microStallMs: ExactMilliseconds
        /// Pairs of a bucket and its count.
        var lengths: [[Int]]

        enum CodingKeys: String, CodingKey {
            case start, lengths
            case watchedMs = "watched_ms"
            case busyMs = "busy_ms"
            case readyDelayMs = "ready_delay_ms"
            case microStalls = "micro_stalls"
            case microStallMs = "micro_stall_ms"
        }
    }

    init(from decoder: any Decoder) throws {
        origin = try OriginLine(from: decoder)
        process = try ProcessLine(from: decoder)
        loop = try LoopOfLine(from: decoder)
        part = try Part(from: decoder)
    }

    func row() throws -> PortableRow {
        let (store, revision) = try origin.origin()
        return .exposure(
            PortableExposure(
                store: store, revision: revision,
                exposure: LoopExposure(
                    run: try process.process(), loop: loop.loop,
                    threshold: loop.thresholdMs.duration,
                    start: try ReportLine.time(part.start, "start"),
                    watched: part.watchedMs.duration, busy: part.busyMs.duration,
                    readyDelay: part.readyDelayMs.duration, microStallCount: part.microStalls,
                    microStallTime: part.microStallMs.duration, lengths: try lengths())))
    }

    private func lengths() throws -> LengthHistogram {
        var counts: [Int: Int] = [:]
        for pair in part.lengths {
            guard pair.count == 2, 0..<LengthHistogram.bucketCount ~= pair[0],
                1...LengthHistogram.largestCount ~= pair[1],
                counts.updateValue(pair[1], forKey: pair[0]) == nil
            else { throw LineProblem("has no pairs of buckets and counts in lengths") }
        }
        return LengthHistogram(counts: counts)
    }
}

/// A loop whose watched time was recorded.
struct WatchedLoopLine: RowLine {
    var store: String
    var process: ProcessLine
    var loop: LoopOfLine

    enum CodingKeys: CodingKey { case store }

    init(from decoder: any Decoder) throws {
        store = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .store)
        process = try ProcessLine(from: decoder)
        loop = try LoopOfLine(from: decoder)
    }

    func row() throws -> PortableRow {
        .watchedLoop(
            PortableLoop(
                store: try ReportLine.identifier(store, "store"), run: try process.process(),
                loop: loop.loop, threshold: loop.thresholdMs.duration))
    }
}

/// Stalls of one location in the app's code that have no report.
struct SuppressionLine: RowLine {
    var origin: OriginLine
    var process: ProcessLine
    var loop: LoopOfLine
    var part: Part

    struct Part: Decodable {
        /// Sixteen hexadecimal digits: a hash.
        var place: String
        var reason: String
        var count: Int
        var totalMs: ExactMilliseconds

        enum CodingKeys: String, CodingKey {
            case place, reason, count
            case totalMs = "total_ms"
        }
    }

    init(from decoder: any Decoder) throws {
        origin = try OriginLine(from: decoder)
        process = try ProcessLine(from: decoder)
        loop = try LoopOfLine(from: decoder)
        part = try Part(from: decoder)
    }

    func row() throws -> PortableRow {
        let (store, revision) = try origin.origin()
        guard part.place.utf8.count == 16, let place = UInt64(part.place, radix: 16) else {
            throw LineProblem("has no sixteen hexadecimal digits in place")
        }
        guard
            let reason = try ReportLine.word(part.reason, SuppressionReason.words, "reason")
        else { throw LineProblem("lacks reason") }
        return .suppression(
            PortableSuppression(
                store: store, revision: revision, threshold: loop.thresholdMs.duration,
                stalls: SuppressedStalls(
                    run: try process.process(), loop: loop.loop,
                    place: Int64(bitPattern: place), reason: reason, count: part.count,
                    total: part.totalMs.duration)))
    }
}

extension SuppressionReason {
    static let words = byWord
}

extension PortableExposure: JSONWritable {
    func write(to text: inout JSONText) throws {
        let (run, part) = (exposure.run, exposure)
        text.beginObject()
        try text.member("app", run.app)
        try text.member("build_id", run.buildID?.description)
        try text.member("busy_ms", ExactMilliseconds(part.busy))
        try text.member("device", run.device)
        try text.member("host", run.host)
        let lengths = part.lengths.counts.sorted { $0.key < $1.key }
        try text.member("lengths", lengths.map { [$0.key, $0.value] })
        try text.member("loop", part.loop)
        try text.member("micro_stall_ms", ExactMilliseconds(part.microStallTime))
        try text.member("micro_stalls", part.microStallCount)
        try text.member("os", run.os)
        try text.member("pid", run.pid)
        try text.member("ready_delay_ms", ExactMilliseconds(part.readyDelay))
        try text.member("revision", revision)
        try text.member("run", run)
        try text.member("schema", "stallctl.exposure/1")
        try text.member("start", part.start.rfc3339)
        try text.member("store", store.description)
        try text.member("threshold_ms", ExactMilliseconds(part.threshold))
        try text.member("version", run.version)
        try text.member("watched_ms", ExactMilliseconds(part.watched))
        text.endObject()
    }
}

extension PortableLoop: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("app", run.app)
        try text.member("build_id", run.buildID?.description)
        try text.member("device", run.device)
        try text.member("host", run.host)
        try text.member("loop", loop)
        try text.member("os", run.os)
        try text.member("pid", run.pid)
        try text.member("run", run)
        try text.member("schema", "stallctl.loop/1")
        try text.member("store", store.description)
        try text.member("threshold_ms", ExactMilliseconds(threshold))
        try text.member("version", run.version)
        text.endObject()
    }
}

extension PortableSuppression: JSONWritable {
    func write(to text: inout JSONText) throws {
        let run = stalls.run
        text.beginObject()
        try text.member("app", run.app)
        try text.member("build_id", run.buildID?.description)
        try text.member("count", stalls.count)
        try text.member("device", run.device)
        try text.member("host", run.host)
        try text.member("loop", stalls.loop)
        try text.member("os", run.os)
        try text.member("pid", run.pid)
        try text.member("place", hexadecimal(stalls.place))
        try text.member("reason", stalls.reason.word)
        try text.member("revision", revision)
        try text.member("run", run)
        try text.member("schema", "stallctl.suppression/1")
        try text.member("store", store.description)
        try text.member("threshold_ms", ExactMilliseconds(threshold))
        try text.member("total_ms", ExactMilliseconds(stalls.total))
        try text.member("version", run.version)
        text.endObject()
    }
}
