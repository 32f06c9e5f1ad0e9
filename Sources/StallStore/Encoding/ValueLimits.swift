// Which values a store may hold. An agent keeps within them, ingest refuses what does not, `check` reports it and its
// repair removes it: sums of what was taken must not leave the range of a number.

internal import StallModel

/// The ranges of stored values.
enum ValueLimits {
    /// Ten years and some days, the longest stall that a line may have as well.
    static let duration_ns: Int64 = 320_000_000_000_000_000
    /// The end of year 9999.
    static let time_us: Int64 = 253_402_300_799_999_999
    static let count: Int64 = 1_000_000_000_000
    /// Numbers that a store gives out: one each microsecond would take 36,000 years.
    static let revision: Int64 = 1 << 60

    /// In bytes: names of apps, versions, hosts and loops, and the identifier of a boot.
    static let nameBytes = 1024
    /// Modes and activities.
    static let labelBytes = 4096
    static let pathBytes = 8192
    /// Functions, as the compiler names them.
    static let functionBytes = 1 << 16
    static let buildIDBytes = 64

    static let samplesOfReport = 4096
    static let threadsOfReport = 1 << 16
    /// The locations of a stack, packed.
    static let stackBytes = 1 << 20
    static let frameCount = 1000
    static let loadsOfRun = 100_000
    static let lossesOfSource = 1_000_000

    private static func largest<Value: RawRepresentable<UInt8> & CaseIterable>(_: Value.Type)
        -> UInt8
    {
        Value.allCases.map(\.rawValue).max() ?? 0
    }

    /// Conditions of SQL that hold for every row within the limits, by table.
    static let conditions: [(table: String, condition: String)] = [
        (
            "report",
            """
            length(id) = 16 and start_us between 0 and \(time_us)
            and duration_ns between 0 and \(duration_ns) and cpu_ns between 0 and \(duration_ns) and detection_delay_ns between 0 and \(duration_ns)
            and agent_ns between 0 and \(duration_ns) and skipped_threads between 0 and \(count)
            and ifnull(ending, 1) between 1 and \(largest(StallEnding.self))
            """
        ),
        (
            "exposure",
            """
            start_us between 0 and \(time_us) and watched_ns between 0 and \(duration_ns)
            and busy_ns between 0 and \(duration_ns) and ready_delay_ns between 0 and \(duration_ns)
            and micro_stall_count between 0 and \(count) and micro_stall_ns between 0 and \(duration_ns)
            and iteration_count between 0 and \(1 << 53) and revision between 0 and \(revision)
            """
        ),
        (
            "suppression",
            // Less than nothing where stalls were taken back that another reason had counted.
            """
            stall_count between -\(count) and \(count)
            and total_ns between -\(duration_ns) and \(duration_ns)
            and reason between 0 and \(largest(SuppressionReason.self))
            """
        ),
        (
            "loss",
            "report_count between 0 and \(count) and reason between 0 and \(largest(LossReason.self))"
        ),
        (
            "cohort",
            """
            verdict between 0 and \(StallVerdict.saturated.rawValue)
            and ifnull(cause, 0) between 0 and \(largest(CauseClass.self))
            """
        ),
        (
            "rollup",
            """
            report_count between 1 and \(count) and min_ns between 0 and \(duration_ns)
            and max_ns between 0 and \(duration_ns) and first_us between 0 and \(time_us)
            and last_us between 0 and \(time_us)
            """
        ),
        (
            "loop",
            "threshold_ns between 0 and \(duration_ns) and length(cast(name as blob)) <= \(nameBytes)"
        ),
        (
            "process_run",
            """
            length(uuid) = 16 and length(cast(app as blob)) <= \(nameBytes) and length(cast(version as blob)) <= \(nameBytes)
            and length(cast(host as blob)) <= \(nameBytes) and pid between 0 and \(Int32.max)
            """
        ),
    ]
}

extension Int64 {
    /// The sum, or the number that is nearest to it.
    func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }
}

extension String {
    /// The longest beginning of at most so many bytes; characters stay whole.
    func clipped(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: limit)
        while end > utf8.startIndex, end.samePosition(in: unicodeScalars) == nil {
            end = utf8.index(before: end)
        }
        return String(self[..<end])
    }
}
