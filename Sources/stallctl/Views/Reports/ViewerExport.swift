// Streams stalls from a store's cursor into a viewer's format.

internal import StallAnalysis
internal import StallFormats
internal import StallModel
internal import StallQuery

/// An output that the writers' closures can share.
final class OutputBytes {
    private var output: Output

    init(_ path: String?, isCompressed: Bool = false) throws {
        output = try Output.open(path, isCompressed: isCompressed)
    }

    func write(_ bytes: [UInt8]) throws { try output.write(bytes: bytes) }
    func finish() throws { try output.finish() }
}

struct ViewerExport {
    var store: any QueryableStore
    var filter: ReportFilter
    var limit: Int?
    var rules: GroupingRules

    func write(_ format: Export.Format, to path: String?) throws {
        let bytes = try OutputBytes(path, isCompressed: format == .pprof)
        let span = try store.timeSpan(filter)
        let origin = span?.first ?? UnixTime(microseconds: 0)
        var classifier = FrameClassifier(rules: rules)
        let isApp = { (frame: Frame, executable: BuildID?) -> Bool in
            classifier.isApp(frame, executable: executable)
        }
        switch format {
        case .pprof: try run(PprofProfile(span: span, to: bytes.write))
        case .chromeTrace: try run(ChromeTrace(origin: origin, isApp: isApp, to: bytes.write))
        case .speedscope: try run(SpeedscopeProfile(name: name, to: bytes.write))
        case .perfScript: try run(PerfScript(to: bytes.write))
        case .firefox:
            try run(FirefoxProfile(product: name, origin: origin, isApp: isApp, to: bytes.write))
        case .csv, .json, .jsonl, .folded: break
        }
        try bytes.finish()
    }

    private var name: String { "stallctl: \(store.path)" }

    private func run<Writer: ViewerWriter>(_ writer: Writer) throws {
        var writer = writer
        var titles = GroupTitles(rules: rules, storeRules: try store.rulesHash())
        try store.forEachStall(filter, in: Writer.order, limit: limit) { trace, lookup in
            let title = try titles.title(of: trace, lookup)
            try writer.add(
                ViewerStall(trace, title: title) { try lookup.frames(ofStack: $0) })
        }
        try writer.finish()
    }
}
