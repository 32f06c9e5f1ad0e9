// A report's line of JSON lines (`stallctl.report/1`): the schema of `show --json` and of `export --format json` and
// `jsonl`. Key names are a contract; keys are in alphabetical order. `ReportLine` reads it back. Written without an
// encoder, which takes most of a millisecond for the hundreds of frames of a report.

package import StallModel
package import StallQuery

/// A report with what its line has besides.
package struct ReportText {
    var report: StallReport
    /// The group under the caller's rules.
    var group: ReportGroup
    /// The store that it was first written to, and its number there, by which `ingest` recognizes it; nil if not requested.
    var origin: ReportOrigin?

    package init(_ report: StallReport, group: ReportGroup, origin: ReportOrigin? = nil) {
        (self.report, self.group, self.origin) = (report, group, origin)
    }

    /// The line with its line end.
    ///
    /// - Parameter images: Those of the process; the line has the ones that are on stacks of the report.
    package func line(images: [Image]) throws -> [UInt8] {
        var text = JSONText()
        let loads = Dictionary(images.map { ($0.path, $0.loadAddress) }) { first, _ in first }
        let used = Set(report.locations.compactMap(\.imagePath))
        let stalled = Dictionary(grouping: report.samples, by: \.thread)
            .map { ThreadText(stalled: $0, sampleCount: $1.count) }
            .sorted { $0.thread.thread.rawValue < $1.thread.thread.rawValue }
        let samples = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
        var numbers = FrameNumbers()
        let presences = NumberedSamples(samples, by: &numbers).functions(of: samples)
        try write(
            to: &text, images: images.filter { used.contains($0.path) },
            samples: report.samples.map { SampleText(sample: $0, stack: loads.stack($0.frames)) },
            threads: stalled
                + report.threads.map { ThreadText(thread: $0, stack: loads.stack($0.frames)) },
            timeline: presences.map(PresenceText.init))
        text.syntax("\n")
        return text.bytes
    }

    /// - Parameters: The members that grow with the stacks.
    func write(
        to text: inout JSONText, images: some JSONWritable, samples: some JSONWritable,
        threads: some JSONWritable, timeline: some JSONWritable
    ) throws {
        let own = report.duration - report.delayedTime
        text.beginObject()
        try text.member("activity", report.activity)
        // The agent's cost of capturing and symbolicating.
        try text.member("agent_ms", report.agentTime.milliseconds)
        try text.member("app", report.run.app)
        try text.member("build_id", report.run.buildID?.description)
        // Null if none was determined.
        try text.member("cause", report.cause)
        try text.member("cpu_ms", report.cpuTime.milliseconds)
        try text.member("detection_delay_ms", report.detectionDelay.milliseconds)
        try text.member("device", report.run.device)
        try text.member("duration_ms", report.duration.milliseconds)
        // The event that ended it: `recovered`, `exit`, `exec`, `crash`, `killed` or `stop`; null while it is open, and
        // if unknown.
        try text.member("ending", report.ending?.word)
        try text.member("family", hexadecimal(group.family))
        // The group's key frames, the app's first.
        try text.member("frames", group.frames)
        try text.member("host", report.run.host)
        try text.member("id", report.id.description)
        try text.member("images", images)
        try text.member("loop", report.loop)
        try text.member("mode", report.mode)
        try text.member("os", report.run.os)
        // The part of the duration that was the thread's own; null: all of it, as far as known.
        try text.member("own_ms", report.delayedTime > .zero ? own.milliseconds : nil)
        try text.member("phase", report.phase.word)
        try text.member("pid", report.run.pid)
        try text.member("revision", origin?.revision)
        try text.member("run", report.run)
        try text.member("samples", samples)
        try text.member("schema", RowKind.report.rawValue)
        try text.member("seq", origin?.seq)
        try text.member("signature", hexadecimal(group.signature))
        // Threads that were not captured, for lack of room or time.
        try text.member("skipped_threads", report.skippedThreadCount)
        try text.member("start", report.start.rfc3339)
        try text.member("state", report.state.word)
        try text.member("store", origin?.store.description)
        try text.member("threads", threads)
        try text.member("threshold_ms", report.threshold.milliseconds)
        // When each function was on the stack, by time; late samples do not count.
        try text.member("timeline", timeline)
        try text.member("title", group.title(under: report.cause?.cause))
        try text.member("verdict", report.verdict.word)
        try text.member("version", report.run.version)
        // The kind of its wait, by its frames: `lock`, `sleep`, ...; null if mostly running.
        try text.member("wait", group.wait?.rawValue)
        // No app function was on the stacks; `frames` are the system's.
        try text.member("without_app_frame", group.isWithoutAppFrame)
        text.endObject()
    }
}

extension StallCause: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        // The class with the largest share: `lock`, `disk`, ...
        try text.member("class", cause.word)
        // From 0 to 1.
        try text.member("confidence", confidence)
        try text.member("evidence", evidence)
        try text.member("lock_holder", holder)
        // Of all causes, largest first.
        try text.member("shares", shares)
        text.endObject()
    }
}

extension CauseEvidence: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("name", name)
        try text.member("value", value)
        text.endObject()
    }
}

extension LockHolder: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("deadlock", isDeadlock)
        try text.member("name", name)
        try text.member("thread", thread.rawValue)
        text.endObject()
    }
}

extension CauseShare: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("class", cause.word)
        try text.member("fraction", fraction)
        text.endObject()
    }
}

/// The member `run`; a row has the rest of a process as members of its own.
extension ProcessRun: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("boot_id", bootID)
        try text.member("id", id.description)
        try text.member("start_ticks", startTicks)
        try text.member("started", started.rfc3339)
        text.endObject()
    }
}

extension Image: JSONWritable {
    func write(to text: inout JSONText) throws {
        try PlacedImage(
            path: path, buildID: buildID, loadAddress: loadAddress, endAddress: endAddress
        ).write(to: &text)
    }
}

/// When a function was on the stack.
private struct PresenceText: JSONWritable {
    var frame: Frame
    var presence: NumberedSamples.Presence

    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("from_ms", presence.from.milliseconds)
        try text.member("function", frame.title)
        try text.member("image", frame.imagePath)
        try text.member("share", presence.share)
        // Null: to the end.
        try text.member("until_ms", presence.until?.milliseconds)
        text.endObject()
    }
}

/// One sample of the stalled thread.
struct SampleText<Stack: JSONWritable>: JSONWritable {
    var sample: Sample
    /// Innermost first.
    var stack: Stack

    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("capture_cost_ms", sample.captureCost.milliseconds)
        try text.member("failure", sample.failure)
        try text.member("late", sample.isLate)
        try text.member("method", sample.method?.word)
        try text.member("offset_ms", sample.offset.milliseconds)
        try text.member("stack", stack)
        try text.member("thread", sample.thread.rawValue)
        try text.member("truncated", sample.isTruncated)
        try text.member("weight_ms", sample.weight.milliseconds)
        text.endObject()
    }
}

/// One function on a stack.
struct FrameText: JSONWritable {
    var frame: Frame
    /// Where the image was loaded, if that is known.
    var loadAddress: UInt64?

    func write(to text: inout JSONText) throws {
        text.beginObject()
        // The absolute address in that process: `0x55d0c8a01f40`.
        try text.member("address", loadAddress.map { "0x" + String($0 &+ frame.offset, radix: 16) })
        try text.member("build_id", frame.buildID?.description)
        try text.member("file", frame.file)
        try text.member("function", frame.function)
        try text.member("guessed", frame.isGuessed)
        try text.member("image", frame.imagePath)
        try text.member("inlined", frame.isInlined)
        try text.member("kind", frame.kind.word)
        try text.member("line", frame.line)
        // From the image's load address: `0x1f40`.
        try text.member("offset", "0x" + String(frame.offset, radix: 16))
        try text.member("raw_name", frame.rawName)
        text.endObject()
    }
}

extension [String: UInt64] {
    /// Frames with the load addresses of their images.
    fileprivate func stack(_ frames: [Frame]) -> [FrameText] {
        frames.map { frame in
            FrameText(
                frame: frame,
                loadAddress: frame.imagePath == nil ? 0 : frame.imagePath.flatMap { self[$0] })
        }
    }
}

/// A captured thread: the stalled one, whose stacks are in the samples, or another.
struct ThreadText<Stack: JSONWritable>: JSONWritable {
    var thread: ThreadSnapshot
    /// Nil for other threads.
    var sampleCount: Int?
    /// Innermost first; empty for the stalled thread.
    var stack: Stack

    func write(to text: inout JSONText) throws {
        text.beginObject()
        try text.member("failure", thread.failure)
        try text.member("id", thread.thread.rawValue)
        try text.member("method", thread.method?.word)
        try text.member("name", thread.name)
        // `stalled`, `holder`, `member` or `other`.
        try text.member("role", sampleCount == nil ? thread.role.word : "stalled")
        try text.member("sample_count", sampleCount ?? 1)
        try text.member("stack", stack)
        try text.member("truncated", thread.isTruncated)
        text.endObject()
    }
}

extension ThreadText where Stack == [FrameText] {
    init(stalled thread: ThreadID, sampleCount: Int) {
        self.init(
            thread: ThreadSnapshot(thread: thread, name: nil, role: .other, method: nil),
            sampleCount: sampleCount, stack: [])
    }
}
