// A store's summary.

internal import StallIngest
internal import StallModel
internal import StallQuery

enum StatusView {
    static func lines(for status: StoreStatus, on terminal: Terminal) -> [String] {
        let size = status.bytes.formattedBytes
        var lines = [
            "\(status.path.printable): \(status.role.word) store, schema \(status.schemaVersion), \(size)"
        ]
        guard let first = status.first, let last = status.last else {
            return lines + ["No reports."] + silent(status, on: terminal)
                + (status.rollUpCount > 0 ? rollUps(status) : []) + losses(status)
        }
        let apps =
            status.apps.count <= 5 ? listed(status.apps) : counted(status.apps.count, "app")
        lines.append(
            "\(counted(status.reportCount, "report")) of \(apps.printable) "
                + "from \(counted(status.hosts.count, "host")) in \(counted(status.runCount, "run")), "
                + UnixTime.rangeText(from: first, to: last, on: terminal))
        let states: [(StallState, String)] = [
            (.ended, "ended"), (.open, "still open"), (.hang, "never ended"),
        ]
        lines.append("  " + parts(states.map { (status.reportsByState[$0.0] ?? 0, $0.1) }))
        let unranked = StallVerdict.unranked.compactMap { verdict in
            status.reportsByVerdict[verdict].map(verdict.counted)
        }.joined(separator: ", ")
        if !unranked.isEmpty { lines.append("  \(unranked); these are not ranked") }
        let stacks = counted(status.stackCount, "distinct stack")
        lines.append(status.sampleCount.map { "\(counted($0, "sample")) with \(stacks)" } ?? stacks)
        return lines + silent(status, on: terminal)
            + (status.role == .central ? rollUps(status) : []) + losses(status)
    }

    /// The machines that are listed by name.
    private static let shownHosts = 10

    /// Those without watched time for an hour, and those of which the clock hides whether they have any.
    private static func silent(_ status: StoreStatus, on terminal: Terminal) -> [String] {
        let silent = status.silentHosts(at: terminal.now).map { host in
            let apps =
                host.apps.count <= 5 ? listed(host.apps) : counted(host.apps.count, "app")
            return "\(host.host), last watched \(host.last.shortText(on: terminal)) (\(apps))"
        }
        let ahead = status.hostsAhead(of: terminal.now).map { host in
            "\(host.host), watched until \(host.last.shortText(on: terminal))"
        }
        return list(silent, "silent for an hour or longer")
            + list(ahead, "with a clock ahead of this one's, silent or not")
    }

    private static func list(_ hosts: [String], _ clause: String) -> [String] {
        guard !hosts.isEmpty else { return [] }
        let lines =
            ["\(counted(hosts.count, "host")) \(clause):"]
            + hosts.prefix(shownHosts).map { "  \($0)".printable }
        let rest = hosts.count - shownHosts
        return rest > 0 ? lines + ["  and \(counted(rest, "host")) more"] : lines
    }

    private static func rollUps(_ status: StoreStatus) -> [String] {
        let days = counted(status.rollUpDayCount, "day")
        let line =
            "Imported from \(counted(status.sourceCount, "store")), aggregated in "
            + "\(counted(status.rollUpCount, "roll-up")) of \(days)."
        var lines = [line]
        if status.partialSourceCount > 0 {
            let count = counted(status.partialSourceCount, "store")
            lines.append("\(count) imported in part; the next ingest continues.")
        }
        if status.rollUpReportCount > status.reportCount {
            let count = counted(status.rollUpReportCount, "report")
            lines.append("Roll-ups cover \(count), including pruned ones.")
        }
        return lines
    }

    static func lines(for quarantine: Quarantine) -> [String] {
        quarantine.count == 0
            ? []
            : [
                "\(counted(quarantine.count, "file")) in quarantine: \(quarantine.path.printable)"
            ]
    }

    private static func losses(_ status: StoreStatus) -> [String] {
        func line(_ start: String, _ reasons: [LossReason]) -> [String] {
            let text = parts(reasons.map { (status.losses[$0] ?? 0, $0.clause) })
            return text.isEmpty ? [] : ["\(start): \(text)."]
        }
        return line(
            "Not recorded", LossReason.allCases.filter { $0 != .callback && $0 != .blind })
            + line("Recorded, but not passed to onStall", [.callback])
            + line("Gaps", [.blind])
    }

    private static func parts(_ counts: [(count: Int, clause: String)]) -> String {
        counts.filter { $0.count > 0 }.map { "\($0.count) \($0.clause)" }.joined(separator: ", ")
    }
}

extension Int64 {
    /// `812 bytes`, `1.2 MB`.
    var formattedBytes: String {
        let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"]
        var (value, unit) = (Double(self), 0)
        while value >= 999.5, unit < units.count - 1 { (value, unit) = (value / 1000, unit + 1) }
        guard unit > 0, value < 9.95 else { return "\(Int(value.rounded())) \(units[unit])" }
        return "\((value * 10).rounded() / 10) \(units[unit])"
    }
}
