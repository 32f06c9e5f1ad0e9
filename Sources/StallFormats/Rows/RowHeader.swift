// The kind of row that a line of JSON is. A sender may be newer than the program that imports: unknown kinds and
// versions are counted, not refused.

internal import StallModel
internal import StallQuery

/// The kinds of lines that are read, with the schema of each.
enum RowKind: String {
    case report = "stallctl.report/1"
    case exposure = "stallctl.exposure/1"
    case suppression = "stallctl.suppression/1"
    case loss = "stallctl.loss/1"
    case run = "stallctl.run/1"
    case location = "stallctl.location/1"
    case watchedLoop = "stallctl.loop/1"

    /// Whether a schema is one of ours: of a kind, or a version, that a later program may write.
    static func isOfLater(_ schema: String) -> Bool {
        let parts = schema.split(separator: "/", omittingEmptySubsequences: false)
        guard schema.hasPrefix("stallctl."), schema.utf8.count <= 80, parts.count == 2,
            let version = Int(parts[1]), version > 0
        else { return false }
        return parts[0].utf8.allSatisfy { byte in
            (0x61...0x7a).contains(byte) || [0x2d, 0x2e, 0x5f].contains(byte)
        }
    }
}

/// A line as its kind has it.
protocol RowLine: Decodable {
    func row() throws -> PortableRow
}

extension ReportLine: RowLine {
    func row() throws -> PortableRow { .report(try report()) }
}

/// A line of any kind.
struct AnyLine: Decodable {
    private enum CodingKeys: CodingKey { case schema }
    private let schema: String
    /// Nil for a kind, or a version, that is not known here.
    private let line: (any RowLine)?

    init(from decoder: any Decoder) throws {
        schema = try decoder.container(keyedBy: CodingKeys.self).decode(
            String.self, forKey: .schema)
        switch RowKind(rawValue: schema) {
        case .report: line = try ReportLine(from: decoder)
        case .exposure: line = try ExposureLine(from: decoder)
        case .suppression: line = try SuppressionLine(from: decoder)
        case .loss: line = try LossLine(from: decoder)
        case .run: line = try ProcessRunLine(from: decoder)
        case .location: line = try LocationLine(from: decoder)
        case .watchedLoop: line = try WatchedLoopLine(from: decoder)
        case nil:
            guard RowKind.isOfLater(schema) else {
                throw LineProblem(
                    "has the schema '\(schema.prefix(40))'; expected '\(RowKind.report.rawValue)'")
            }
            line = nil
        }
    }

    func row() throws -> PortableRow { try line?.row() ?? .unknown(schema: schema) }
}
