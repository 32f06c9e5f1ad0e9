// The limits as SQL, for a check of a whole store.

internal import StallModel
internal import StallStore

extension ValueLimits {
    private static func largest<Value: RawRepresentable<UInt8> & CaseIterable>(_: Value.Type)
        -> UInt8
    {
        Value.allCases.map(\.rawValue).max() ?? 0
    }

    private static func isDay(_ column: String) -> String {
        "\(column) between \(readableDays.lowerBound) and \(readableDays.upperBound)"
    }

    private static func isTime(_ column: String) -> String {
        "\(column) between \(readableTimes.lowerBound) and \(readableTimes.upperBound)"
    }

    private static let ofRollUps = """
        \(isDay("first_day")) and report_count between 1 and \(count)
        and min_ns between 0 and \(duration_ns) and max_ns between 0 and \(duration_ns)
        and first_us between 0 and \(time_us) and last_us between 0 and \(time_us)
        and delayed_ns between 0 and max(0, total_ns)
        """

    /// Conditions of SQL that hold for every row within the limits, by table.
    static let conditions: [(table: String, condition: String)] = [
        ("report", ReportRow.limits),
        (
            "exposure",
            """
            start_us between 0 and \(time_us) and watched_ns between 0 and \(watched_ns)
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
            verdict between 0 and \(StallVerdict.all.map(\.rawValue).max()!)
            and ifnull(cause, 0) between 0 and \(largest(CauseClass.self))
            """
        ),
        ("rollup", ofRollUps), ("host_rollup", ofRollUps),
        ("report_day", isDay("day")),
        (
            "exposure_day",
            "\(isDay("day")) and \(isTime("start_us")) and \(isTime("end_us"))"
        ),
        (
            "grouping",
            """
            (hosts_from_day is null or hosts_from_day = \(Int64.min) or \(isDay("hosts_from_day")))
            and (pruned_before_us is null or \(isTime("pruned_before_us")))
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
            and length(cast(host as blob)) <= \(nameBytes) and length(cast(ifnull(os, '') as blob)) <= \(nameBytes)
            and length(cast(ifnull(device, '') as blob)) <= \(nameBytes) and pid between 0 and \(Int32.max)
            """
        ),
    ]
}
