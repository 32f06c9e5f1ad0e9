// `ingest --dry-run`: the format and the content of each file.

internal import ArgumentParser
internal import Glibc
internal import StallFormats
internal import StallIngest
internal import StallModel
internal import StallQuery

extension IngestCommand {
    /// Shows the format of each file, and what is in it; imports nothing.
    func showReadings() throws {
        let files = ReportFiles(options: try foreign.options())
        let found = StoreFiles(paths, allowsUnmatched: allowUnmatched) {
            ReportFiles.format(ofFile: $0) != nil
        }
        let stores = found.stores.filter(StoreFiles.isStore)
            .map { SourceReading(path: $0, format: "store") }
        let refused =
            found.skipped.map(\.description)
            + found.stores.filter { !StoreFiles.isStore($0) }.map(IngestView.refusal(ofFile:))
        let readings = stores + found.reports.map { reading(of: $0, files) }
        if json {
            try Output.write(json: readings)
        } else {
            try Output.write(lines: readings.flatMap(\.lines))
        }
        for reason in refused { say("stallctl: \(reason)".printable) }
        if !refused.isEmpty || readings.contains(where: { $0.faultCount > 0 }) {
            throw ExitCode.failure
        }
    }

    private func reading(of path: String, _ files: ReportFiles) -> SourceReading {
        let descriptor =
            path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let fault = LineFault(line: 0, reason: String(cString: strerror(errno)))
            return SourceReading(path: path, format: "", faultCount: 1, faults: [.init(fault)])
        }
        var feed = files.feed(descriptor: descriptor, closesIt: path != "-") { true }
        let format = (feed as? ForeignReports)?.format.rawValue ?? "stallctl JSON lines"
        var reading = SourceReading(path: path, format: format)
        while true {
            do throws(LineFault) {
                guard let row = try feed.next() else { break }
                reading.count(row)
            } catch {
                reading.faultCount += 1
                if reading.faults.count < 100 { reading.faults.append(.init(error)) }
                if feed.hasFailed { break }
            }
        }
        return reading
    }
}

/// The content of a file: a line of JSON of `ingest --dry-run`.
struct SourceReading: Encodable {
    let schema = "stallctl.reading/1"
    var path: String
    /// The format; `store` for one.
    var format: String
    /// Reports of stalls.
    var stalls = 0
    /// Reports with another verdict: of a profiler's samples.
    var others = 0
    var faultCount = 0
    /// The first of them.
    var faults: [Fault] = []

    enum CodingKeys: String, CodingKey {
        case schema, path, format, stalls, others, faults
        case faultCount = "fault_count"
    }

    struct Fault: Encodable {
        /// From 1; 0 for the whole file.
        var line: Int
        var reason: String

        init(_ fault: LineFault) { (line, reason) = (fault.line, fault.reason) }
    }

    mutating func count(_ row: PortableRow) {
        guard case .report(let report) = row else { return }
        if report.report.verdict == .stalled { stalls += 1 } else { others += 1 }
    }

    var lines: [String] {
        let counts = [(stalls, "stall"), (others, "other report")].filter { $0.0 > 0 }
            .map { counted($0, $1) }
        let content = format == "store" ? [] : counts.isEmpty ? ["no reports"] : counts
        return ["\(path): \(([format] + content).joined(separator: ", "))".printable]
            + faults.map { "  line \($0.line): \($0.reason)".printable }
            + (faultCount > faults.count ? ["  \(faultCount - faults.count) more faults"] : [])
    }
}
