import Foundation

import StallFormats
import StallModel
import StallQuery

import Testing

@testable import StallAnalysis
@testable import StallStore
@testable import stallctl

/// Goal: text output agrees with the store, fits the terminal, and does not change unintentionally.
/// Method: reports made by hand with round numbers; snapshots, at two widths.
@Suite struct ViewTests {
    var narrow: Terminal {
        var terminal = Terminal.plain
        terminal.columns = 80
        return terminal
    }

    @Test func `a report is shown as a sentence, a timeline and stacks`() throws {
        let view = ReportView(report: SampleReports.report(), stackLimit: 3, terminal: .plain)
        try expectSnapshot(view.lines, "show")
    }

    /// The holder's group is decided as all groups are: by the rules in force, not by the built-in ones.
    @Test func `the holder of a lock is named by the rules in force`() throws {
        let report = SampleReports.report()
        func lines(_ rules: String) throws -> String {
            ReportView(
                report: report, stackLimit: 1, rules: try GroupingRules(rules, file: "r"),
                terminal: .plain
            ).lines.joined(separator: "\n")
        }
        #expect(try lines("").contains("'compactor' in compactDatabase()"))
        let skipped = try lines("skip function compactDatabase()")
        #expect(skipped.contains("held by thread 4719 'compactor'"))
        #expect(!skipped.contains("'compactor' in compactDatabase()"))
    }

    @Test func `stacks that look the same are one`() {
        var report = SampleReports.report()
        let frames = report.samples[0].frames
        for index in report.samples.indices {
            report.samples[index].frames = frames
            report.samples[index].isLate = false
            report.samples[index].frames[0].offset += UInt64(index)
        }
        let view = ReportView(report: report, stackLimit: 3, terminal: .plain)
        let titles = view.lines.filter { $0.hasPrefix("Stack ") }
        #expect(titles.count == 1 && titles[0].contains("\(report.samples.count) samples"))
    }

    @Test func `a report fits a narrow terminal`() throws {
        var report = SampleReports.report()
        report.threads = []
        report.samples[1].frames[2].function =
            "waitForWorker(" + String(repeating: "argument:", count: 20) + ")"
        let view = ReportView(report: report, stackLimit: 1, terminal: narrow)
        let stack = view.lines.filter { $0.contains("#") }
        #expect(stack.count == 7 && stack.allSatisfy { $0.displayWidth <= 80 })
    }

    @Test(arguments: [StallState.open, .hang])
    func `an unfinished report says so first`(state: StallState) throws {
        let report = SampleReports.report(state: state, samples: [])
        let view = ReportView(report: report, stackLimit: 3, terminal: .plain)
        try expectSnapshot(view.lines, "show-\(state)")
    }

    @Test func `a report without stacks, under another verdict, says why`() throws {
        var report = SampleReports.report(
            verdict: .starved, lasting: 400,
            samples: [
                SampleReports.sample(
                    at: 125, for: 400, [], failure: "thread 4711 did not answer in time")
            ])
        report.activity = "open album"
        let view = ReportView(report: report, stackLimit: 3, terminal: .plain)
        try expectSnapshot(view.lines, "show-starved")
    }

    @Test func `top is a sentence, a table and what to try next`() throws {
        try expectSnapshot(top(on: .plain).lines, "top")
        try expectSnapshot(top(on: narrow).lines, "top-narrow")
    }

    /// With all columns: a name stays readable, and the least important columns are omitted.
    @Test(arguments: [40, 60, 200])
    func `top fits the terminal`(columns: Int) throws {
        var terminal = Terminal.plain
        terminal.columns = columns
        var view = top(on: terminal)
        let noon = SampleReports.noon
        view.ranking.buckets = TimeBuckets(
            from: noon, through: UnixTime(microseconds: noon.microseconds + 7_200_000_000), count: 8
        )
        for index in view.ranking.groups.indices {
            view.ranking.groups[index].causes = [[.lock, .throttled, .cpu][index]: .seconds(1)]
            view.ranking.groups[index].trend = (0..<8).map { part in
                var totals = StallTotals()
                totals.add(.seconds(part * (index + 1) % 5))
                return totals
            }
        }
        view.ranking.suppressed = [
            SuppressedTotals(place: 1, reason: .place, count: 21, total: .seconds(12))
        ]
        view.holders = [
            SampleReports.id(1): NamedLockHolder(
                holder: LockHolder(
                    thread: ThreadID(rawValue: 4719), name: "compactor", isDeadlock: false))
        ]
        // Commands stay whole: they are copied.
        let lines = view.lines.filter { !$0.contains("stallctl ") }
        #expect(lines.allSatisfy { $0.displayWidth <= columns })
        try expectSnapshot(view.lines, "top-\(columns)")
    }

    @Test func `top of nothing says what was left out`() {
        let starved = SampleReports.summary(SampleReports.report(verdict: .starved))
        let ranking = Ranking(
            overview: Overview([starved], runs: [SampleReports.run()], example: nil), groups: [])
        let view = TopView(ranking: ranking, limit: 20, frameCount: 2, terminal: .plain)
        #expect(view.lines == ["No stalls.  Not ranked: 1 starved."])
    }

    @Test func `a list leaves out columns that always say the same`() throws {
        try expectSnapshot(
            ListView(listing: listing(hosts: ["web-2"]), terminal: .plain).lines, "list")
        try expectSnapshot(
            ListView(listing: listing(hosts: ["web-1", "web-2"]), terminal: narrow).lines,
            "list-hosts")
    }

    @Test func `why shows which rule kept or dropped each frame`() throws {
        let explanation = Explanation(SampleReports.report())
        try expectSnapshot(WhyView(explanation: explanation, terminal: .plain).lines, "why")
        try expectSnapshot(JSONLines.line(WhyRow(explanation)), "why-json")
    }

    @Test func `status is a few sentences`() throws {
        var terminal = Terminal.plain
        terminal.now = afterStatus
        try expectSnapshot(StatusView.lines(for: status, on: terminal) + exposure.lines, "status")
    }

    /// Half an hour after the end of the last watched time.
    private var afterStatus: UnixTime {
        UnixTime(microseconds: status.last!.microseconds + 1_800_000_000)
    }

    /// Goal: a machine that stopped to send is seen, and one of whose apps only one runs is none.
    @Test(arguments: [(30, ["web-1"]), (60, ["web-2", "web-1"])] as [(Int64, [String])])
    func `a machine without watched time for an hour is silent`(minutes: Int64, silent: [String]) {
        let now = UnixTime(microseconds: status.last!.microseconds + minutes * 60_000_000)
        #expect(status.silentHosts(at: now).map(\.host) == silent)
        let ahead = WatchedHost(host: "ahead", app: "a", last: UnixTime(microseconds: .max))
        let old = UnixTime(microseconds: now.microseconds - 31 * 86_400_000_000)
        let gone = WatchedHost(host: "gone", app: "a", last: old)
        let hosts = status.watchedHosts + [ahead, gone]
        #expect(
            WatchedHost.recent(hosts, at: now).map(\.host) == ["ahead", "web-1", "web-2", "web-2"])
    }

    /// Each rollout of a Deployment leaves the names of its pods.
    @Test func `a pod that a rollout replaced is not silent`() {
        func silent(_ hosts: (host: String, app: String, hours: Int64)...) -> [String] {
            let now = UnixTime(microseconds: 1_790_000_000_000_000)
            var status = status
            status.watchedHosts = hosts.map { host, app, hours in
                let last = UnixTime(microseconds: now.microseconds - hours * 3_600_000_000)
                return WatchedHost(host: host, app: app, last: last)
            }
            return status.silentHosts(at: now).map(\.host)
        }
        let (old, new) = ("shop-7d9f8c6b5d-x2vbn", "shop-5f6d9c7b84-9wxzk")
        #expect(silent((old, "shop", 5), (new, "shop", 0)) == [])
        // All pods of the app are silent: the last ones are missed.
        #expect(silent((old, "shop", 50), (new, "shop", 5)) == [new])
        #expect(silent((old, "shop", 5), (old, "proxy", 5), (new, "shop", 0)) == [old])
        // Names that stay: of a StatefulSet, of a machine.
        #expect(silent(("db-0", "db", 5), ("db-1", "db", 0)) == ["db-0"])
        #expect(silent(("web-1", "shop", 5), (new, "shop", 0)) == ["web-1"])
        #expect(silent(("-7d9f8c6b5d-x2vbn", "shop", 5), (new, "shop", 0)).count == 1)
        #expect(silent(("shop-7d9f8c6b5d-aeiou", "shop", 5), (new, "shop", 0)).count == 1)
    }

    @Test func `a machine with a clock that is ahead is listed as one`() {
        var (status, terminal) = (status, Terminal.plain)
        terminal.now = afterStatus
        status.watchedHosts.append(
            WatchedHost(
                host: "future", app: "a", last: UnixTime(microseconds: 4_000_000_000_000_000)))
        let lines = StatusView.lines(for: status, on: terminal)
        let i = lines.firstIndex { $0.hasPrefix("1 host with a clock ahead") }
        #expect(i.map { lines[$0 + 1] }?.hasPrefix("  future, watched until ") == true)
    }

    /// Two stretches of one loop, and what limits have held back.
    var exposure: ExposureSummary {
        let run = SampleReports.run()
        func stretch(_ busy: Duration) -> LoopExposure {
            LoopExposure(
                run: run, loop: "main", threshold: .milliseconds(250), start: run.started,
                watched: .seconds(1800), busy: busy, readyDelay: .milliseconds(12),
                microStallCount: 2, microStallTime: .milliseconds(310),
                lengths: LengthHistogram(counts: [3: 990, 40: 10]))
        }
        func held(_ place: Int64, _ reason: SuppressionReason) -> SuppressedTotals {
            SuppressedTotals(place: place, reason: reason, count: 7, total: .seconds(4))
        }
        return ExposureSummary(
            exposure: [stretch(.seconds(6)), stretch(.seconds(12))], lost: ["main": .seconds(9)],
            suppressed: [held(1, .place), held(1, .hour), held(2, .place)])
    }

    @Test func `JSON has the keys that scripts know`() throws {
        let report = SampleReports.report()
        let line = try ReportText(report, group: report.signature(by: DefaultGrouper()).group)
            .line(images: [
                Image(
                    path: SampleReports.photos, buildID: nil, loadAddress: 0x5500_0000_0000,
                    endAddress: 0x5500_0001_0000)
            ])
        let json =
            try String(decoding: line, as: UTF8.self)
            + JSONLines.line(top(on: .plain).ranking.rows[0])
            + JSONLines.line(listing(hosts: ["web-2"]).rows[0])
            + JSONLines.line(
                StatusRow(
                    StatusAnswer(status: status, exposure: exposure), at: afterStatus))
        try expectSnapshot(json, "json")
    }

    @Test func `CSV has the columns that scripts know`() throws {
        let report = SampleReports.report()
        let writer = CSVWriter()
        let group = report.signature(by: DefaultGrouper()).group
        let text =
            writer.row(ReportCSV.header.map { .plain($0) })
            + writer.row(ReportCSV.fields(report, group))
            + writer.row(FrameCSV.header.map { .plain($0) })
            + FrameCSV.rows(report).map(writer.row).joined()
            + writer.row(HotspotCSV.header.map { .plain($0) })
            + top(on: .plain).ranking.rows.map { writer.row(HotspotCSV.fields($0)) }.joined()
            + writer.row(ListingRow.csvHeader.map { .plain($0) })
            + writer.row(listing(hosts: ["web-2"]).rows[0].csvFields)
        try expectSnapshot(text, "csv")
    }

    @Test(arguments: hostileNames)
    func `no name steers the terminal or breaks a line`(name: String) throws {
        let run = SampleReports.run(app: name, version: name, host: name)
        var frame = SampleReports.frame(name, image: "/opt/" + name, file: "/src/" + name, line: 1)
        frame.rawName = name
        var report = SampleReports.report(
            run: run,
            samples: [
                SampleReports.sample(at: 1, for: 1, [frame]),
                SampleReports.sample(at: 2, for: 1, [], failure: name),
            ])
        report.loop = name
        report.mode = name
        report.activity = name
        let runs = [run, SampleReports.run(host: "other")]
        let ranking = Ranking(
            overview: Overview(
                [SampleReports.summary(report)], runs: runs, example: SampleReports.id(1)),
            groups: [aggregate(name)])
        let entry = Listing.Entry(
            report: SampleReports.summary(report), run: run,
            signature: report.signature(by: DefaultGrouper()))
        let listing = Listing(
            entries: [entry], reportCount: 1, shortIDs: ShortIDs(shown: [report.id], among: []))
        var status = status
        status.path = name
        status.apps = [name]
        status.watchedHosts = [WatchedHost(host: name, app: name, last: SampleReports.noon)]
        let lines =
            ReportView(report: report, stackLimit: 3, terminal: .plain).lines
            + TopView(
                ranking: ranking, limit: 20, frameCount: 2, storeOptions: [name], terminal: .plain
            ).lines
            + ListView(listing: listing, terminal: .plain).lines
            + StatusView.lines(for: status, on: .plain)
            + WhyView(explanation: Explanation(report), terminal: .plain).lines
        #expect(!lines.joined().unicodeScalars.contains { $0.steersTerminal })
    }

    @Test(arguments: [60, 80, 100, 200])
    func `who holds a lock is readable at any width`(columns: Int) {
        let holder = NamedLockHolder(
            holder: LockHolder(
                thread: ThreadID(rawValue: 7), name: "compactor", isDeadlock: false),
            function: "compactDatabase(_:)")
        var terminal = Terminal.plain
        terminal.columns = columns
        var view = top(on: terminal)
        view.holders = [view.ranking.groups[1].example!: holder]
        let clause = "held by 'compactor' in compactDatabase(_:)"
        #expect(view.lines.count { $0.contains(clause) } == 1)
        #expect(view.lines.allSatisfy { $0.displayWidth <= columns })
        // A live screen has one line per group.
        view.isLive = true
        #expect(view.table.lines(for: view.terminal).count == 3)
    }

    private func aggregate(
        _ name: String, callers: [String] = [], count: Int = 1, total: Int = 1000,
        number: UInt64 = 1
    ) -> StallAggregate {
        var totals = StallTotals()
        totals.count = count
        totals.total = .milliseconds(total)
        totals.longest = .milliseconds(total / count + 300)
        return StallAggregate(
            ReportGroup(
                signature: Int64(number), family: Int64(number), title: name,
                frames: [name] + callers),
            totals: totals, p50: .milliseconds(total / count),
            p95: .milliseconds(total / count + 200), p99: .milliseconds(total / count + 250),
            apps: ["photos"], versions: ["2.2.9", "2.3.0"], first: SampleReports.noon,
            last: SampleReports.noon, example: SampleReports.id(number))
    }

    private func top(on terminal: Terminal) -> TopView {
        let verdicts: [(StallVerdict, StallState)] = [
            (.stalled, .ended), (.stalled, .open), (.stalled, .hang), (.starved, .ended),
            (.stopped, .ended),
        ]
        let reports = verdicts.enumerated().map { index, kind in
            SampleReports.summary(
                SampleReports.report(
                    UInt64(index + 1), state: kind.1, verdict: kind.0,
                    startingAfter: Int64(index) * 3600,
                    lasting: 118_000),
                run: index % 2)
        }
        let groups = [
            aggregate(
                "sleepInTimer()", callers: ["Timeline.tick()", "main"], count: 61, total: 118_000,
                number: 1),
            aggregate(
                "Gallery.drawComplexLayout(of:in:with:)",
                callers: ["closure in Gallery.relayout(for:animated:)"], count: 88, total: 52_000,
                number: 2),
            aggregate("saveEverything()", count: 1, total: 600, number: 3),
        ]
        return TopView(
            ranking: Ranking(
                overview: Overview(
                    reports,
                    runs: [SampleReports.run(), SampleReports.run(host: "web-1", number: 901)],
                    example: groups.first?.example),
                groups: groups),
            limit: 2, frameCount: 2, storeOptions: ["my stalls.sqlite"], terminal: terminal)
    }

    private func listing(hosts: [String]) -> Listing {
        let states: [(StallState, StallVerdict)] = [
            (.ended, .stalled), (.open, .stalled), (.hang, .stalled), (.ended, .stopped),
        ]
        let entries = states.enumerated().map { index, state in
            let report = SampleReports.report(
                UInt64(index + 1), run: SampleReports.run(host: hosts[index % hosts.count]),
                state: state.0,
                verdict: state.1, startingAfter: Int64(-index * 86400))
            return Listing.Entry(
                report: SampleReports.summary(report), run: report.run,
                signature: report.signature(by: DefaultGrouper()))
        }
        return Listing(
            entries: entries, reportCount: 7,
            shortIDs: ShortIDs(shown: entries.map(\.report.id), among: []))
    }

    private var status: StoreStatus {
        var status = StoreStatus(
            path: "stalls.sqlite", role: .central, schemaVersion: 1, bytes: 1_234_567)
        (status.sourceCount, status.runCount) = (20, 12)
        (status.reportCount, status.stackCount) = (214, 312)
        status.reportsByState = [.ended: 211, .open: 1, .hang: 2]
        status.reportsByVerdict = [.stalled: 209, .starved: 4, .stopped: 1]
        (status.rollUpCount, status.rollUpDayCount, status.rollUpReportCount) = (41, 2, 260)
        (status.apps, status.hosts) = (["photos", "videos"], ["web-1", "web-2"])
        status.first = SampleReports.noon
        status.last = UnixTime(microseconds: SampleReports.noon.microseconds + 86_400_000_000)
        status.losses = [.suppressed: 37, .evicted: 0]
        status.watchedHosts = [
            WatchedHost(host: "web-1", app: "photos", last: SampleReports.noon),
            WatchedHost(host: "web-2", app: "photos", last: SampleReports.noon),
            WatchedHost(host: "web-2", app: "videos", last: status.last!),
        ]
        return status
    }
}
