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
