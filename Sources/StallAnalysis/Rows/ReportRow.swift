// One report as JSON: the schema of `show --json`, `list --json` and `export --format json`. Key names are a contract.

package import StallModel
package import StallQuery

package struct ReportRow: Encodable {
    package let schema = "stallctl.report/1"
    package var id: String
    package var app: String
    package var version: String
    @Nullable package var buildId: String?
    package var host: String
    package var pid: Int32
    package var loop: String
    package var mode: String
    package var phase: String
    @Nullable package var activity: String?
    package var start: String
    package var durationMs: Double
    package var cpuMs: Double
    /// The part of the duration that was the thread's own; null: all of it, as far as known.
    @Nullable package var ownMs: Double?
    package var thresholdMs: Double
    package var detectionDelayMs: Double
    package var state: String
    /// The event that ended it: `recovered`, `exit`, `exec`, `crash`, `killed` or `stop`; null while it is open, and if
    /// unknown.
    @Nullable package var ending: String?
    package var verdict: String
    /// The cause; null if none was determined.
    @Nullable package var cause: CauseRow?
    /// The group and its key frames, app frame first.
    package var signature: String
    package var family: String
    package var title: String
    package var frames: [String]
    /// No app function was on the stacks; `frames` are the system's.
    package var withoutAppFrame: Bool
    /// The kind of its wait, by its frames: `lock`, `sleep`, ...; null if mostly running.
    @Nullable package var wait: String?
    package var samples: [SampleRow]
    /// When each function was on the stack, by time; late samples do not count.
    package var timeline: [PresenceRow]
    package var threads: [ThreadRow]
    /// Threads that were not captured, for lack of buffer space or time.
    package var skippedThreads: Int
    /// The agent's cost of capturing and symbolicating.
    package var agentMs: Double
    /// The images on the report's stacks, with their load addresses.
    package var images: [ImageRow]
    /// The process run.
    package var run: RunRow
    /// The store that it was first written to, and its sequence number there, by which `ingest` recognizes it. Null if
    /// not requested.
    @Nullable package var store: String?
    @Nullable package var seq: Int64?
    @Nullable package var revision: Int64?

    package init(
        _ report: StallReport, images: [Image], origin: ReportOrigin? = nil,
        grouper: DefaultGrouper = DefaultGrouper()
    ) {
        let signature = report.signature(by: grouper)
        self.init(report, group: signature.group)
        let loadAddresses = Dictionary(images.map { ($0.path, $0.loadAddress) }) { first, _ in first
        }
        timeline = Timeline(report: report, signature: signature).functions.map(PresenceRow.init)
        samples = report.samples.map { SampleRow($0, loadAddresses: loadAddresses) }
        threads =
            Dictionary(grouping: report.samples, by: \.thread)
            .map { ThreadRow(stalled: $0, sampleCount: $1.count) }
            .sorted { $0.id < $1.id }
            + report.threads.map { ThreadRow($0, loadAddresses: loadAddresses) }
        let used = Set(report.locations.compactMap(\.imagePath))
        self.images = images.filter { used.contains($0.path) }.map(ImageRow.init)
        store = origin?.store.description
        seq = origin?.seq
        revision = origin?.revision
    }

    /// A report's row without its stacks: no samples, threads and images.
    package init(_ report: StallReport, group: ReportGroup) {
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
        if report.delayedTime > .zero {
            ownMs = (report.duration - report.delayedTime).milliseconds
        }
        thresholdMs = report.threshold.milliseconds
        detectionDelayMs = report.detectionDelay.milliseconds
        state = report.state.word
        ending = report.ending?.word
        verdict = report.verdict.word
        cause = report.cause.map(CauseRow.init)
        signature = hexadecimal(group.signature)
        family = hexadecimal(group.family)
        title = group.title(under: report.cause?.cause)
        frames = group.frames
        withoutAppFrame = group.isWithoutAppFrame
        wait = group.wait?.rawValue
        (samples, timeline, threads, images) = ([], [], [], [])
        skippedThreads = report.skippedThreadCount
        agentMs = report.agentTime.milliseconds
        run = RunRow(report.run)
    }
}

/// One process run.
package struct RunRow: Encodable {
    package var id: String
    package var bootId: String
    package var startTicks: UInt64
    package var started: String

    package init(_ run: ProcessRun) {
        id = run.id.description
        bootId = run.bootID
        startTicks = run.startTicks
        started = run.started.rfc3339
    }
}

/// An image loaded by the process.
package struct ImageRow: Encodable {
    package var path: String
    @Nullable package var buildId: String?
    package var loadAddress: String
    package var endAddress: String

    package init(_ image: Image) {
        path = image.path
        buildId = image.buildID?.description
        loadAddress = "0x" + String(image.loadAddress, radix: 16)
        endAddress = "0x" + String(image.endAddress, radix: 16)
    }
}

/// When a function was on the stack.
package struct PresenceRow: Encodable {
    package var function: String
    @Nullable package var image: String?
    var fromMs: Double
    /// Null: to the end.
    @Nullable var untilMs: Double?
    /// Share of the samples' weight, 0 to 1.
    package var share: Double

    package init(_ frame: Frame, _ presence: Timeline.Presence) {
        function = frame.title
        image = frame.imagePath
        fromMs = presence.from.milliseconds
        untilMs = presence.until?.milliseconds
        share = presence.share
    }
}

/// One sample of the stalled thread.
package struct SampleRow: Encodable {
    package var offsetMs: Double
    package var weightMs: Double
    package var late: Bool
    package var thread: Int32
    @Nullable package var method: String?
    package var truncated: Bool
    package var captureCostMs: Double
    @Nullable package var failure: String?
    /// Innermost first.
    package var stack: [FrameRow]

    package init(_ sample: Sample, loadAddresses: [String: UInt64]) {
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
package struct FrameRow: Encodable {
    @Nullable package var function: String?
    @Nullable package var rawName: String?
    @Nullable package var image: String?
    @Nullable package var buildId: String?
    /// The absolute address in that process, if the image's load address is known: `0x55d0c8a01f40`.
    @Nullable package var address: String?
    /// From the image's load address: `0x1f40`.
    package var offset: String
    @Nullable package var file: String?
    @Nullable package var line: Int?
    package var inlined: Bool
    package var guessed: Bool
    package var kind: String

    package init(_ frame: Frame, loadAddresses: [String: UInt64]) {
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

/// A captured thread: the stalled one, whose stacks are in the samples, or another.
package struct ThreadRow: Encodable {
    package var id: Int32
    @Nullable package var name: String?
    /// `stalled`, `holder`, `member` or `other`.
    package var role: String
    package var sampleCount: Int
    @Nullable package var method: String?
    package var truncated: Bool
    @Nullable package var failure: String?
    /// Innermost first; empty for the stalled thread.
    package var stack: [FrameRow]

    package init(stalled thread: ThreadID, sampleCount: Int) {
        id = thread.rawValue
        role = "stalled"
        self.sampleCount = sampleCount
        truncated = false
        stack = []
    }

    package init(_ thread: ThreadSnapshot, loadAddresses: [String: UInt64]) {
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
