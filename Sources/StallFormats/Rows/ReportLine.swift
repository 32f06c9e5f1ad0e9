// One line of JSON as a report. The keys are those that `stallctl export` writes; optional ones may be missing, and
// unknown keys are passed over.

internal import StallModel
internal import StallQuery

/// Something that JSON allows and a report does not.
struct LineProblem: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

struct ReportLine: Decodable {
    var schema: String
    var id: String
    var app: String
    var version: String
    var buildId: String?
    var host: String
    var pid: Int32
    var os: String?
    var device: String?
    var loop: String
    var mode: String?
    var phase: String?
    var activity: String?
    var start: String
    var durationMs: Double
    var cpuMs: Double?
    var ownMs: Double?
    var thresholdMs: Double
    var detectionDelayMs: Double?
    var state: String
    var ending: String?
    var verdict: String?
    var cause: CauseLine?
    var samples: [SampleLine]
    var threads: [ThreadLine]?
    var skippedThreads: Int?
    var agentMs: Double?
    var run: RunLine?
    var store: String?
    var seq: Int64?
    var revision: Int64?
    var images: [ImageLine]?

    // Written out: Foundation's conversion of keys takes a fifth of the time of reading a line.
    enum CodingKeys: String, CodingKey {
        case schema, id, app, version, host, pid, os, device, loop, mode, phase, activity, start,
            state, ending
        case verdict
        case cause, samples, threads, run, store, seq, revision, images
        case buildId = "build_id"
        case durationMs = "duration_ms"
        case cpuMs = "cpu_ms"
        case ownMs = "own_ms"
        case thresholdMs = "threshold_ms"
        case detectionDelayMs = "detection_delay_ms"
        case skippedThreads = "skipped_threads"
        case agentMs = "agent_ms"
    }

    struct RunLine: Decodable {
        var id: String
        var bootId: String
        var startTicks: UInt64
        var started: String

        enum CodingKeys: String, CodingKey {
            case id, started
            case bootId = "boot_id"
            case startTicks = "start_ticks"
        }
    }

    struct ImageLine: Decodable {
        var path: String
        var buildId: String?
        var loadAddress: String
        var endAddress: String

        enum CodingKeys: String, CodingKey {
            case path
            case buildId = "build_id"
            case loadAddress = "load_address"
            case endAddress = "end_address"
        }
    }

    struct CauseLine: Decodable {
        var `class`: String
        var confidence: Double
        var shares: [ShareLine]?
        var evidence: [EvidenceLine]?
        var lockHolder: HolderLine?

        enum CodingKeys: String, CodingKey {
            case `class`, confidence, shares, evidence
            case lockHolder = "lock_holder"
        }

        struct ShareLine: Decodable {
            var `class`: String
            var fraction: Double
        }
        struct EvidenceLine: Decodable {
            var name: String
            var value: String
        }
        struct HolderLine: Decodable {
            var thread: Int32
            var name: String?
            var deadlock: Bool?
        }
    }

    struct ThreadLine: Decodable {
        var id: Int32
        var name: String?
        var role: String?
        var method: String?
        var truncated: Bool?
        var failure: String?
        var stack: [FrameLine]?
    }

    struct SampleLine: Decodable {
        var offsetMs: Double
        var weightMs: Double
        var late: Bool?
        var thread: Int32
        var method: String?
        var truncated: Bool?
        var captureCostMs: Double?
        var failure: String?
        var stack: [FrameLine]

        enum CodingKeys: String, CodingKey {
            case late, thread, method, truncated, failure, stack
            case offsetMs = "offset_ms"
            case weightMs = "weight_ms"
            case captureCostMs = "capture_cost_ms"
        }
    }

    struct FrameLine: Decodable {
        var function: String?
        var rawName: String?
        var image: String?
        var buildId: String?
        var offset: String
        var file: String?
        var line: Int?
        var inlined: Bool?
        var guessed: Bool?
        var kind: String?

        enum CodingKeys: String, CodingKey {
            case function, image, offset, file, line, inlined, guessed, kind
            case rawName = "raw_name"
            case buildId = "build_id"
        }
    }

    /// A stack is cut after this many frames by every agent.
    private static let frameLimit = 100_000

    func report() throws -> PortableReport {
        let id = try Self.identifier(id, "id")
        let start = try Self.time(start, "start")
        let process = ProcessRun(
            // Without its own identifier a run is the part that all reports of one process share.
            id: try run.map { try Self.identifier($0.id, "run.id") } ?? derivedRun,
            app: app, version: version, buildID: try Self.buildID(buildId, "build_id"), host: host,
            pid: pid, bootID: run?.bootId ?? "", startTicks: run?.startTicks ?? 0,
            started: try run.map { try Self.time($0.started, "run.started") } ?? start, os: os,
            device: device)
        var report = StallReport(
            id: id, run: process, loop: loop, mode: mode ?? "",
            phase: try Self.word(phase, LoopPhase.words, "phase") ?? .unknown,
            activity: activity, start: start,
            duration: try Self.duration(durationMs, "duration_ms"),
            cpuTime: try Self.duration(cpuMs ?? 0, "cpu_ms"),
            threshold: try Self.duration(thresholdMs, "threshold_ms"),
            detectionDelay: try Self.duration(detectionDelayMs ?? 0, "detection_delay_ms"),
            state: try Self.word(state, StallState.words, "state") ?? .ended,
            verdict: try Self.word(verdict, StallVerdict.words, "verdict") ?? .stalled,
            samples: try samples.enumerated().map { try sample($1, "samples[\($0)]") })
        report.ending = try Self.word(ending, StallEnding.words, "ending")
        report.cause = try cause.map(Self.cause)
        report.agentTime = try Self.duration(agentMs ?? 0, "agent_ms")
        let own = try ownMs.map { try Self.duration($0, "own_ms") } ?? report.duration
        guard own <= report.duration else {
            throw LineProblem("has more than duration_ms in own_ms")
        }
        report.delayedTime = report.duration - own
        guard let skipped = UInt32(exactly: skippedThreads ?? 0) else {
            throw LineProblem("has a count out of range in skipped_threads")
        }
        report.skippedThreadCount = Int(skipped)
        // The stalled thread is in the samples.
        report.threads = try (threads ?? []).enumerated()
            .filter { $1.role ?? "stalled" != "stalled" }.map { try thread($1, "threads[\($0)]") }
        return PortableReport(
            report: report, origin: try origin(),
            images: try (images ?? []).enumerated().map { try image($1, "images[\($0)]") })
    }

    private func origin() throws -> ReportOrigin? {
        guard let store else {
            guard seq == nil else { throw LineProblem("has a seq and no store") }
            return nil
        }
        guard let seq else { throw LineProblem("has a store and no seq") }
        guard seq > 0, (revision ?? seq) >= seq else {
            throw LineProblem("has a seq or revision out of range")
        }
        return ReportOrigin(
            store: try Self.identifier(store, "store"), seq: seq, revision: revision ?? seq)
    }

    private var derivedRun: UniqueID {
        var random = HashedNumbers()
        for text in [app, version, buildId ?? "", host, "\(pid)"] { random.hash.combine(text) }
        random.combine(os: os, device: device)
        return UniqueID(version7At: UnixTime(microseconds: 0), random: &random)
    }

    private func image(_ line: ImageLine, _ key: String) throws -> Image {
        Image(
            path: line.path, buildID: try Self.buildID(line.buildId, "\(key).build_id"),
            loadAddress: try Self.address(line.loadAddress, "\(key).load_address"),
            endAddress: try Self.address(line.endAddress, "\(key).end_address"))
    }

    private func sample(_ line: SampleLine, _ key: String) throws -> Sample {
        guard line.stack.count <= Self.frameLimit else {
            throw LineProblem("has \(line.stack.count) frames in \(key).stack")
        }
        var sample = Sample(
            offset: try Self.duration(line.offsetMs, "\(key).offset_ms"),
            weight: try Self.duration(line.weightMs, "\(key).weight_ms"),
            isLate: line.late ?? false, thread: ThreadID(rawValue: line.thread),
            method: try Self.word(line.method, CaptureMethod.words, "\(key).method"),
            isTruncated: line.truncated ?? false,
            captureCost: try Self.duration(line.captureCostMs ?? 0, "\(key).capture_cost_ms"),
            failure: line.failure)
        (sample.locations, sample.frames) = try stack(line.stack, key)
        return sample
    }

    private func thread(_ line: ThreadLine, _ key: String) throws -> ThreadSnapshot {
        let (locations, frames) = try stack(line.stack ?? [], key)
        return ThreadSnapshot(
            thread: ThreadID(rawValue: line.id), name: line.name,
            role: try Self.word(line.role, ThreadRole.words, "\(key).role") ?? .other,
            method: try Self.word(line.method, CaptureMethod.words, "\(key).method"),
            isTruncated: line.truncated ?? false, failure: line.failure, locations: locations,
            frames: frames)
    }

    private func stack(
        _ lines: [FrameLine], _ key: String
    ) throws -> (locations: [CodeLocation], frames: [Frame]) {
        guard lines.count <= Self.frameLimit else {
            throw LineProblem("has \(lines.count) frames in \(key).stack")
        }
        var (locations, frames): ([CodeLocation], [Frame]) = ([], [])
        for (index, line) in lines.enumerated() {
            let place = "\(key).stack[\(index)]"
            let location = CodeLocation(
                imagePath: line.image, buildID: try Self.buildID(line.buildId, "\(place).build_id"),
                offset: try Self.address(line.offset, "\(place).offset"),
                kind: try Self.word(line.kind, CodeAddressKind.words, "\(place).kind")
                    ?? (index == 0 ? .interrupted : .returnAddress),
                isGuessed: line.guessed ?? false)
            var frame = Frame(location)
            frame.function = line.function
            frame.rawName = line.rawName
            frame.file = line.file
            frame.line = line.line
            frame.isInlined = line.inlined ?? false
            frames.append(frame)
            // Functions that were inlined at a location come before the one that contains it.
            if !frame.isInlined { locations.append(location) }
        }
        guard frames.last?.isInlined != true else {
            throw LineProblem("has a stack that ends in an inlined function in \(key)")
        }
        return (locations, frames)
    }

    private static func cause(_ line: CauseLine) throws -> StallCause {
        func known(_ text: String, _ key: String) throws -> CauseClass {
            guard let cause = CauseClass(word: text) else {
                throw LineProblem("has an unknown word '\(text.prefix(40))' in \(key)")
            }
            return cause
        }
        func part(_ number: Double, _ key: String) throws -> Double {
            guard (0...1).contains(number) else {
                throw LineProblem("has a number that is not from 0 to 1 in \(key)")
            }
            return number
        }
        return StallCause(
            try known(line.class, "cause.class"),
            confidence: try part(line.confidence, "cause.confidence"),
            shares: try (line.shares ?? []).map {
                CauseShare(
                    try known($0.class, "cause.shares"), try part($0.fraction, "cause.shares"))
            },
            evidence: (line.evidence ?? []).map { CauseEvidence($0.name, $0.value) },
            holder: line.lockHolder.map {
                LockHolder(
                    thread: ThreadID(rawValue: $0.thread), name: $0.name,
                    isDeadlock: $0.deadlock ?? false)
            })
    }
}

extension ReportLine {
    static func identifier(_ text: String, _ key: String) throws -> UniqueID {
        let digits = text.filter { $0 != "-" }
        guard digits.utf8.count == 32, let bytes = [UInt8](hexadecimal: digits),
            let id = UniqueID(bytes: bytes)
        else { throw LineProblem("has no identifier of 32 hexadecimal digits in \(key)") }
        return id
    }

    static func buildID(_ text: String?, _ key: String) throws -> BuildID? {
        guard let text else { return nil }
        guard let id = BuildID(hexadecimal: text) else {
            throw LineProblem("has no hexadecimal digits in \(key)")
        }
        return id
    }

    static func address(_ text: String, _ key: String) throws -> UInt64 {
        guard text.hasPrefix("0x"), let number = UInt64(text.dropFirst(2), radix: 16) else {
            throw LineProblem("has no number such as 0x1f40 in \(key)")
        }
        return number
    }

    /// Of at most ten years: more is a mistake of the writer.
    static func duration(_ milliseconds: Double, _ key: String) throws -> Duration {
        guard milliseconds >= 0, milliseconds <= 3.2e11 else {
            throw LineProblem("has a duration out of range in \(key)")
        }
        return .nanoseconds(Int64((milliseconds * 1e6).rounded()))
    }

    static func word<Value>(
        _ text: String?, _ words: [String: Value], _ key: String
    ) throws -> Value? {
        guard let text else { return nil }
        guard let value = words[text] else {
            throw LineProblem("has an unknown word '\(text.prefix(40))' in \(key)")
        }
        return value
    }

    private static func dayCount(ofMonth month: Int64, in year: Int64) -> Int64 {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// RFC 3339, in any zone, to the microsecond. Unix time has no leap seconds: none has a number of its own.
    static func time(_ text: String, _ key: String) throws -> UnixTime {
        var rest = TimeText(text)
        guard let year = rest.number(4), rest.skip("-"), let month = rest.number(2, 1...12),
            rest.skip("-"), let day = rest.number(2, 1...Self.dayCount(ofMonth: month, in: year)),
            rest.skip("Tt "),
            let hour = rest.number(2, 0...23), rest.skip(":"), let minute = rest.number(2, 0...59),
            rest.skip(":"), let second = rest.number(2, 0...59), let microsecond = rest.fraction(),
            let zone = rest.zone(), rest.isAtEnd
        else { throw LineProblem("has no time such as 2026-11-21T09:30:00Z in \(key)") }
        // Days since 1970 by the proleptic Gregorian calendar; March is the first month of a year.
        let shifted = month > 2 ? year : year - 1
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + ofYear - 719_468
        let seconds = days * 86400 + hour * 3600 + minute * 60 + second - zone
        return UnixTime(microseconds: seconds * 1_000_000 + microsecond)
    }
}

/// The text of a time, of which one part after the other is taken.
private struct TimeText {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = text[...].utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    /// Takes that many digits.
    mutating func number(_ count: Int, _ range: ClosedRange<Int64> = 0...9999) -> Int64? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy(isDigit) else { return nil }
        rest = rest.dropFirst(count)
        let number = digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        return range.contains(number) ? number : nil
    }

    /// Takes one of these characters.
    mutating func skip(_ characters: String) -> Bool {
        guard let first = rest.first, characters.utf8.contains(first) else { return false }
        rest = rest.dropFirst()
        return true
    }

    /// The microseconds that one to nine digits behind a point stand for; none without a point.
    mutating func fraction() -> Int64? {
        guard skip(".") else { return 0 }
        let count = rest.prefix(while: isDigit).count
        guard (1...9).contains(count) else { return nil }
        let kept = min(count, 6)
        let number = number(kept, 0...999_999)
        rest = rest.dropFirst(count - kept)
        return number.map { (kept..<6).reduce($0) { number, _ in number * 10 } }
    }

    /// How many seconds the zone is ahead of UTC.
    mutating func zone() -> Int64? {
        if skip("Zz") { return 0 }
        let isBehind = rest.first == UInt8(ascii: "-")
        guard skip("+-"), let hours = number(2, 0...23), skip(":"),
            let minutes = number(2, 0...59)
        else {
            return nil
        }
        return (isBehind ? -1 : 1) * (hours * 3600 + minutes * 60)
    }

    private func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}

// The words of the model's cases, looked up for each line.

extension StallState {
    static let words = byWord
}
extension StallEnding {
    static let words = byWord
}
extension StallVerdict {
    static let words = byWord
}
extension LoopPhase {
    static let words = byWord
}
extension CodeAddressKind {
    static let words = byWord
}
extension CaptureMethod {
    static let words = byWord
}
extension ThreadRole {
    static let words = byWord
}
