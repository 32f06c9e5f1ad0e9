// Lines of process runs (`stallctl.run/1`), of what they lost (`stallctl.loss/1`), and of locations in their binaries
// (`stallctl.location/1`).

internal import StallModel
internal import StallQuery

/// A process run with its images.
struct ProcessRunLine: RowLine {
    var process: ProcessLine
    var part: Part

    struct Part: Decodable {
        var store: String?
        var images: [ImageLine]
    }

    struct ImageLine: Decodable {
        var path: String?
        var buildId: String?
        var loadAddress: String
        var endAddress: String

        enum CodingKeys: String, CodingKey {
            case path
            case buildId = "build_id"
            case loadAddress = "load_address"
            case endAddress = "end_address"
        }
    }

    init(from decoder: any Decoder) throws {
        process = try ProcessLine(from: decoder)
        part = try Part(from: decoder)
    }

    func row() throws -> PortableRow {
        .run(
            PortableRun(
                store: try part.store.map { try ReportLine.identifier($0, "store") },
                run: try process.process(),
                images: try part.images.enumerated().map { index, image in
                    PlacedImage(
                        path: image.path,
                        buildID: try ReportLine.buildID(image.buildId, "images[\(index)].build_id"),
                        loadAddress: try ReportLine.address(
                            image.loadAddress, "images[\(index)].load_address"),
                        endAddress: try ReportLine.address(
                            image.endAddress, "images[\(index)].end_address"))
                }))
    }
}

/// Stalls that a process detected and did not record.
struct LossLine: RowLine {
    var origin: OriginLine
    var process: ProcessLine
    var part: Part

    struct Part: Decodable {
        var reason: String
        var count: Int64
    }

    init(from decoder: any Decoder) throws {
        origin = try OriginLine(from: decoder)
        process = try ProcessLine(from: decoder)
        part = try Part(from: decoder)
    }

    func row() throws -> PortableRow {
        let (store, revision) = try origin.origin()
        guard let reason = try ReportLine.word(part.reason, LossReason.words, "reason") else {
            throw LineProblem("lacks reason")
        }
        return .loss(
            PortableLoss(
                store: store, revision: revision, run: try process.process(), reason: reason,
                count: part.count))
    }
}

extension LossReason {
    static let words = byWord
}

/// A location in a binary with its names.
struct LocationLine: RowLine {
    var origin: OriginLine
    /// Where the image has no build ID.
    var process: ProcessLine?
    var part: Part

    struct Part: Decodable {
        var run: ReportLine.RunLine?
        var location: PlaceLine
        var functions: [FunctionLine]
    }

    struct PlaceLine: Decodable {
        var image: String?
        var buildId: String?
        var offset: String
        var kind: String

        enum CodingKeys: String, CodingKey {
            case image, offset, kind
            case buildId = "build_id"
        }
    }

    struct FunctionLine: Decodable {
        var function: String?
        var rawName: String?
        var file: String?
        var line: Int?
        var inlined: Bool?

        enum CodingKeys: String, CodingKey {
            case function, file, line, inlined
            case rawName = "raw_name"
        }
    }

    private static let functionLimit = 1000

    init(from decoder: any Decoder) throws {
        origin = try OriginLine(from: decoder)
        part = try Part(from: decoder)
        process = try part.run.map { _ in try ProcessLine(from: decoder) }
    }

    func row() throws -> PortableRow {
        let (store, revision) = try origin.origin()
        let place = part.location
        guard (place.buildId == nil) == (process != nil) else {
            throw LineProblem("has neither a build ID nor a run, or both, for its image")
        }
        guard part.functions.count <= Self.functionLimit else {
            throw LineProblem("has \(part.functions.count) functions")
        }
        let location = CodeLocation(
            imagePath: place.image,
            buildID: try ReportLine.buildID(place.buildId, "location.build_id"),
            offset: try ReportLine.address(place.offset, "location.offset"),
            kind: try ReportLine.word(place.kind, CodeAddressKind.words, "location.kind")
                ?? .returnAddress,
            isGuessed: false)
        return .location(
            PortableLocation(
                store: store, revision: revision, run: try process?.process(), location: location,
                frames: part.functions.map { line in
                    var frame = Frame(location)
                    frame.function = line.function
                    frame.rawName = line.rawName
                    frame.file = line.file
                    frame.line = line.line
                    frame.isInlined = line.inlined ?? false
                    return frame
                }))
    }
}

extension PortableLoss: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("app", run.app)
        try text.member("build_id", run.buildID?.description)
        try text.member("count", count)
        try text.member("device", run.device)
        try text.member("host", run.host)
        try text.member("os", run.os)
        try text.member("pid", run.pid)
        try text.member("reason", reason.word)
        try text.member("revision", revision)
        try text.member("run", run)
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
        try text.member("device", run.device)
        try text.member("host", run.host)
        try text.member("images", images)
        try text.member("os", run.os)
        try text.member("pid", run.pid)
        try text.member("run", run)
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
            try text.member("device", run.device)
        }
        try text.member("functions", frames.map(FunctionNames.init))
        if let run { try text.member("host", run.host) }
        try text.member("location", PlaceRow(location: location))
        if let run {
            try text.member("os", run.os)
            try text.member("pid", run.pid)
        }
        try text.member("revision", revision)
        if let run { try text.member("run", run) }
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
