// The formats, recognized by content, never by a file's name.

/// A format of another program that reports are read from. A new one is a case here, its reader, and examples in
/// sample-data/formats.
package enum ReportFormat: String, CaseIterable, Sendable {
    // In the order of recognition: those whose first line says it, then those that are known by their parts.
    case pprof = "pprof profile"
    case ips = "Apple .ips"
    case metricKit = "MetricKit payload"
    case ksCrash = "KSCrash or Matrix report"
    case sentry = "Sentry event"
    case swiftBacktraceJSON = "swift-backtrace JSON"
    case sampleCallGraph = "sample call graph"
    case spindump = "spindump report"
    case appleCrash = "Apple crash text"
    case swiftBacktrace = "swift-backtrace text"
    case euStack = "eu-stack"
    case gdbBacktrace = "gdb backtrace"
    case seastarStalls = "Seastar stalls"
    case kernelStalls = "Linux log"
    case profileRecorderRaw = "swift-profile-recorder raw"
    case perfScript = "perf script"
    case foldedStacks = "folded stacks"

    /// How much of a text its format is seen in, in bytes.
    package static let beginningSize = 1 << 16

    /// How much of a JSON text is looked at, in bytes: its keys come in any order, those of stacks behind hundreds of images.
    static let documentSize = 1 << 22

    /// The formats of which each report is one JSON text with its keys in any order.
    private static let documents: [Self] = [.metricKit, .ksCrash, .sentry, .swiftBacktraceJSON]

    /// The format of a text that begins so, in UTF-8; nil if it is none of these.
    package init?(beginning bytes: some Collection<UInt8>) {
        self.init(TextBeginning(bytes.prefix(Self.beginningSize)), of: Self.allCases)
    }

    /// The format of a JSON text; nil if it is none of these.
    init?(document bytes: some Collection<UInt8>) {
        self.init(TextBeginning(bytes.prefix(Self.documentSize)), of: Self.documents)
    }

    private init?(_ beginning: TextBeginning, of formats: [Self]) {
        guard let format = formats.first(where: { $0.reader.recognizes(beginning) }) else {
            return nil
        }
        self = format
    }

    var reader: any FormatReader.Type {
        switch self {
        case .pprof: PprofSamples.self
        case .ips: IPSReport.self
        case .metricKit: MetricKitPayload.self
        case .ksCrash: KSCrashReport.self
        case .sentry: SentryEvent.self
        case .swiftBacktraceJSON: SwiftBacktraceJSON.self
        case .sampleCallGraph: SampleCallGraph.self
        case .spindump: SpindumpReport.self
        case .appleCrash: AppleCrashText.self
        case .swiftBacktrace: SwiftBacktraceText.self
        case .euStack: EUStack.self
        case .gdbBacktrace: GDBBacktrace.self
        case .seastarStalls: SeastarStalls.self
        case .kernelStalls: KernelStalls.self
        case .profileRecorderRaw: ProfileRecorderRaw.self
        case .perfScript: PerfScriptText.self
        case .foldedStacks: FoldedText.self
        }
    }
}

/// The first bytes of a text.
struct TextBeginning {
    let bytes: [UInt8]
    let text: String
    /// The last one may be cut off.
    let lines: [Substring]
    /// The first character that is not a space is the bracket of an object or an array.
    let isJSON: Bool

    /// Whether an object there, at any depth, has the key.
    func hasKey(_ key: String) -> Bool {
        text.ranges(of: "\"\(key)\"").contains { range in
            text[range.upperBound...].first { !$0.isWhitespace } == ":"
        }
    }

    init(_ bytes: some Collection<UInt8>) {
        self.bytes = Array(bytes)
        text = String(decoding: bytes, as: UTF8.self)
        lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        let first = text.first { !$0.isWhitespace }
        isJSON = first == "{" || first == "["
    }
}
