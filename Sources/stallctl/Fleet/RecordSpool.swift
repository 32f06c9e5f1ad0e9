// Sends new stalls as OpenTelemetry log records. The other side keeps no position, so that a file does: beside
// the store, or where --position says (docs/decisions/0016-otlp-position-in-a-file.md).

#if Fleet
internal import Foundation
internal import StallAnalysis
internal import StallArchive
internal import StallFormats
internal import StallGzip
internal import StallHTTP
internal import StallModel
internal import StallPush
internal import StallQuery
internal import StallStore

/// How far stores were sent, by their sources, in a file.
struct RecordPositions: Codable {
    var schema = "stallctl.otlp-position/1"
    var url: String
    var stores: [String: Int64] = [:]

    /// The positions in a file; none where there is no file.
    ///
    /// - Throws: `PushProblem` for a file of another collector or format: sending everything again is for the user to
    ///   decide.
    static func read(_ path: String, for url: String) throws -> RecordPositions {
        guard let bytes = FileManager.default.contents(atPath: path) else {
            guard !FileManager.default.fileExists(atPath: path) else {
                throw PushProblem("\(path): cannot be read; expected the position of --otlp")
            }
            return RecordPositions(url: url)
        }
        guard let found = try? JSONDecoder().decode(RecordPositions.self, from: bytes),
            found.schema == "stallctl.otlp-position/1",
            found.stores.values.allSatisfy({ 0...Int64(1) << 60 ~= $0 })
        else {
            throw PushProblem(
                "\(path): not a position of --otlp; delete it to send every stall again")
        }
        // Another address has got nothing yet.
        return found.url == url ? found : RecordPositions(url: url)
    }

    /// Replaces the file: it has the old content or the new one, also after a crash.
    func write(_ path: String) throws {
        try Data(JSONLines.line(self).utf8).write(to: URL(filePath: path), options: .atomic)
    }
}

/// Sends the stalls of one store.
struct RecordPush {
    let target: PushTarget
    let positionPath: String
    let grouper: DefaultGrouper
    var patience: PushPatience
    private let curl = Curl()
    private var backoff = Backoff()
    private var limit = 200

    init(
        target: PushTarget, positionPath: String, grouper: DefaultGrouper, patience: PushPatience
    ) {
        self.target = target
        self.positionPath = positionPath
        self.grouper = grouper
        self.patience = patience
    }

    mutating func push(_ reports: ReportStore, _ source: ChangeSource) throws -> PushResult {
        var positions = try RecordPositions.read(positionPath, for: target.url)
        let store = source.store.description
        var result = PushResult(store: source.store)
        var position = ChangePosition(through: positions.stores[store] ?? 0)
        result.through = position.through
        while true {
            var records: [StallRecord] = []
            var runs: Set<UniqueID> = []
            var bytes = 0
            let (limit, grouper) = (limit, grouper)
            let end = try reports.forEachChange(of: source, behind: position, runs: &runs) { row in
                // One that has not ended comes again when it has.
                guard case .report(let row) = row, row.report.state != .open else { return true }
                guard records.count < limit, bytes < 2 << 20 else { return false }
                records.append(StallRecord(row.report, grouper))
                bytes += 1000 + (records.last?.stack.utf8.count ?? 0)
                return true
            }
            if !records.isEmpty, !(try sendApart(records, &result)) { return result }
            position = end.position
            if positions.stores[store] != position.through {
                positions.stores[store] = position.through
                try positions.write(positionPath)
            }
            result.through = position.through
            if end.isAtEnd { return result }
        }
    }

    private enum Outcome {
        case sent, smaller, end
        case divided(reason: String, isOfRecords: Bool)
    }

    /// Sends records, and those that are not taken together apart: one that a receiver cannot take must not keep the
    /// others from it. One is refused only by a receiver that takes something, so that a wrong address loses nothing; and
    /// one that only has errors does not get each record by itself.
    ///
    /// - Returns: Whether each of them is taken or refused.
    private mutating func sendApart(
        _ records: [StallRecord], _ result: inout PushResult
    ) throws -> Bool {
        var parts = [records[...]]
        var (hasTaken, refused) = (false, [(reason: String, id: UniqueID)]())
        while let part = parts.popLast() {
            let middle = part.startIndex + part.count / 2
            switch try send(Array(part), &result) {
            case .end: return false
            case .sent: hasTaken = true
            case .smaller:
                limit = max(1, part.count / 2)
                parts += [part[middle...], part[..<middle]]
            case .divided(let reason, let isOfRecords):
                if !hasTaken, isOfRecords {
                    // The empty request: a receiver takes it.
                    guard case .sent = try send([], &result) else {
                        if !result.isCancelled { result.failure = reason }
                        return false
                    }
                    hasTaken = true
                }
                if part.count > 1 {
                    parts += [part[middle...], part[..<middle]]
                } else {
                    refused.append((reason, part[part.startIndex].report.id))
                }
                if !hasTaken, refused.count == 3 { parts = [] }
            }
        }
        if let first = refused.first, !hasTaken {
            result.failure = first.reason
            return false
        }
        for (reason, id) in refused { result.refuse(1, "stall \(id): \(reason)") }
        return true
    }

    private mutating func send(
        _ records: [StallRecord], _ result: inout PushResult
    ) throws -> Outcome {
        var random = SystemRandomNumberGenerator()
        let document = try StallRecords.document(records, observed: .now())
        let body = try Gzip.compress([document])
        while true {
            if patience.stop.isRequested {
                result.isCancelled = true
                return .end
            }
            var request = try target.request("POST", "")
            request.fields += [
                ("Content-Type", "application/json"), ("Content-Encoding", "gzip"),
            ]
            request.body = body
            let reply = patience.send(request, by: curl, isQuestion: false)
            switch RecordStep(reply, count: records.count) {
            case .taken(let refused, let reason):
                backoff.reset()
                guard !records.isEmpty else { return .sent }
                result.batchCount += 1
                result.lineCount += records.count - refused
                result.added += records.count - refused
                if refused > 0 {
                    result.refuse(refused, "\(refused) log records refused: \(reason)")
                }
                return .sent
            case .halve where records.count > 1: return .smaller
            case .halve:
                return .divided(reason: "answered 413: too large", isOfRecords: !records.isEmpty)
            case .divide(let reason, let isOfRecords):
                return .divided(reason: reason, isOfRecords: isOfRecords)
            case .wait(let words, let seconds):
                let reason = words + backoff.words(asked: seconds)
                let time = backoff.next(asked: seconds, using: &random)
                guard patience.wait(time, target.url, reason) else {
                    result.isCancelled = patience.stop.isRequested
                    if !result.isCancelled { result.failure = reason }
                    return .end
                }
            case .stop(let reason):
                result.failure = reason
                return .end
            }
        }
    }
}

extension StallRecord {
    init(_ report: StallReport, _ grouper: DefaultGrouper) {
        let group = report.signature(by: grouper).group
        let heaviest = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
            .max { $0.weight < $1.weight }
        let stack = (heaviest?.frames ?? []).prefix(100).map { frame in
            let place = frame.file.map { " \($0)" + (frame.line.map { ":\($0)" } ?? "") } ?? ""
            return "\(frame.title) (\(frame.imageName ?? "?"))\(place)"
        }
        self.init(
            report: report, title: group.title(under: report.cause?.cause),
            signature: hexadecimal(group.signature), stack: stack.joined(separator: "\n"),
            function: group.isWithoutAppFrame ? nil : group.frames.first)
    }
}
#endif
