// A report as it comes from a cluster, with hashes in the place of row numbers.

internal import StallModel
internal import StallStore

struct FetchedReport {
    var id: UniqueID
    var source: UniqueID
    var seq, revision: Int64
    /// The loop's hash.
    var loop: Int64
    var mode: String
    var activity: String?
    var phase, state, verdict: Int64
    var start_us, duration_ns, cpu_ns, detectionDelay_ns: Int64
    /// The part of the duration that was not the thread's own; nil where none is known.
    var delayed_ns: Int64?
    /// The hashes that numbers in `samples` and `threads` are indexes of.
    var stacks: [Int64]
    var samples: [StoredSample]
    var threads: [StoredThread]?
    var cause: Int64?
    var causeConfidence: Double?
    var causePermille: Int64?
    var causeDetail: [UInt8]?
    /// The key of its group; 0 for none.
    var signature: Int64
    var agent_ns, skippedThreads: Int64
    var ending: Int64?
    /// The hash of what it shares of its cause's evidence.
    var evidence: Int64?
    var evidenceNumbers: [UInt8]?

    /// The columns that `init(_:)` reads, in its order.
    static let columns: ClickHouseQuery = """
        id, source, seq, revision, loop, mode, activity, phase, state, verdict, start_us, duration_ns,
        cpu_ns, detection_delay_ns, stack, samples, threads, cause, cause_confidence_bits,
        cause_permille, cause_detail, signature, agent_ns, skipped_threads, ending, evidence,
        evidence_numbers, delayed_ns
        """
    static let columnCount = 28

    init(_ row: TabSeparatedRows) throws {
        id = try row.uniqueID(at: 0)
        source = try row.uniqueID(at: 1)
        (seq, revision) = (try row.integer(at: 2), try row.integer(at: 3))
        loop = try row.integer(at: 4)
        (mode, activity) = (try row.text(at: 5), try row.optionalText(at: 6))
        (phase, state, verdict) = (
            try row.integer(at: 7), try row.integer(at: 8), try row.integer(at: 9)
        )
        (start_us, duration_ns) = (try row.integer(at: 10), try row.integer(at: 11))
        (cpu_ns, detectionDelay_ns) = (try row.integer(at: 12), try row.integer(at: 13))
        stacks = try row.integers(at: 14)
        let samples = try row.bytes(at: 15).withUnsafeBytes { [StoredSample](encoded: $0) }
        guard let samples else { throw row.bad(15, "a list of samples") }
        self.samples = samples
        if let packed = try row.optionalBytes(at: 16) {
            guard let threads = packed.withUnsafeBytes({ [StoredThread](encoded: $0) }) else {
                throw row.bad(16, "a list of threads")
            }
            self.threads = threads
        }
        let (cause, ending): (Int64, Int64) = (try row.integer(at: 17), try row.integer(at: 24))
        self.cause = cause < 0 ? nil : cause
        causeConfidence = try row.optionalInteger(at: 18)
            .map { Double(bitPattern: UInt64(bitPattern: $0)) }
        causePermille = try row.optionalInteger(at: 19)
        causeDetail = try row.optionalBytes(at: 20)
        signature = try row.integer(at: 21)
        (agent_ns, skippedThreads) = (try row.integer(at: 22), try row.integer(at: 23))
        self.ending = ending < 0 ? nil : ending
        evidence = try row.optionalInteger(at: 25)
        evidenceNumbers = try row.optionalBytes(at: 26)
        let delayed: Int64 = try row.integer(at: 27)
        delayed_ns = delayed == 0 ? nil : delayed
        let numbers = samples.compactMap(\.stack) + (threads ?? []).compactMap(\.stack)
        guard
            numbers.allSatisfy({ stacks.indices.contains(Int(truncatingIfNeeded: $0)) && $0 >= 0 })
        else { throw row.bad(14, "a stack for each number") }
    }
}
