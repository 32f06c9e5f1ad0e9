// `top` as text: a summary, the table, what it omits, and the next commands to try.

internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct TopView {
    var ranking: Ranking
    var limit: Int
    var frameCount: Int
    /// The values of --store, repeated in the suggested commands.
    var storeOptions: [String] = []
    /// The store of several that has the suggested example.
    var exampleStore: String?
    /// The lock holder of each group's example report.
    var holders: [UniqueID: NamedLockHolder] = [:]
    /// The call that may block of each group's example report.
    var calls: [UniqueID: String] = [:]
    var terminal: Terminal
    /// On a live screen no commands are suggested.
    var isLive = false

    var lines: [String] {
        guard !ranking.groups.isEmpty else {
            return
                (["No \(words.noun)s." + notRanked("  ")] + SuppressedRow(ranking.suppressed).lines)
                .flatMap { $0.wrapped(to: terminal.columns) } + (isLive ? [] : next)
        }
        var lines = header.wrapped(to: terminal.columns) + [""]
        lines += table.lines(for: terminal)
        if groupCount > limit {
            let rest = groupCount - limit
            lines.append(
                terminal.paint("\(counted(rest, "more group")): --limit \(limit + rest)", .faint))
        }
        lines.append("")
        lines += notes.flatMap { $0.wrapped(to: terminal.columns) }
        return isLive ? lines : lines + next
    }

    /// As Markdown, for an issue tracker. Sparkline columns are omitted.
    var markdownLines: [String] {
        guard !ranking.groups.isEmpty else { return ["No \(words.noun)s."] }
        var table = table
        if let trend = table.columns.firstIndex(where: { $0.title == "TREND" }) {
            table.columns.remove(at: trend)
            for row in table.rows.indices { table.rows[row].remove(at: trend) }
        }
        var lines = [header.markdown, ""] + table.markdownLines + [""]
        if groupCount > limit { lines += ["\(counted(groupCount - limit, "more group")).", ""] }
        lines += notes.map(\.markdown).flatMap { [$0, ""] }
        return lines + ["Repeat with `stallctl top`; one of them in full: `stallctl show RANK`."]
    }

    /// Notes about rows that the table omits.
    var notes: [String] {
        [notRanked(""), notCounted].filter { !$0.isEmpty } + unwatched
            + SuppressedRow(ranking.suppressed).lines
    }

    private var groupCount: Int { ranking.groups.count + ranking.restCount }

    /// `photos 2.3.0, 3 hosts, 21 Nov 09:00 to 17:40: 214 stalls in 11 groups, 4m 12s lost`
    var header: String {
        let overview = ranking.overview
        // Reports of other programs may name no host, no version and no app.
        let hosts = overview.hosts.filter { !$0.isEmpty }
        let apps = overview.apps.map { $0.last == " " ? String($0.dropLast()) : $0 }
            .filter { !$0.isEmpty }
        var when = ""
        if let first = overview.first, let last = overview.last {
            when = UnixTime.rangeText(from: first, to: last, on: terminal)
        }
        let who = apps.count <= 3 ? listed(apps) : "\(apps.count) versions of apps"
        let place = hosts.count == 1 ? hosts[0] : hosts.isEmpty ? "" : counted(hosts.count, "host")
        let subject = [who.printable, place.printable, when].filter { !$0.isEmpty }
            .joined(separator: ", ")
        let unfinished = [
            overview.openCount > 0 ? "\(overview.openCount) still open" : nil,
            overview.hangCount > 0 ? counted(overview.hangCount, "hang") : nil,
        ].compactMap(\.self)
        return "\(subject): \(counted(overview.stallCount, words.noun))"
            + (unfinished.isEmpty ? "" : " (\(unfinished.joined(separator: ", ")))")
            + " in \(counted(groupCount, "group"))"
            + words.time(ranking.ownLost, isUnknown: ranking.totalLost.isUnknownLength) + watched
    }

    private var words: RankedWords { RankedWords(ranking.overview.ranked) }

    /// ` in 1d 02h watched (9.7 s/h)`, if watched time is recorded.
    private var watched: String {
        guard let watched = ranking.watched.total, watched > .zero else { return "" }
        let hours = watched / .seconds(3600)
        let lost = ranking.overview.watched.own
        let rate = hours >= 1 ? " (\((lost / hours).compact)/h)" : ""
        return watched.watchedClause + rate
    }

    private var unwatched: [String] {
        guard let watched = ranking.watched.total, watched > .zero else { return [] }
        let overview = ranking.overview
        return unwatchedSentence(
            overview.watched, ofCount: overview.stallCount, lost: ranking.ownLost
        ).map { [$0] } ?? []
    }

    var table: Table {
        let (total, words) = (ranking.ownLost, words)
        // Of violations the number matters, and the time of each.
        let sums: [Table.Column] =
            words.isOfViolations
            ? []
            : [
                .init(words.isOfStalls ? "LOST" : "TIME", .trailing),
                .init("SHARE", .trailing, spare: 3),
            ]
        let columns: [Table.Column] =
            [.init("#", .trailing)] + sums + [
                .init("COUNT", .trailing), .init("P50", .trailing, spare: 4),
                .init("P95", .trailing, spare: 2), .init("CAUSE", spare: 1),
                .init("TREND", spare: 5), .init(ranking.key.title),
            ]
        let rows = ranking.groups.prefix(limit).enumerated().map {
            index, group -> [Table.Cell] in
            let frames = group.frames.isEmpty ? [group.title] : group.frames
            var callers = frames.prefix(frameCount).dropFirst().map { "  <- " + $0 }
            let holder = group.example.flatMap { holders[$0] }
            let call = group.example.flatMap { calls[$0] }
            if let holder { callers.insert("  " + holder.clause, at: 0) }
            if let call { callers.insert("  calls " + call, at: 0) }
            if group.group.isWithoutAppFrame { callers.append("  (no app frame)") }
            if let rest = group.totals.delayedClause { callers.append("  (\(rest))") }
            let sums: [Table.Cell] =
                words.isOfViolations
                ? []
                : [.init(group.ownLength, style: .strong), .init(group.share(of: total))]
            return [.init("\(index + 1)")] + sums + [
                .init("\(group.count)", style: words.isOfViolations ? .strong : nil),
                .init(words.length(group.p50)), .init(words.length(group.p95)),
                // Grouped by cause, the last column is the cause.
                .init(ranking.key == .cause ? "" : group.causeText),
                .init(ranking.hasTrend ? Sparkline.text(group.trend.map(trendValue)) : ""),
                // A live screen has one line per group.
                .init(
                    frames[0], additions: callers,
                    isFirstWhole: (holder != nil || call != nil) && !isLive, style: .strong),
            ]
        }
        return Table(columns: columns, rows: rows)
    }

    private func trendValue(_ part: StallTotals) -> Double {
        words.isOfViolations ? Double(part.count) : part.total.milliseconds
    }

    /// `Not ranked: 4 starved, 1 stopped, 12 violations.`, or empty.
    private func notRanked(_ indentation: String) -> String {
        let counts = StallVerdict.unranked.filter { !ranking.overview.ranked.contains($0) }
            .map { ($0, ranking.overview.counts[$0] ?? 0) }.filter { $0.1 > 0 }
        guard !counts.isEmpty else { return "" }
        return indentation + "Not ranked: "
            + counts.map { $0.counted($1) }.joined(separator: ", ") + "."
    }

    /// `Not counted: 12 s in which the threads of these stalls waited for a CPU or were stopped.`, or empty.
    private var notCounted: String {
        let rest = ranking.overview.delayed
        guard rest > .zero else { return "" }
        return "Not counted: \(rest.compact) in which the threads of these stalls waited for a CPU "
            + "or were stopped."
    }

    private var next: [String] {
        func option(_ stores: [String]) -> String {
            stores.map { " --store " + $0.shellQuoted }.joined()
        }
        let isOne = storeOptions.count < 2
        var commands: [String] = []
        if let example = ranking.overview.example, isOne || exampleStore != nil {
            commands.append(
                "show \(example)" + option(isOne ? storeOptions : [exampleStore!]))
        }
        // Reports are listed of one store only; trees and trends are of stalls.
        let others = isOne ? ["tree", "list"] : ["trend"]
        let verdicts = ranking.overview.ranked.map(\.word).sorted().map { " --verdict " + $0 }
        if !ranking.groups.isEmpty {
            commands +=
                words.isOfStalls
                ? others.map { $0 + option(storeOptions) }
                : isOne ? ["list" + verdicts.joined() + option(storeOptions)] : []
        }
        // Reports of their own: not ranked as stalls, but to be seen.
        if words.isOfStalls {
            commands += [StallVerdict.blocking, .expected]
                .filter { ranking.overview.counts[$0] ?? 0 > 0 }
                .map { "top --state \($0.word)" + option(storeOptions) }
        }
        return commands.enumerated().map { index, command in
            terminal.paint((index == 0 ? "Next: " : "      ") + "stallctl \(command)", .faint)
        }
    }
}

extension StallAggregate {
    /// The own time, or `unknown` if none of the durations is known.
    var ownLength: String { total.isUnknownLength ? total.compactLength : own.compact }

    /// The own time's share of all, or empty if none of the durations is known.
    func share(of total: Duration) -> String {
        self.total.isUnknownLength ? "" : percent(own, of: total)
    }

    /// `lock`; `mostly lock` if part of the time had other causes or none, `lock, disk, ...` if none had half of it.
    fileprivate var causeText: String {
        let causes = causesByTime
        guard let first = causes.first else { return group.wait?.cause?.word ?? "" }
        // Without durations none has a part.
        guard total > .zero else {
            return causes.count == 1 ? first.cause.word : first.cause.word + ", ..."
        }
        if first.total / total >= 0.95 { return first.cause.word }
        if first.total / total > 0.5 { return "mostly " + first.cause.word }
        let second = causes.dropFirst().first.map { ", " + $0.cause.word } ?? ""
        return first.cause.word + second + ", ..."
    }
}

extension StallTotals {
    /// `another 600 ms starved or stopped`; nil where all of it was the threads' own time.
    var delayedClause: String? {
        delayed > .zero ? "another \(delayed.compact) starved or stopped" : nil
    }
}

extension NamedLockHolder {
    /// `held by 'compactor' in compactDatabase()`
    fileprivate var clause: String {
        let name = holder.name.map { "'\($0)'" } ?? "thread \(holder.thread.rawValue)"
        return (holder.isDeadlock ? "deadlock with " : "held by ") + name
            + (function.map { " in \($0)" } ?? "")
    }
}

/// `47 %`, `<1 %`; 0 if the whole is zero.
func percent(_ part: Duration, of whole: Duration) -> String {
    guard whole > .zero, part > .zero else { return "0 %" }
    let percent = part / whole * 100
    return percent < 0.5 ? "<1 %" : "\(Int(min(percent, 1e6).rounded())) %"
}

extension String {
    /// The text quoted as one word of a POSIX shell.
    var shellQuoted: String {
        let plain =
            !isEmpty
            && utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
                    || (0x61...0x7a).contains(byte)
                    || "_-./+:@%,".utf8.contains(byte)
            }
        return plain ? self : "'" + replacing("'", with: #"'\''"#).printable + "'"
    }
}

extension GroupKey {
    /// The title of the ranking's last column.
    var title: String {
        switch self {
        case .signature, .family, .function, .inclusive: "WHERE"
        case .cause, .loop, .version, .host, .app, .os, .device: rawValue.uppercased()
        }
    }
}
