// Reports with every kind of value in every field, which no agent would write, but could. The same seed gives the same
// reports, so that failures are reproducible.

package import StallModel

/// Makes the reports of one process run.
package struct ReportGenerator {
    package var random: SeededGenerator
    package var run: ProcessRun
    package let images: [Image]
    private var clock: Int64 = 1_700_000_000_000_000

    package init(seed: UInt64, app: String = "photos") {
        random = SeededGenerator(seed: seed)
        let started = UnixTime(microseconds: 1_700_000_000_000_000)
        run = ProcessRun(
            id: UniqueID(version7At: started, random: &random), app: app, version: "2.\(seed).0",
            buildID: BuildID(bytes: [1, 2, 3, 4, 5, 6, 7, UInt8(truncatingIfNeeded: seed)]),
            host: "web-\(seed % 3)", pid: Int32(seed % 30_000) + 2,
            bootID: "no boot of this machine",
            startTicks: .max - seed, started: started,
            os: [nil, "Debian GNU/Linux 12", "iOS 17.4.1"][Int(seed % 3)],
            device: [nil, "iPhone14,2", "Standard PC (Q35 + ICH9, 2009), größer"][Int(seed / 2 % 3)]
        )
        images = [
            Image(
                path: "/opt/\(app)", buildID: run.buildID, loadAddress: 0x5555_0000_0000,
                endAddress: 0x5555_0100_0000),
            Image(
                path: "/usr/lib/libc.so.6", buildID: BuildID(bytes: Array(0..<20)),
                loadAddress: 0x7f00_0000_0000, endAddress: 0x7f00_0020_0000),
            // No build ID, and a name that is not only ASCII.
            Image(
                path: "/opt/plug ins/grün.so", buildID: nil, loadAddress: 0x7f11_0000_0000,
                endAddress: .max),
        ]
    }

    package mutating func report(state: StallState? = nil) -> StallReport {
        clock += Int64.random(in: 0...2_000_000, using: &random)
        let start = UnixTime(microseconds: clock)
        let count = Int.random(in: 0...5, using: &random)
        var report = StallReport(
            id: UniqueID(version7At: start, random: &random), run: run,
            loop: ["main", "decoder", ""].randomElement(using: &random)!,
            mode: ["default", "tracking"].randomElement(using: &random)!,
            phase: LoopPhase(rawValue: UInt8.random(in: 0...7, using: &random))!,
            activity: [nil, "open album", "Größe ändern \u{1F5BC}", ""].randomElement(
                using: &random)!,
            start: start, duration: duration(), cpuTime: duration(),
            threshold: .milliseconds([100, 250].randomElement(using: &random)!),
            detectionDelay: duration(),
            state: state ?? StallState(rawValue: UInt8.random(in: 0...2, using: &random))!,
            verdict: StallVerdict(rawValue: UInt8.random(in: 0...8, using: &random))!,
            samples: (0..<count).map { _ in sample() }, cause: cause(),
            threads: (0..<max(0, Int.random(in: -3...3, using: &random))).map { _ in thread() },
            skippedThreadCount: Int.random(in: 0...1000, using: &random), agentTime: duration())
        // Of every other stall a third was not its thread's own time.
        if report.verdict == .stalled, count % 2 == 1 {
            report.delayedTime = .nanoseconds(report.duration.nanoseconds / 3)
        }
        return report
    }

    /// None in a third of the reports; evidence of every kind of name.
    package mutating func cause() -> StallCause? {
        if Int.random(in: 0..<3, using: &random) == 0 { return nil }
        let classes = CauseClass.allCases.shuffled(using: &random).prefix(3)
        let names = ["system call", "not readable", "of a later version", ""]
        return StallCause(
            classes[0], confidence: .random(in: 0...1, using: &random),
            shares: classes.map {
                CauseShare($0, Double(Int.random(in: 0...1000, using: &random)) / 1000)
            },
            evidence: names.prefix(Int.random(in: 0...4, using: &random)).map {
                CauseEvidence($0, "fsync(7: /größe \(Int.random(in: 0...99, using: &random)))")
            },
            holder: Bool.random(using: &random)
                ? nil
                : LockHolder(
                    thread: ThreadID(rawValue: .random(in: 1...(.max), using: &random)),
                    name: [nil, "", "compactor"].randomElement(using: &random)!,
                    isDeadlock: Bool.random(using: &random)))
    }

    package mutating func thread() -> ThreadSnapshot {
        let sample = sample()
        return ThreadSnapshot(
            thread: sample.thread, name: [nil, "", "größer"].randomElement(using: &random)!,
            role: [.holder, .member, .other].randomElement(using: &random)!,
            method: sample.method, isTruncated: sample.isTruncated, failure: sample.failure,
            locations: sample.locations)
    }

    package mutating func sample() -> Sample {
        let thread = ThreadID(rawValue: Int32.random(in: 1...(.max), using: &random))
        if Int.random(in: 0..<6, using: &random) == 0 {
            return Sample(
                offset: duration(), weight: .zero, isLate: Bool.random(using: &random),
                thread: thread, method: nil, captureCost: duration(),
                failure: "thread \(thread.rawValue) ended before its stack was captured")
        }
        let depth = Int.random(in: 0...40, using: &random)
        return Sample(
            offset: duration(), weight: duration(), isLate: Bool.random(using: &random),
            thread: thread, method: Bool.random(using: &random) ? .signal : .signalFree,
            isTruncated: Bool.random(using: &random), captureCost: duration(),
            locations: (0..<depth).map { location(depth: $0) })
    }

    package mutating func location(depth: Int) -> CodeLocation {
        let kind: CodeAddressKind =
            depth == 0
            ? .interrupted
            : Int.random(in: 0..<9, using: &random) == 0 ? .asyncResume : .returnAddress
        let isGuessed = Int.random(in: 0..<9, using: &random) == 0
        guard let image = (images + [nil]).randomElement(using: &random)! else {
            return CodeLocation(
                imagePath: nil, buildID: nil,
                offset: .random(in: (.max - 9)...(.max), using: &random),
                kind: kind, isGuessed: isGuessed)
        }
        return CodeLocation(
            imagePath: image.path, buildID: image.buildID,
            offset: .random(in: 0x1000...0x1040, using: &random), kind: kind, isGuessed: isGuessed)
    }

    /// Symbols for every location of a report.
    package mutating func names(of report: StallReport) -> [CodeLocation: [Frame]] {
        // A set's order is another one in each process.
        let places = report.places.sorted {
            ($0.offset, $0.imagePath ?? "", $0.kind.rawValue)
                < ($1.offset, $1.imagePath ?? "", $1.kind.rawValue)
        }
        return Dictionary(uniqueKeysWithValues: places.map { ($0, names($0)) })
    }

    /// Names for a location: some have none, some several.
    package mutating func names(_ location: CodeLocation) -> [Frame] {
        let count = [1, 1, 1, 2, 3].randomElement(using: &random)!
        return (0..<count).map { position in
            var frame = Frame(location)
            frame.isInlined = position < count - 1
            if Int.random(in: 0..<4, using: &random) == 0 { return frame }
            frame.function = "closure #1 in Timeline.tick\(Int.random(in: 0..<5, using: &random))()"
            frame.rawName = Bool.random(using: &random) ? "$s8Timeline4tickyyF\(position)" : nil
            frame.file = Bool.random(using: &random) ? "/src/Timeline.swift" : nil
            frame.line =
                Bool.random(using: &random) ? Int.random(in: 1...9_999, using: &random) : nil
            return frame
        }
    }

    /// From nothing to hours, all magnitudes alike.
    private mutating func duration() -> Duration {
        let limit = Int64(1) << Int64.random(in: 0...44, using: &random)
        return .nanoseconds(Int64.random(in: 0..<limit, using: &random))
    }
}

extension StallReport {
    /// The report as the store answers it once these names are attached.
    package func named(_ names: [CodeLocation: [Frame]] = [:]) -> StallReport {
        func frames(_ locations: [CodeLocation]) -> [Frame] {
            locations.flatMap { location in
                var place = location
                place.isGuessed = false
                return (names[place] ?? [Frame(place)]).map { frame in
                    var frame = frame
                    frame.isGuessed = location.isGuessed
                    return frame
                }
            }
        }
        var report = self
        for index in report.samples.indices {
            report.samples[index].frames = frames(samples[index].locations)
        }
        for index in report.threads.indices {
            report.threads[index].frames = frames(threads[index].locations)
        }
        return report
    }

    /// The locations of its stacks, not guessed, each once.
    package var places: Set<CodeLocation> {
        Set(
            locations.map { location in
                var place = location
                place.isGuessed = false
                return place
            })
    }
}
