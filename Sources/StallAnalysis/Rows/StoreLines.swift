// Lines of a store's rows besides reports, for another store: keys in alphabetical order, as everywhere. Their reader
// is StallFormats/Rows.

import StallModel
package import StallQuery

/// Writes the rows of a store as lines.
package struct StoreLines {
    private var text: JSONText
    private let quoted: (String) throws -> String

    /// - Parameter quoted: A text as JSON, for texts that need escapes or are not ASCII.
    package init(quoted: @escaping (String) throws -> String) {
        self.quoted = quoted
        text = JSONText(quoted: quoted)
    }

    /// The row as one line with its line end; nothing for one of an unknown kind.
    package mutating func line(_ row: PortableRow) throws -> [UInt8] {
        text.removeAll()
        switch row {
        case .report(let row):
            return try ReportRow(row.report, images: row.images, origin: row.origin)
                .line(quoted: quoted)
        case .exposure(let row): try row.write(to: &text)
        case .suppression(let row): try row.write(to: &text)
        case .loss(let row): try row.write(to: &text)
        case .run(let row): try row.write(to: &text)
        case .location(let row): try row.write(to: &text)
        case .watchedLoop(let row): try row.write(to: &text)
        case .unknown: return []
        }
        text.syntax("\n")
        return text.bytes
    }
}

/// Milliseconds to the nanosecond, also where a double has no room for them.
private struct ExactMilliseconds: JSONWritable {
    var nanoseconds: Int64

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
}

extension PortableExposure: JSONWritable {
    func write(to text: inout JSONText) throws {
        let (run, part) = (exposure.run, exposure)
        text.beginObject()
        try text.member("app", run.app)
        try text.member("build_id", run.buildID?.description)
        try text.member("busy_ms", ExactMilliseconds(part.busy))
        try text.member("host", run.host)
        let lengths = part.lengths.counts.sorted { $0.key < $1.key }
        try text.member("lengths", lengths.map { [$0.key, $0.value] })
        try text.member("loop", part.loop)
        try text.member("micro_stall_ms", ExactMilliseconds(part.microStallTime))
        try text.member("micro_stalls", part.microStallCount)
        try text.member("pid", run.pid)
        try text.member("ready_delay_ms", ExactMilliseconds(part.readyDelay))
        try text.member("revision", revision)
        try text.member("run", RunRow(run))
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
        try text.member("host", run.host)
        try text.member("loop", loop)
        try text.member("pid", run.pid)
        try text.member("run", RunRow(run))
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
        try text.member("host", run.host)
        try text.member("loop", stalls.loop)
        try text.member("pid", run.pid)
        try text.member("place", hexadecimal(stalls.place))
        try text.member("reason", stalls.reason.word)
        try text.member("revision", revision)
        try text.member("run", RunRow(run))
        try text.member("schema", "stallctl.suppression/1")
        try text.member("store", store.description)
        try text.member("threshold_ms", ExactMilliseconds(threshold))
        try text.member("total_ms", ExactMilliseconds(stalls.total))
        try text.member("version", run.version)
        text.endObject()
    }
}

extension PortableLoss: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("app", run.app)
        try text.member("build_id", run.buildID?.description)
        try text.member("count", count)
        try text.member("host", run.host)
        try text.member("pid", run.pid)
        try text.member("reason", reason.word)
        try text.member("revision", revision)
        try text.member("run", RunRow(run))
        try text.member("schema", "stallctl.loss/1")
        try text.member("store", store.description)
        try text.member("version", run.version)
        text.endObject()
    }
}

extension PortableRun: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("app", run.app)
        try text.member("build_id", run.buildID?.description)
        try text.member("host", run.host)
        try text.member("images", images)
        try text.member("pid", run.pid)
        try text.member("run", RunRow(run))
        try text.member("schema", "stallctl.run/1")
        try text.member("store", store?.description)
        try text.member("version", run.version)
        text.endObject()
    }
}

extension PlacedImage: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("build_id", buildID?.description)
        try text.member("end_address", "0x" + String(endAddress, radix: 16))
        try text.member("load_address", "0x" + String(loadAddress, radix: 16))
        try text.member("path", path)
        text.endObject()
    }
}

extension PortableLocation: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        if let run {
            try text.member("app", run.app)
            try text.member("build_id", run.buildID?.description)
        }
        try text.member("functions", frames.map(FunctionNames.init))
        if let run { try text.member("host", run.host) }
        try text.member("location", PlaceRow(location: location))
        if let run { try text.member("pid", run.pid) }
        try text.member("revision", revision)
        if let run { try text.member("run", RunRow(run)) }
        try text.member("schema", "stallctl.location/1")
        try text.member("store", store.description)
        if let run { try text.member("version", run.version) }
        text.endObject()
    }
}

private struct PlaceRow: JSONWritable {
    var location: CodeLocation

    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("build_id", location.buildID?.description)
        try text.member("image", location.imagePath)
        try text.member("kind", location.kind.word)
        try text.member("offset", "0x" + String(location.offset, radix: 16))
        text.endObject()
    }
}

private struct FunctionNames: JSONWritable {
    var frame: Frame

    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("file", frame.file)
        try text.member("function", frame.function)
        try text.member("inlined", frame.isInlined)
        try text.member("line", frame.line)
        try text.member("raw_name", frame.rawName)
        text.endObject()
    }
}
