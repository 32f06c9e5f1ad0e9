// One line of JSON as a report. The keys are those that `stallctl export` writes; what a report can do
// without may be missing, and keys that nobody knows are passed over.

internal import StallModel

/// Something that JSON allows and a report does not.
struct LineProblem: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

struct ReportLine: Decodable {
    var id: String
    var app: String
    var version: String
    var buildId: String?
    var host: String
    var pid: Int32
    var loop: String
    var mode: String?
    var phase: String?
    var activity: String?
    var start: String
    var durationMs: Double
    var cpuMs: Double?
    var thresholdMs: Double
    var detectionDelayMs: Double?
    var state: String
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

    struct RunLine: Decodable {
        var id: String
        var bootId: String
        var startTicks: UInt64
        var started: String
    }

    struct ImageLine: Decodable {
        var path: String
        var buildId: String?
        var loadAddress: String
        var endAddress: String
    }

    struct CauseLine: Decodable {
        var `class`: String
        var confidence: Double
        var shares: [ShareLine]?
        var evidence: [EvidenceLine]?
        var lockHolder: HolderLine?

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
    }

    /// A stack is cut after this many frames by every agent.
    private static let frameLimit = 100_000

    func report() throws -> PortableReport {
        let id = try Self.identifier(id, "id")
        let start = try Self.time(start, "start")
        let process = ProcessRun(
            // Without its own identifier a run is what all reports of one process have in common.
            id: try run.map { try Self.identifier($0.id, "run.id") } ?? derivedRun,
            app: app, version: version, buildID: try Self.buildID(buildId, "build_id"), host: host,
            pid: pid, bootID: run?.bootId ?? "", startTicks: run?.startTicks ?? 0,
            started: try run.map { try Self.time($0.started, "run.started") } ?? start)
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
        report.cause = try cause.map(Self.cause)
        report.agentTime = try Self.duration(agentMs ?? 0, "agent_ms")
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
        var random = HashGenerator()
        for text in [app, version, buildId ?? "", host, "\(pid)"] { random.hash.combine(text) }
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
            // Functions that were inlined into a place come before the one that they are in.
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

/// Numbers that a hash gives: always the same for the same content.
private struct HashGenerator: RandomNumberGenerator {
    var hash = ContentHash()

    mutating func next() -> UInt64 {
        hash.combine(1)
        return UInt64(bitPattern: hash.value)
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

    /// Of at most ten years: more is a mistake of whoever wrote it.
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

    /// RFC 3339, in any zone, to the microsecond.
    static func time(_ text: String, _ key: String) throws -> UnixTime {
        let pattern =
            /(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)/
        func number(_ digits: Substring) -> Int64 { Int64(digits) ?? 0 }
        guard let match = text.wholeMatch(of: pattern), (1...12).contains(number(match.2)),
            (1...31).contains(number(match.3)), number(match.4) < 24, number(match.5) < 60,
            number(match.6) <= 60
        else { throw LineProblem("has no time such as 2026-11-21T09:30:00Z in \(key)") }
        // Days since 1970 by the proleptic Gregorian calendar; March is the first month of a year.
        let (year, month) = (number(match.1), number(match.2))
        let shifted = month > 2 ? year : year - 1
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + number(match.3) - 1
        let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + ofYear - 719_468
        var seconds = days * 86400 + number(match.4) * 3600 + number(match.5) * 60 + number(match.6)
        if match.8.count == 6 {
            let offset =
                number(match.8.dropFirst().prefix(2)) * 3600 + number(match.8.suffix(2)) * 60
            seconds -= match.8.hasPrefix("-") ? -offset : offset
        }
        let fraction = (match.7.map(String.init) ?? "").prefix(6)
        let digits = fraction + String(repeating: "0", count: 6 - fraction.count)
        return UnixTime(microseconds: seconds * 1_000_000 + (Int64(digits) ?? 0))
    }
}

// The words that stallctl writes for the model's cases.

extension StallState {
    static let words: [String: StallState] = ["open": .open, "ended": .ended, "hang": .hang]
}
extension StallVerdict {
    static let words: [String: StallVerdict] = [
        "stalled": .stalled, "starved": .starved, "stopped": .stopped, "throttled": .throttled,
        "debugger": .debugger, "saturated": .saturated,
    ]
}
extension LoopPhase {
    static let words: [String: LoopPhase] = [
        "unknown": .unknown, "observer": .observer, "block": .block, "source": .source,
        "timer": .timer, "descriptor": .descriptor, "main_queue": .mainQueue, "marked": .marked,
    ]
}
extension CodeAddressKind {
    static let words: [String: CodeAddressKind] = [
        "interrupted": .interrupted, "return_address": .returnAddress, "async_resume": .asyncResume,
    ]
}
extension CaptureMethod {
    static let words: [String: CaptureMethod] = ["signal_free": .signalFree, "signal": .signal]
}
extension ThreadRole {
    static let words: [String: ThreadRole] = [
        "holder": .holder, "member": .member, "other": .other,
    ]
}
