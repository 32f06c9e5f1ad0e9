// One report as data: the shape of `show --json`, `list --json` and `export --format json`.
// Scripts depend on the names.

internal import StallAnalysis
internal import StallModel

struct ReportRow: Encodable {
    let schema = "stallctl.report/1"
    var id: String
    var app: String
    var version: String
    @Nullable var buildId: String?
    var host: String
    var pid: Int32
    var loop: String
    var mode: String
    var phase: String
    @Nullable var activity: String?
    var start: String
    var durationMs: Double
    var cpuMs: Double
    var thresholdMs: Double
    var detectionDelayMs: Double
    var state: String
    /// What ended it: `recovered`, `exit`, `exec`, `crash`, `killed` or `stop`; null while it lasts, and where nobody knows.
    @Nullable var ending: String?
    var verdict: String
    /// Why it stalled; null when nothing looked for a cause.
    @Nullable var cause: CauseRow?
    /// The group, and the functions that make it, app frame first.
    var signature: String
    var family: String
    var title: String
    var frames: [String]
    /// None of the app's functions was on the stacks; `frames` are the system's.
    var withoutAppFrame: Bool
    /// What the frames say that it waited for: `lock`, `sleep`, ...; null when it mostly ran.
    @Nullable var wait: String?
    var samples: [SampleRow]
    /// When each function was on the stack, the longest first; late samples do not count.
    var timeline: [PresenceRow]
    var threads: [ThreadRow]
    /// Threads that the agent had neither room nor time to look at.
    var skippedThreads: Int
    /// What captures and names have cost the agent.
    var agentMs: Double
    /// The binaries on the report's stacks, where the loader had put them.
    var images: [ImageRow]
    /// The life of the process.
    var run: RunRow
    /// The store that it was first written to, and its number there: with them `ingest` takes it
    /// once. Null where that was not asked for.
    @Nullable var store: String?
    @Nullable var seq: Int64?
    @Nullable var revision: Int64?

    init(
        _ report: StallReport, images: [Image], origin: ReportOrigin? = nil,
        grouper: DefaultGrouper = DefaultGrouper()
    ) {
        let signature = report.signature(by: grouper)
        id = report.id.description
        app = report.run.app
        version = report.run.version
        buildId = report.run.buildID?.description
        host = report.run.host
        pid = report.run.pid
        loop = report.loop
        mode = report.mode
        phase = report.phase.word
        activity = report.activity
        start = report.start.rfc3339
        durationMs = report.duration.milliseconds
        cpuMs = report.cpuTime.milliseconds
        thresholdMs = report.threshold.milliseconds
        detectionDelayMs = report.detectionDelay.milliseconds
        state = report.state.word
        ending = report.ending?.word
        verdict = report.verdict.word
        cause = report.cause.map(CauseRow.init)
        self.signature = hexadecimal(signature.hash)
        family = hexadecimal(signature.family)
        title = signature.title(under: report.cause?.cause)
        frames = signature.keyFrames
        withoutAppFrame = signature.isWithoutAppFrame
        wait = signature.wait?.rawValue
        let loadAddresses = Dictionary(images.map { ($0.path, $0.loadAddress) }) { first, _ in first
        }
        timeline = Timeline(report: report, signature: signature).functions.map(PresenceRow.init)
        samples = report.samples.map { SampleRow($0, loadAddresses: loadAddresses) }
        threads =
            Dictionary(grouping: report.samples, by: \.thread)
            .map { ThreadRow(stalled: $0, sampleCount: $1.count) }
            .sorted { $0.id < $1.id }
            + report.threads.map { ThreadRow($0, loadAddresses: loadAddresses) }
        skippedThreads = report.skippedThreadCount
        agentMs = report.agentTime.milliseconds
        let used = Set(report.locations.compactMap(\.imagePath))
        self.images = images.filter { used.contains($0.path) }.map(ImageRow.init)
        run = RunRow(report.run)
        store = origin?.store.description
        seq = origin?.seq
        revision = origin?.revision
    }
}

/// One life of one process.
struct RunRow: Encodable {
    var id: String
    var bootId: String
    var startTicks: UInt64
    var started: String

    init(_ run: ProcessRun) {
        id = run.id.description
        bootId = run.bootID
        startTicks = run.startTicks
        started = run.started.rfc3339
    }
}

/// A binary that was mapped into the process.
struct ImageRow: Encodable {
    var path: String
    @Nullable var buildId: String?
    var loadAddress: String
    var endAddress: String

    init(_ image: Image) {
        path = image.path
        buildId = image.buildID?.description
        loadAddress = "0x" + String(image.loadAddress, radix: 16)
        endAddress = "0x" + String(image.endAddress, radix: 16)
    }
}

/// When a function was on the stack.
struct PresenceRow: Encodable {
    var function: String
    @Nullable var image: String?
    var fromMs: Double
    /// Null: to the end.
    @Nullable var untilMs: Double?
    /// Of the time that samples stand for, 0 to 1.
    var share: Double

    init(_ frame: Frame, _ presence: Timeline.Presence) {
        function = frame.title
        image = frame.imagePath
        fromMs = presence.from.milliseconds
        untilMs = presence.until?.milliseconds
        share = presence.share
    }
}

/// One look at the stalled thread.
struct SampleRow: Encodable {
    var offsetMs: Double
    var weightMs: Double
    var late: Bool
    var thread: Int32
    @Nullable var method: String?
    var truncated: Bool
    var captureCostMs: Double
    @Nullable var failure: String?
    /// Innermost first.
    var stack: [FrameRow]

    init(_ sample: Sample, loadAddresses: [String: UInt64]) {
        offsetMs = sample.offset.milliseconds
        weightMs = sample.weight.milliseconds
        late = sample.isLate
        thread = sample.thread.rawValue
        method = sample.method?.word
        truncated = sample.isTruncated
        captureCostMs = sample.captureCost.milliseconds
        failure = sample.failure
        stack = sample.frames.map { FrameRow($0, loadAddresses: loadAddresses) }
    }
}

/// One function on a stack.
struct FrameRow: Encodable {
    @Nullable var function: String?
    @Nullable var rawName: String?
    @Nullable var image: String?
    @Nullable var buildId: String?
    /// Where it was in that process, when the place of its image is known: `0x55d0c8a01f40`.
    @Nullable var address: String?
    /// From the image's load address: `0x1f40`.
    var offset: String
    @Nullable var file: String?
    @Nullable var line: Int?
    var inlined: Bool
    var guessed: Bool
    var kind: String

    init(_ frame: Frame, loadAddresses: [String: UInt64]) {
        function = frame.function
        rawName = frame.rawName
        image = frame.imagePath
        buildId = frame.buildID?.description
        let load = frame.imagePath == nil ? 0 : frame.imagePath.flatMap { loadAddresses[$0] }
        address = load.map { "0x" + String($0 &+ frame.offset, radix: 16) }
        offset = "0x" + String(frame.offset, radix: 16)
        file = frame.file
        line = frame.line
        inlined = frame.isInlined
        guessed = frame.isGuessed
        kind = frame.kind.word
    }
}

/// A thread that was looked at: the stalled one, whose stacks are in the samples, or another one.
struct ThreadRow: Encodable {
    var id: Int32
    @Nullable var name: String?
    /// `stalled`, `holder`, `member` or `other`.
    var role: String
    var sampleCount: Int
    @Nullable var method: String?
    var truncated: Bool
    @Nullable var failure: String?
    /// Innermost first; empty for the stalled thread.
    var stack: [FrameRow]

    init(stalled thread: ThreadID, sampleCount: Int) {
        id = thread.rawValue
        role = "stalled"
        self.sampleCount = sampleCount
        truncated = false
        stack = []
    }

    init(_ thread: ThreadSnapshot, loadAddresses: [String: UInt64]) {
        id = thread.thread.rawValue
        name = thread.name
        role = thread.role.word
        sampleCount = 1
        method = thread.method?.word
        truncated = thread.isTruncated
        failure = thread.failure
        stack = thread.frames.map { FrameRow($0, loadAddresses: loadAddresses) }
    }
}

extension StallReport {
    /// The group that its samples put it in; late ones have no say.
    func signature(by grouper: DefaultGrouper) -> Signature {
        grouper.signature(
            of: samples.filter { !$0.isLate && !$0.frames.isEmpty }.map { ($0.frames, $0.weight) },
            executable: run.buildID)
    }
}
