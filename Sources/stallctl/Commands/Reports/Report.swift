// `report`: one self-contained HTML page. The groups' flame graphs and timelines are collected in one pass;
// ReportPage.swift writes the page.

internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write one HTML file with the ranking, flame graphs and timelines.",
        discussion: """
            The file is self-contained: it loads nothing from the network. With scripts
            disabled, it shows the ranking, the cause of each group, and one example with
            its evidence. With scripts enabled, it adds searchable flame graphs, the
            example's timeline with lock holders, trends, durations, versions and hosts.
            With --compare, it shows two sides and their difference; A and B are given as
            for diff.

            EXAMPLES
              stallctl report -o stalls.html
              stallctl report --since 7d --app photos -o photos.html
              stallctl report --compare 2.2.9 2.3.0 --app photos -o release.html
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Output file, replaced once all is written. Default: standard output.",
            valueName: "path"),
        completion: .file(extensions: ["html"]))
    var output: String?

    @Option(
        parsing: .upToNextOption,
        help: ArgumentHelp(
            "Compare two versions, time ranges or stores, A and B, as diff does.", valueName: "side"
        ))
    var compare: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Maximum number of groups to show.", valueName: "count"))
    var limit = 500

    @OptionGroup var grouping: GroupingOptions

    func validate() throws {
        try expectOneOrMore(limit, "--limit")
        guard compare.isEmpty || compare.count == 2 else {
            throw ValidationError("--compare needs two sides, such as --compare 2.2.9 2.3.0.")
        }
        if output == nil, isatty(STDOUT_FILENO) == 1 {
            throw ValidationError("standard output is a terminal; name a file with --output.")
        }
    }

    func run() throws {
        var page = try compare.isEmpty ? ranked() : compared()
        if let label = PartialAnswer.label { page.notes.insert(label, at: 0) }
        let bytes = try OutputBytes(output)
        try page.write { try bytes.write(Array($0.utf8)) }
        try bytes.finish()
    }

    /// Limits the nodes drawn per group, so that a page of many groups is still small enough to mail.
    func nodeLimit(_ groupCount: Int) -> Int {
        min(1500, max(48, 36_000 / max(groupCount, 1)))
    }

    var footer: String {
        "Made by stallctl \(stallwatchVersion) on \(UnixTime.now.sentenceText(on: .document)) UTC. "
            + "Times are UTC."
    }

    // MARK: - One side

    private func ranked() throws -> ReportPage {
        let store = try source.open()
        return try store.consistently { try ranked(in: store) }
    }

    private func ranked(in store: any QueryableStore) throws -> ReportPage {
        let question = try grouping.question(to: store, filters.filter)
        let ranking = try question.ranking(by: .total, limit: limit)
        if ranking.overview.isEmpty { try filters.explainEmptyAnswer(from: store) }
        let groups = Array(ranking.groups.prefix(limit))
        var time = PicturedTime(try store.timeSpan(filters.filter))
        var collector = GroupPictures(of: groups.map(\.group), time: time, rules: question.rules)
        try collector.collect(from: store, filters.filter)
        time.versions = collector.versionsSeen
        let pictures = try collector.pictures(from: [store], nodeLimit: nodeLimit(groups.count))
        var data = PageData(time: time, sides: ["all"])
        let ids = groups.map { hexadecimal($0.group.signature) }
        var sections: [ReportPage.Section] = []
        for (index, group) in groups.enumerated() {
            let example = try self.example(
                group.example ?? pictures[index].longest?.id, in: store)
            data.add(
                id: ids[index], title: group.title, pictures[index], totals: [group.total],
                example: example, rules: question.rules)
            sections.append(
                ReportPage.Section(
                    id: ids[index], title: group.title,
                    cells: cells(group, ranking, pictures[index], time),
                    frames: group.frames.isEmpty ? [group.title] : group.frames,
                    facts: facts(group, ranking, pictures[index]), example: example,
                    commands: commands(example)))
        }
        let view = TopView(
            ranking: ranking, limit: limit, frameCount: 2, terminal: .document)
        let builds = ranking.overview.apps
        let apps = builds.count <= 3 ? builds : Set(groups.flatMap(\.apps)).sorted()
        let heading =
            "Stalls of "
            + (apps.count <= 3
                ? listed(apps) : listed(apps.prefix(2) + ["\(apps.count - 2) more apps"]))
        // The heading of a page without any says it.
        var notes = view.notes[...]
        let none = apps.isEmpty ? notes.popFirst() ?? "" : "No stalls."
        var page = ReportPage(
            title: heading, heading: apps.isEmpty ? "No stalls" : heading,
            headline: ranking.groups.isEmpty ? none : view.header,
            tableHeading: "Ranked by time lost",
            tableClass: "rank",
            columns: [
                ("Lost", true), ("Share", true), ("Count", true), ("Median", true), ("P95", true),
                ("Cause", false), ("Trend", false),
            ], sections: sections, data: data, rules: question.rules, footer: footer)
        let hidden = ranking.groups.count + ranking.restCount - groups.count
        if hidden > 0 {
            let shown = groups.reduce(Duration.zero) { $0 + $1.own }
            page.rest =
                "\(counted(hidden, "more group")), \((ranking.ownLost - shown).compact) lost: --limit \(hidden + limit)"
        }
        page.notes = Array(notes)
        page.violations = try violations(question, ranking.overview)
        return page
    }

    private func cells(
        _ group: StallAggregate, _ ranking: Ranking, _ picture: GroupPicture, _ time: PicturedTime
    ) -> [HTML] {
        let share = ranking.ownLost > .zero ? group.own / ranking.ownLost : 0
        let bar = HTML(
            "svg",
            [
                ("class", "bar"), ("viewBox", "0 0 100 10"), ("preserveAspectRatio", "none"),
                ("aria-hidden", "true"),
            ],
            HTML(
                "rect",
                [
                    ("width", "\((share * 1000).rounded() / 10)"),
                    ("height", "10"),
                ]))
        let parts = 8
        var trend = Array(repeating: 0.0, count: parts)
        for (part, total) in picture.trend {
            trend[min(parts - 1, part * parts / max(time.count, 1))] += total.time.milliseconds
        }
        return [
            HTML("td", [("class", "n lost")], HTML(group.ownLength)),
            HTML(
                "td", [("class", "n hide")], HTML(group.share(of: ranking.ownLost)), bar),
            HTML("td", [("class", "n count")], HTML("\(group.count)")),
            HTML("td", [("class", "n hide")], HTML(group.p50.compactLength)),
            HTML("td", [("class", "n hide")], HTML(group.p95.compactLength)),
            HTML("td", [("class", "end")], HTML(group.cause?.word ?? "")),
            HTML(
                "td", [("class", "spark hide")],
                HTML(time.count > 1 ? Sparkline.text(trend) : "")),
        ]
    }

    private func facts(
        _ group: StallAggregate, _ ranking: Ranking, _ picture: GroupPicture
    ) -> [HTML] {
        func strong(_ text: String) -> HTML { HTML("b", [], HTML(text)) }
        let share =
            group.total.isUnknownLength ? "" : ", \(group.share(of: ranking.ownLost)) of all"
        var facts = [
            strong(group.total.isUnknownLength ? "Unknown time" : group.own.compact)
                + HTML(" lost in ") + strong(counted(group.count, "stall"))
                + HTML(
                    "\(share); median \(group.p50.preciseLength), p95 \(group.p95.preciseLength), "
                        + "longest \(group.max.preciseLength)")
        ]
        if let rest = group.totals.delayedClause { facts.append(HTML(rest)) }
        let causes = group.causesByTime
        if !causes.isEmpty {
            let hasShares = !group.total.isUnknownLength
            let shares = causes.prefix(4).map {
                hasShares
                    ? "\($0.cause.word) \(percent($0.total, of: group.total))" : $0.cause.word
            }
            facts.append(
                HTML("Cause: ") + strong(listed(shares)) + HTML(hasShares ? " of the time" : ""))
        }
        if group.group.isWithoutAppFrame {
            facts.append(HTML("No app function was on the stacks"))
        }
        facts += self.facts(picture)
        if picture.seen.count != group.count {
            facts.append(
                HTML(
                    "The store still has \(counted(picture.seen.count, "report")) of them: the pictures show \(picture.seen.time.compactLength)"
                ))
        }
        return facts
    }

    /// The flame graphs' content as text.
    func facts(_ picture: GroupPicture) -> [HTML] {
        func names(_ list: [(name: String, total: CountAndTime)], _ noun: String) -> HTML? {
            guard !list.isEmpty else { return nil }
            let texts = list.prefix(3).map { "\($0.name) \($0.total.time.compactLength)" }
            let rest = list.count > 3 ? ["\(list.count - 3) more"] : []
            return HTML("\(noun): \(listed(texts + rest))")
        }
        var facts = [names(picture.versions, "Builds"), names(picture.hosts, "Hosts")].compactMap(
            \.self)
        if let lock = picture.locks.first {
            facts.append(
                HTML(
                    "\(lock.edge.loop) waited mostly for \(lock.edge.holder), \(lock.total.time.compact) in \(counted(lock.total.count, "stall"))"
                        + (lock.edge.isDeadlock ? ": a deadlock" : "")))
        }
        return facts
    }

    func example(_ id: UniqueID?, in store: any QueryableStore) throws -> StallReport? {
        // The example named by the ranking may have been pruned since.
        guard let id else { return nil }
        return try? store.reports(idPrefix: id.description).first
    }

    func commands(_ example: StallReport?, store: String? = nil) -> [String] {
        let path = (store ?? source.store).map { " --store " + $0.shellQuoted } ?? ""
        return [
            example.map { "stallctl show \($0.id.description.prefix(16))\(path)" }
                ?? "stallctl top\(path)"
        ]
    }
}
