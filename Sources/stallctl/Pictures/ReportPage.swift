// One self-contained page: what people read stands in it as text, what the script draws from as data. It fetches nothing, and
// its policy lets nothing but its own style and script take effect.

internal import Foundation
internal import StallAnalysis
internal import StallFormats
internal import StallModel

/// A page about groups of stalls.
struct ReportPage {
    /// The text about one group without a script.
    struct Section {
        /// The signature's sixteen digits.
        var id: String
        var title: String
        /// The cells of its row of the table, without the number and the name.
        var cells: [HTML]
        /// The functions that name it.
        var frames: [String]
        var facts: [HTML]
        var example: StallReport?
        var commands: [String]
    }

    var title: String
    var heading: String
    var headline: String
    var notes: [String] = []
    var tableHeading: String
    var tableClass: String
    /// The names of the columns between the number and the function; a number is on the right.
    var columns: [(name: String, isNumber: Bool)]
    var sections: [Section]
    var rest: String?
    /// The section on violations; nil without any.
    var violations: HTML?
    var data: PageData
    var rules: GroupingRules
    var footer: String

    private static let template = String(decoding: PackageResources.page_html, as: UTF8.self)
    private static let style = String(decoding: PackageResources.page_css, as: UTF8.self)
    private static let script = String(decoding: PackageResources.page_js, as: UTF8.self)

    static var policy: String {
        "default-src 'none'; script-src '\(SHA256.policySource(script))'; "
            + "style-src '\(SHA256.policySource(style))'; base-uri 'none'; form-action 'none'"
    }

    /// Writes the page, a part at a time.
    func write(_ write: (String) throws -> Void) throws {
        // The parts between the marks, and the marks' names, in turn: inserted text is not searched again.
        let pieces = Self.template.split(separator: "@@", omittingEmptySubsequences: false)
        for (index, piece) in pieces.enumerated() {
            guard index % 2 == 1 else {
                try write(String(piece))
                continue
            }
            switch piece {
            case "policy": try write(Self.policy)
            case "style": try write(Self.style)
            case "script": try write(Self.script)
            case "title": try write(HTML(title).text)
            case "heading": try write(HTML(heading).text)
            case "headline": try write(HTML(headline).text)
            case "notes":
                for note in notes { try write(HTML("p", [("class", "note")], HTML(note)).text) }
            case "tableState": if sections.isEmpty { try write(" class=\"empty\"") }
            case "tableHeading": try write(HTML(tableHeading).text)
            case "tableClass": try write(tableClass)
            case "tableHead": try write(head.text)
            case "tableRows":
                for (number, section) in sections.enumerated() {
                    try write(row(section, number + 1).text + "\n")
                }
            case "tableFoot":
                if let rest { try write(HTML("p", [("class", "soft")], HTML(rest)).text) }
            case "violations": if let violations { try write("\n" + violations.text) }
            case "groups":
                for section in sections { try write(self.section(section).text + "\n") }
            case "footer": try write(HTML(footer).text)
            case "data": try write(data.json())
            default: preconditionFailure("page.html has an unknown mark: \(piece)")
            }
        }
    }

    // MARK: - The table

    private var head: HTML {
        let cells =
            [HTML("th", [("class", "n"), ("scope", "col")], HTML("#"))]
            + columns.map {
                HTML(
                    "th", ($0.isNumber ? [("class", "n")] : []) + [("scope", "col")], HTML($0.name))
            } + [HTML("th", [("scope", "col")], HTML("Where"))]
        return HTML("tr", [], HTML(joining: cells))
    }

    private func row(_ section: Section, _ number: Int) -> HTML {
        let link = HTML(
            "a", [("href", "#g=" + section.id)],
            HTML("span", [("class", "fn")], HTML(section.frames.first ?? section.title)))
        let caller = section.frames.dropFirst().first.map {
            HTML("span", [("class", "fn by")], HTML(" ← " + $0))
        }
        let `where` = HTML("td", [("class", "where")], link, caller ?? HTML())
        return HTML(
            "tr", [("data-g", section.id)],
            HTML("td", [("class", "n")], HTML("\(number)")), HTML(joining: section.cells), `where`)
    }

    // MARK: - A group

    private func section(_ section: Section) -> HTML {
        let facts = HTML(joining: section.facts.map { HTML("li", [], $0) })
        let example = section.example.map(self.example) ?? HTML()
        let commands = section.commands.map {
            HTML("p", [("class", "cmd")], HTML("code", [], HTML($0)))
        }
        return HTML(
            "section", [("class", "group"), ("id", "g=" + section.id)],
            HTML("h2", [], HTML(section.title)), HTML("ul", [("class", "facts")], facts), example,
            HTML("div", [("class", "draw")]), HTML("h3", [], HTML("Ask again")),
            HTML(joining: commands))
    }

    private func example(_ report: StallReport) -> HTML {
        let view = ReportView(report: report, stackLimit: 1, rules: rules, terminal: .document)
        var parts = [HTML("h3", [], HTML("Example: the longest"))]
        parts.append(HTML("p", [], HTML(view.sentence + ".")))
        for line in report.causeLines(by: view.grouper, on: .document) {
            // The cause's word and how sure it is stand behind its sentence.
            guard let gap = line.range(of: "   ", options: .backwards) else {
                parts.append(HTML("p", [], HTML(line)))
                continue
            }
            parts.append(
                HTML(
                    "p", [], HTML(line[..<gap.lowerBound] + ": "),
                    HTML("b", [], HTML(String(line[gap.upperBound...])))))
        }
        if let activity = report.activity {
            parts.append(HTML("p", [], HTML("While: \(activity)")))
        }
        let timeline = Timeline(report: report, signature: view.signature)
        if let stack = timeline.stacks.first { parts.append(self.stack(stack, timeline, report)) }
        return HTML(joining: parts)
    }

    /// The functions of the heaviest stack, the innermost first; of many the outermost are left out.
    private func stack(
        _ stack: Timeline.Stack, _ timeline: Timeline, _ report: StallReport
    ) -> HTML {
        var classifier = FrameClassifier(rules: rules)
        let naming = stack.frames.firstIndex(where: timeline.isNaming)
        // Of many groups less of each: the page is to stay small enough for mail.
        let least = sections.count > 200 ? 5 : 8
        let shown = min(stack.frames.count, max(least, (naming ?? 0) + 3))
        var items = stack.frames.prefix(min(shown, 24)).enumerated().map { index, frame in
            let isApp = classifier.isApp(frame, executable: report.run.buildID)
            let style = index == naming ? "key" : isApp ? "app" : ""
            let place = frame.sourceText.isEmpty ? frame.imageName ?? "" : frame.sourceText
            return HTML(
                "li", style.isEmpty ? [] : [("class", style)],
                HTML(frame.title), HTML("span", [("class", "src")], HTML("  " + place)))
        }
        let rest = stack.frames.count - items.count
        if rest > 0 { items.append(HTML("li", [], HTML("… \(counted(rest, "caller"))"))) }
        return HTML("ol", [("class", "stack")], HTML(joining: items))
    }
}
