// Another program's report as one of ours. Unknown values stay unknown: a duration of zero, an empty name.

internal import StallModel
internal import StallQuery

extension ForeignReport {
    /// - Parameters:
    ///   - format: Of the text that it was read from.
    ///   - modified: When that text was written: the start of reports that have no time.
    /// - Throws: A clause that says why it is none.
    func stall(
        _ options: ReadingOptions, format: ReportFormat, modified: UnixTime
    ) throws(NoStall) -> PortableReport {
        let verdict = try verdict(options)
        guard let stalled = try stalledThread(options) else { throw NoStall("has no thread") }
        let thread = threads[stalled]
        let duration = duration ?? options.duration ?? sampled(thread, options) ?? .zero
        guard Self.durations.contains(duration) else {
            throw NoStall("has a duration out of range")
        }
        let named = named(options)
        var stacks = StacksOfReport(demangle: options.demangle)
        var numbers = HashedNumbers(self, self.format ?? format, &stacks)
        let start = start ?? likelyStart ?? modified
        let id = UniqueID(version7At: self.start ?? UnixTime(microseconds: 0), random: &numbers)
        let run = ProcessRun(
            id: named.runID, app: named.app, version: named.version, buildID: buildID, host: host,
            pid: max(0, pid ?? 0), bootID: "", startTicks: 0, started: start,
            os: os, device: device)
        var report = StallReport(
            id: id, run: run, loop: thread.loopName, mode: "", phase: .unknown, start: start,
            duration: duration, threshold: .zero, state: isAtLeast ? .hang : .ended,
            verdict: verdict, samples: samples(of: thread, duration, &stacks))
        report.threads = threads.indices.filter { $0 != stalled }
            .prefix(Self.threadLimit).map { snapshot(of: threads[$0], &stacks) }
        return PortableReport(report: report, origin: nil, images: images)
    }

    private func verdict(_ options: ReadingOptions) throws(NoStall) -> StallVerdict {
        switch kind {
        case .hang, .snapshot: return .stalled
        case .samples: return options.takesAllAsStalls ? .stalled : .sampled
        case .crash:
            if options.takesAllAsStalls { return .stalled }
            throw NoStall("is a crash, not a stall: --as stall imports it as one")
        case .other(let what): throw NoStall("is \(what), not a stall")
        }
    }

    private func stalledThread(_ options: ReadingOptions) throws(NoStall) -> Int? {
        guard let wanted = options.thread else {
            return stalledThread ?? threads.firstIndex { $0.isMain } ?? threads.indices.first
        }
        guard let found = threads.firstIndex(where: { $0.isCalled(wanted) }) else {
            throw NoStall("has no thread '\(wanted)'")
        }
        return found
    }

    private func named(_ options: ReadingOptions) -> ForeignReport {
        var report = self
        report.app = options.app ?? app
        report.version = options.version ?? version
        return report
    }

    /// The run is the part that all reports of one process share.
    private var runID: UniqueID {
        var numbers = HashedNumbers()
        for text in [app, version, buildID?.description ?? "", host, "\(pid ?? 0)"] {
            numbers.hash.combine(text)
        }
        numbers.combine(os: os, device: device)
        return UniqueID(version7At: UnixTime(microseconds: 0), random: &numbers)
    }

    /// Of at most ten years, as in a line of JSON.
    private static let durations = Duration.zero...(.milliseconds(320_000_000_000))

    /// The most that a store takes; of more, the samples with the greatest counts.
    private static let (sampleLimit, threadLimit) = (4096, 1 << 16)

    private func samples(
        of thread: ForeignThread, _ duration: Duration, _ stacks: inout StacksOfReport
    ) -> [Sample] {
        var samples = thread.samples
        if samples.count > Self.sampleLimit {
            let kept = samples.indices.sorted { samples[$0].count > samples[$1].count }
                .prefix(Self.sampleLimit).sorted()
            samples = kept.map { samples[$0] }
        }
        // Time of samples that are left out is no other sample's.
        let total = thread.count
        var (before, end) = (0.0, Int64(0))
        return samples.map { sample in
            // Each ends where the next one begins, so that the sum of all is not rounded.
            before += Double(max(0, sample.count))
            let start = end
            let part = (Double(duration.nanoseconds) * before / max(total, 1)).rounded()
            end = max(start, min(Int64(part), duration.nanoseconds))
            let stack = stacks[sample.frames]
            return Sample(
                offset: min(sample.offset, duration), weight: .nanoseconds(end - start),
                thread: ThreadID(rawValue: thread.number), method: nil,
                isTruncated: sample.isTruncated, locations: stack.locations, frames: stack.frames)
        }
    }

    /// The time that the samples stand for; nil if the time between two is unknown.
    private func sampled(_ thread: ForeignThread, _ options: ReadingOptions) -> Duration? {
        guard kind == .samples, let interval = options.sampleInterval else { return nil }
        let nanoseconds = Double(interval.nanoseconds) * (thread.count / Double(countOfSample))
        return .nanoseconds(Int64(exactly: nanoseconds.rounded()) ?? .max)
    }

    private func snapshot(
        of thread: ForeignThread, _ stacks: inout StacksOfReport
    ) -> ThreadSnapshot {
        let heaviest = thread.samples.max { $0.count < $1.count }
        let stack = stacks[heaviest?.frames ?? []]
        return ThreadSnapshot(
            thread: ThreadID(rawValue: thread.number), name: thread.name, role: .other, method: nil,
            isTruncated: heaviest?.isTruncated ?? false, locations: stack.locations,
            frames: stack.frames)
    }
}

/// Why a report is not taken, as a clause.
struct NoStall: Error {
    var reason: String
    init(_ reason: String) { self.reason = reason }
}

extension ForeignThread {
    fileprivate var loopName: String { isMain ? "main" : name ?? "thread \(number)" }
}

extension ForeignThread {
    /// The sum of the counts of all its samples.
    fileprivate var count: Double {
        samples.reduce(omittedCount) { $0 + Double(max(0, $1.count)) }
    }

    /// Whether it is the thread that a user names: by its number or its name, or as the main thread.
    func isCalled(_ wanted: String) -> Bool {
        name == wanted || "\(number)" == wanted || (isMain && wanted == "main")
    }
}

extension HashedNumbers {
    /// The same for the same report, whatever file it is in.
    fileprivate init(
        _ report: ForeignReport, _ format: ReportFormat, _ stacks: inout StacksOfReport
    ) {
        self.init()
        hash.combine(format.rawValue)
        if report.occurrence > 0 { hash.combine(report.occurrence) }
        if let identifier = report.identifier {
            hash.combine(identifier)
            hash.combine(UInt64(bitPattern: report.start?.microseconds ?? 0))
            return
        }
        for text in [report.app, report.version, report.host, "\(report.pid ?? 0)"] {
            hash.combine(text)
        }
        if let text = report.timeText { hash.combine(text) }
        hash.combine(UInt64(bitPattern: report.start?.microseconds ?? 0))
        hash.combine(UInt64(bitPattern: report.duration?.nanoseconds ?? -1))
        for thread in report.threads {
            hash.combine(UInt64(bitPattern: Int64(thread.number)))
            for sample in thread.samples {
                hash.combine(UInt64(bitPattern: sample.count))
                hash.combine(UInt64(bitPattern: sample.offset.nanoseconds))
                hash.combine(UInt64(bitPattern: stacks[sample.frames].hash))
            }
        }
    }
}
