// The HTML page that compares two sides: changes first, with flame graphs of both sides.

internal import StallAnalysis
internal import StallModel
internal import StallQuery

extension Report {
    func compared() throws -> ReportPage {
        let sides = try ComparedQuestion.both(
            compare, stores: [source.path], filters: filters, grouping: grouping)
        return try sides.map(\.question.store).consistently { try compared(sides) }
    }

    private func compared(_ sides: [ComparedQuestion]) throws -> ReportPage {
        let rankings = try RankingQuestion.rankings(sides.map(\.question))
        for (side, ranking) in zip(sides, rankings) where ranking.overview.isEmpty {
            say("stallctl: \(try side.nothing(isWatched: ranking.watched.total != nil))".printable)
        }
        let comparison = Comparison(rankings[0], rankings[1])
        let groups = Array(comparison.groups.prefix(limit))
        let rules = sides[1].question.rules
        let spans = try sides.compactMap { try $0.question.store.timeSpan($0.question.filter) }
        var time = PicturedTime(
            spans.isEmpty ? nil : (spans.map(\.first).min()!, spans.map(\.last).max()!))
        var collector = GroupPictures(
            of: groups.map(\.group), time: time, rules: rules, sideCount: 2)
        for (number, side) in sides.enumerated() {
            try collector.collect(from: side.question.store, side.question.filter, side: number)
        }
        time.versions = collector.versionsSeen
        let pictures = try collector.pictures(
            from: sides.map(\.question.store), nodeLimit: nodeLimit(groups.count))
        let hours = comparison.watched.map {
            [$0.first / .seconds(3600), $0.second / .seconds(3600)]
        }
        var data = PageData(time: time, sides: sides.map(\.name), hours: hours)
        var sections: [ReportPage.Section] = []
        for (index, group) in groups.enumerated() {
            let longest = pictures[index].longest
            let store = sides[longest?.side ?? 1].question.store
            let example = try self.example(longest?.id, in: store)
            let id = hexadecimal(group.group.signature)
            data.add(
                id: id, title: group.title, pictures[index],
                totals: [group.first.total, group.second.total], example: example, rules: rules)
            sections.append(
                ReportPage.Section(
                    id: id, title: group.title, cells: cells(group, isPerHour: hours != nil),
                    frames: group.group.frames.isEmpty ? [group.title] : group.group.frames,
                    facts: facts(group, sides.map(\.name), isPerHour: hours != nil)
                        + facts(pictures[index]),
                    example: example, commands: commands(example, store: store.path)))
        }
        let names = sides.map(\.name)
        let view = DiffView(
            comparison: comparison, names: names, key: .signature, limit: limit, terminal: .document
        )
        let heading = "Stalls: \(names[0]) against \(names[1])"
        var page = ReportPage(
            title: heading, heading: heading,
            headline: comparison.groups.isEmpty ? "No stalls on either side." : view.summary,
            tableHeading: "Changes, largest first", tableClass: "rank compare",
            columns: [
                ("Change", false), (names[0], true), (names[1], true), ("Ratio", true),
                ("95% CI", true),
            ], sections: sections, data: data, rules: rules, footer: footer)
        page.notes = view.sideLines + [view.basis].compactMap(\.self)
        if comparison.groups.count > groups.count {
            let hidden = comparison.groups.count - groups.count
            page.rest = "\(counted(hidden, "more group")): --limit \(hidden + limit)"
        }
        return page
    }

    private func cells(_ group: ComparedGroup, isPerHour: Bool) -> [HTML] {
        [
            HTML(
                "td", [("class", "change \(group.change.rawValue)")],
                HTML(group.change.sign + " " + group.change.rawValue)),
            HTML("td", [("class", "n hide")], HTML(group.first.total.compact)),
            HTML("td", [("class", "n")], HTML(group.second.total.compact)),
            HTML("td", [("class", "n end")], HTML(group.ratio.text)),
            HTML("td", [("class", "n hide")], HTML(group.ratio.intervalText)),
        ]
    }

    private func facts(_ group: ComparedGroup, _ names: [String], isPerHour: Bool) -> [HTML] {
        func side(_ name: String, _ totals: StallTotals) -> HTML {
            HTML("\(name): ") + HTML("b", [], HTML(totals.total.compact))
                + HTML(
                    " lost in \(counted(totals.count, "stall")), the longest \(totals.longest.precise)"
                )
        }
        let per = isPerHour ? " per watched hour" : ""
        return [
            HTML("b", [], HTML("\(group.change.sign) \(group.change.rawValue)"))
                + HTML(
                    ": \(group.ratio.text) the time\(per); 95% confidence interval \(group.ratio.intervalText)"
                ), side(names[0], group.first), side(names[1], group.second),
        ]
    }
}

extension GroupChange {
    /// Conveys the same as the color.
    fileprivate var sign: String {
        switch self {
        case .new, .worse: "+"
        case .better, .gone: "−"
        case .unclear: "·"
        }
    }
}

extension RateRatio {
    /// `×1.47`.
    fileprivate var text: String {
        if value.isNaN { return "–" }
        return value.isFinite ? value.short(after: "×") : "new"
    }

    fileprivate var intervalText: String {
        low <= 0 && !high.isFinite
            ? "unknown"
            : low.short(after: "×") + " to "
                + (high.isFinite ? high.short(after: "×") : "any number")
    }
}
