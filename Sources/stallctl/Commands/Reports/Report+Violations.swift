// The page's section on violations: calls that may block, where the app forbids it. It has no pictures: such a call has one
// stack, and matters however long it took.

internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallQuery

extension Report {
    /// Ranks the violations that the filter selects by location and count.
    ///
    /// - Parameter overview: Of the stalls; it counts the violations as well.
    /// - Returns: Nil without any.
    func violations(_ question: RankingQuestion, _ overview: Overview) throws -> HTML? {
        guard overview.counts[.blocking] ?? 0 > 0 else { return nil }
        var question = question
        question.filter.verdicts = [.blocking]
        let ranking = try question.ranking(by: .count, limit: limit)
        let calls = try ranking.blockingCalls(in: question.store, limit: limit)
        let words = RankedWords(ranking.overview.ranked)
        let rows = ranking.groups.prefix(limit).enumerated().map { index, group in
            let call = group.example.flatMap { calls[$0] } ?? ""
            let frames = group.frames.isEmpty ? [group.title] : group.frames
            let caller = frames.dropFirst().first.map {
                HTML("span", [("class", "fn by")], HTML(" ← " + $0))
            }
            return HTML(
                "tr", [], number("\(index + 1)"), number("\(group.count)"),
                number(words.length(group.p50)), number(words.length(group.p95)),
                HTML("td", [], HTML(group.cause?.word ?? "")), HTML("td", [], HTML(call)),
                HTML(
                    "td", [("class", "where")],
                    HTML("span", [("class", "fn")], HTML(frames[0])), caller ?? HTML()))
        }
        let titles: [(name: String, isNumber: Bool)] = [
            ("#", true), ("Count", true), ("Median", true), ("P95", true), ("Cause", false),
            ("Call", false), ("Where", false),
        ]
        let head = titles.map {
            HTML("th", ($0.isNumber ? [("class", "n")] : []) + [("scope", "col")], HTML($0.name))
        }
        let (count, groupCount) = (
            ranking.overview.stallCount, ranking.groups.count + ranking.restCount
        )
        var parts = [
            HTML("h2", [], HTML("Violations")),
            HTML(
                "p", [],
                HTML(
                    "\(counted(count, words.noun)) in \(counted(groupCount, "group")): calls that may block, "
                        + "where the app forbids it.")),
            HTML(
                "div", [("class", "scroll")],
                HTML(
                    "table", [], HTML("thead", [], HTML("tr", [], HTML(joining: head))),
                    HTML("tbody", [], HTML(joining: rows)))),
        ]
        if groupCount > rows.count {
            let rest = counted(groupCount - rows.count, "more group")
            parts.append(
                HTML("p", [("class", "soft")], HTML("\(rest): --limit \(groupCount)")))
        }
        let store = source.store.map { " --store " + $0.shellQuoted } ?? ""
        parts.append(
            HTML(
                "p", [("class", "cmd")],
                HTML("code", [], HTML("stallctl top --state blocking\(store)"))))
        return HTML("section", [("id", "violations")], HTML(joining: parts))
    }

    private func number(_ text: String) -> HTML { HTML("td", [("class", "n")], HTML(text)) }
}
