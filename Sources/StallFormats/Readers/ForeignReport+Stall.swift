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
        let duration = duration ?? options.duration ?? .zero
        guard Self.durations.contains(duration) else {
            throw NoStall("has a duration out of range")
        }
        let named = named(options)
        var numbers = HashedNumbers(self, format)
        let start = start ?? modified
        let id = UniqueID(version7At: self.start ?? UnixTime(microseconds: 0), random: &numbers)
        let run = ProcessRun(
            id: named.runID, app: named.app, version: named.version, buildID: buildID, host: host,
            pid: max(0, pid ?? 0), bootID: "", startTicks: 0, started: start)
        var report = StallReport(
            id: id, run: run, loop: thread.loopName, mode: "", phase: .unknown, start: start,
            duration: duration, threshold: .zero, state: isAtLeast ? .hang : .ended,
            verdict: verdict, samples: samples(of: thread, duration, options))
        report.threads = threads.indices.filter { $0 != stalled }
            .prefix(Self.threadLimit).map { snapshot(of: threads[$0], options) }
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
        let found = threads.firstIndex {
            $0.name == wanted || "\($0.number)" == wanted || ($0.isMain && wanted == "main")
        }
        guard let found else { throw NoStall("has no thread '\(wanted)'") }
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
        return UniqueID(version7At: UnixTime(microseconds: 0), random: &numbers)
    }

    /// Of at most ten years, as in a line of JSON.
    private static let durations = Duration.zero...(.milliseconds(320_000_000_000))

    /// The most that a store takes; of more, the samples with the greatest counts.
    private static let (sampleLimit, threadLimit) = (4096, 1 << 16)

    private func samples(
        of thread: ForeignThread, _ duration: Duration, _ options: ReadingOptions
    ) -> [Sample] {
        var samples = thread.samples
        if samples.count > Self.sampleLimit {
            let kept = samples.indices.sorted { samples[$0].count > samples[$1].count }
                .prefix(Self.sampleLimit).sorted()
            samples = kept.map { samples[$0] }
        }
        let total = samples.reduce(0.0) { $0 + Double(max(0, $1.count)) }
        return samples.map { sample in
            let share = total > 0 ? Double(max(0, sample.count)) / total : 0
            let (locations, frames) = sample.symbolized(options)
            return Sample(
                offset: min(sample.offset, duration),
                weight: .nanoseconds(Int64((Double(duration.nanoseconds) * share).rounded(.down))),
                thread: ThreadID(rawValue: thread.number), method: nil,
                isTruncated: sample.isTruncated, locations: locations, frames: frames)
        }
    }

    private func snapshot(of thread: ForeignThread, _ options: ReadingOptions) -> ThreadSnapshot {
        let heaviest = thread.samples.max { $0.count < $1.count }
        let (locations, frames) = heaviest?.symbolized(options) ?? ([], [])
        return ThreadSnapshot(
            thread: ThreadID(rawValue: thread.number), name: thread.name, role: .other, method: nil,
            isTruncated: heaviest?.isTruncated ?? false, locations: locations, frames: frames)
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

extension ForeignSample {
    private static let frameLimit = 1000

    fileprivate func symbolized(
        _ options: ReadingOptions
    ) -> (locations: [CodeLocation], frames: [Frame]) {
        var frames = frames
        frames.markInlined()
        var inlined: [ForeignFrame] = []
        var symbolized = frames.prefix(Self.frameLimit).map { frame in
            defer { if frame.isInlined { inlined.append(frame) } else { inlined = [] } }
            return frame.symbolized(inlined, options)
        }
        // Its function may be cut off.
        if let last = symbolized.indices.last { symbolized[last].isInlined = false }
        return (symbolized.filter { !$0.isInlined }.map(CodeLocation.init), symbolized)
    }
}

extension [ForeignFrame] {
    /// Functions at one address are inlined into the last of them. The same function again is a recursion.
    fileprivate mutating func markInlined() {
        var first = 0
        for index in indices.dropFirst() {
            let isSame =
                self[index].offset != nil && self[index].offset == self[first].offset
                && self[index].image == self[first].image
                && self[index].buildID == self[first].buildID
                && self[index].function != nil && self[index - 1].function != nil
                && self[index].function != self[first].function
            guard isSame else {
                first = index
                continue
            }
            self[index - 1].isInlined = true
            self[index].kind = self[first].kind
        }
    }
}

extension ForeignFrame {
    /// - Parameter inlined: The functions that were inlined into it.
    fileprivate func symbolized(_ inlined: [ForeignFrame], _ options: ReadingOptions) -> Frame {
        var frame = Frame(location(with: inlined))
        frame.function = function.map(options.demangle)
        frame.rawName = frame.function == function ? nil : function
        frame.file = file
        frame.line = line
        frame.isInlined = isInlined
        return frame
    }

    /// A name without an address takes the place of one: with its line, and all that was inlined there, it is equal in
    /// every report.
    private func location(with inlined: [ForeignFrame]) -> CodeLocation {
        if let offset {
            return CodeLocation(imagePath: image, buildID: buildID, offset: offset, kind: kind)
        }
        var hash = ContentHash()
        for frame in inlined {
            hash.combine(frame.function)
            hash.combine(frame.file)
            hash.combine(UInt64(max(frame.line ?? 0, 0)))
        }
        hash.combine(function)
        hash.combine(file)
        return CodeLocation(
            imagePath: image ?? Frame.unknownImage,
            buildID: withUnsafeBytes(of: hash.value.bigEndian) { BuildID(bytes: $0) },
            offset: UInt64(max(line ?? 0, 0)), kind: kind)
    }
}

extension CodeLocation {
    fileprivate init(_ frame: Frame) {
        self.init(
            imagePath: frame.imagePath, buildID: frame.buildID, offset: frame.offset,
            kind: frame.kind)
    }
}

extension HashedNumbers {
    /// The same for the same report, whatever file it is in.
    fileprivate init(_ report: ForeignReport, _ format: ReportFormat) {
        self.init()
        hash.combine(format.rawValue)
        if let identifier = report.identifier {
            hash.combine(identifier)
            hash.combine(UInt64(bitPattern: report.start?.microseconds ?? 0))
            return
        }
        for text in [report.app, report.version, report.host, "\(report.pid ?? 0)"] {
            hash.combine(text)
        }
        hash.combine(UInt64(bitPattern: report.start?.microseconds ?? 0))
        hash.combine(UInt64(bitPattern: report.duration?.nanoseconds ?? -1))
        for thread in report.threads {
            hash.combine(UInt64(bitPattern: Int64(thread.number)))
            for sample in thread.samples {
                hash.combine(UInt64(bitPattern: sample.count))
                hash.combine(UInt64(bitPattern: sample.offset.nanoseconds))
                for frame in sample.frames {
                    hash.combine(frame.function)
                    hash.combine(frame.image)
                    hash.combine(frame.offset ?? 0)
                    hash.combine(frame.file)
                    hash.combine(UInt64(bitPattern: Int64(frame.line ?? 0)))
                }
            }
        }
    }
}
