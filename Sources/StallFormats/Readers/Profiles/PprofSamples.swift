// Profiles of pprof (profile.proto), as Go, Pyroscope, Parca, Datadog and `stallctl export` write them; the
// stream undoes the compression.
//
// The format has no times of single samples. A sample has several values: the one that the profile names as its default
// is taken, or else the last. Labels name the threads, by the convention of each writer.
//
// **Source:** google/pprof, proto/profile.proto.

internal import StallModel
internal import StallQuery

/// Reads a profile: a report for each thread that its labels name, or one.
struct PprofSamples: FormatReader {
    private static let sizeLimit = 1 << 28
    /// Frames of a report and of the profile, but for the heaviest stack of each thread. A frame with long names counts
    /// as several.
    private static let (reportLimit, frameLimit) = (1 << 20, 1 << 22)

    private(set) var lines: TextLines
    private var isRead = false
    private var profile: PprofStacks?
    /// Of the next report.
    private var group = 0
    private var room = Self.frameLimit

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    /// Every field is one of a profile, and there is the type of a value: two numbers of strings.
    static func recognizes(_ beginning: TextBeginning) -> Bool {
        let bytes = beginning.bytes
        guard let first = bytes.first, first & 7 == 2 || first & 7 == 0, first >= 0x08 else {
            return false
        }
        var fields = ProtobufFields(bytes)
        var hasType = false
        while let (field, value) = fields.next() {
            switch (field, value) {
            case (1, .bytes(let range)), (11, .bytes(let range)):
                guard has(onlyNumbers: 1...2, bytes, range) else { return false }
                hasType = hasType || (field == 1 && !range.isEmpty)
            case (2...6, .bytes), (13, .bytes), (7...10, .number), (12...15, .number): break
            default: return false
            }
        }
        return hasType
    }

    private static func has(
        onlyNumbers numbers: ClosedRange<Int>, _ bytes: [UInt8], _ range: Range<Int>
    ) -> Bool {
        var fields = ProtobufFields(bytes, range)
        while let (field, value) = fields.next() {
            guard numbers.contains(field), case .number = value else { return false }
        }
        return !fields.isBroken
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        if !isRead { try read() }
        guard var profile, group < profile.groups.count else {
            profile = nil
            return nil
        }
        // Not copied.
        self.profile = nil
        defer {
            self.profile = profile
            group += 1
        }
        return report(&profile)
    }

    private mutating func read() throws(LineFault) {
        isRead = true
        guard let bytes = lines.takeBytes(limit: Self.sizeLimit) else {
            if lines.errno != 0 { return }
            throw LineFault(
                line: 1, reason: "the profile is longer than \(Self.sizeLimit >> 20) MB")
        }
        do throws(NoStall) {
            profile = try PprofStacks(bytes)
        } catch {
            throw LineFault(line: 1, reason: "the profile \(error.reason)")
        }
    }

    private mutating func report(_ profile: inout PprofStacks) -> ForeignReport {
        var report = ForeignReport(kind: .samples, line: 1)
        let (key, stacks) = (profile.groups[group].key, profile.groups[group].stacks)
        if let mapping = profile.tables.mainMapping {
            let path = profile.tables.string(mapping.path)
            report.buildID = BuildID(hexadecimal: profile.tables.string(mapping.buildID))
            // `[vdso]` and `//anon` are no programs.
            if !path.hasPrefix("["), !path.hasPrefix("//") {
                report.app = path.split(separator: "/").last.map(String.init) ?? ""
            }
        }
        if key.loop != 0 {
            report.app = profile.tables.string(key.app)
            report.version = profile.tables.string(key.version)
        }
        report.pid = key.pid
        if profile.tables.time > 0 {
            report.start = UnixTime(microseconds: profile.tables.time / 1000)
        }
        let name = profile.tables.string(key.loop != 0 ? key.loop : key.name)
        var thread = ForeignThread(
            number: key.tid ?? Int32(truncatingIfNeeded: group + 1), name: name.isEmpty ? nil : name
        )
        thread.samples = samples(profile.kept(stacks), &profile)
        let all = stacks.reduce(0.0) { $0 + Double(profile.counts[$1]) }
        thread.omittedCount = max(0, all - thread.samples.reduce(0.0) { $0 + Double($1.count) })
        // The time that the profile was taken for is no thread's.
        report.duration = duration(ofCount: all, &profile)
        report.threads = [thread]
        return report
    }

    private func duration(ofCount count: Double, _ profile: inout PprofStacks) -> Duration? {
        let nanoseconds: Double
        switch profile.unit {
        case .time(let unit): nanoseconds = count * Double(unit)
        case .count:
            guard let interval = profile.tables.sampleInterval() else { return nil }
            nanoseconds = count * Double(interval.nanoseconds)
        case .other: return nil
        }
        return .nanoseconds(Int64(exactly: nanoseconds.rounded()) ?? .max)
    }

    /// - Parameter stacks: In the order of the profile, in which the samples are, too.
    private mutating func samples(
        _ stacks: [Int], _ profile: inout PprofStacks
    ) -> [ForeignSample] {
        let limit = min(Self.reportLimit, room)
        var left = limit
        var samples: [(place: Int, sample: ForeignSample)] = []
        let counts = stacks.map { profile.counts[$0] }
        for place in stacks.indices.sorted(by: { (counts[$0], $1) > (counts[$1], $0) }) {
            let (sample, cost) = sample(stacks[place], count: counts[place], &profile)
            guard cost <= left || samples.isEmpty else { continue }
            left = max(0, left - cost)
            samples.append((place, sample))
        }
        room -= limit - left
        return samples.sorted { $0.place < $1.place }.map(\.sample)
    }

    private func sample(
        _ stack: Int, count: Int64, _ profile: inout PprofStacks
    ) -> (ForeignSample, cost: Int) {
        var (sample, cost) = (ForeignSample(count: count), 0)
        for (place, location) in profile.locations(of: stack).enumerated() {
            guard sample.frames.count < SampledTree.frameLimit else {
                sample.isTruncated = true
                break
            }
            var frames = profile.tables.frames(of: location)
            if place == 0 {
                for index in frames.indices { frames[index].kind = .interrupted }
            }
            for frame in frames {
                let names = [frame.function, frame.image, frame.file]
                cost += 1 + names.reduce(0) { $0 + ($1?.utf8.count ?? 0) } / 256
            }
            sample.frames += frames
        }
        return (sample, cost)
    }
}
