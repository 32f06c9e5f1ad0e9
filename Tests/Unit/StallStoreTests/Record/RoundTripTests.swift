import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: what an agent records is what one reads, in the agent's store and after `ingest`, byte for
/// byte. Method: seeded random reports go in through the public calls and come out through them.
@Suite struct RoundTripTests {
    let directory = try! TemporaryDirectory()

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `reports come out as they went in`(seed: UInt64) throws {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        let reports = (0..<40).map { _ in generator.report() }
        for report in reports { try store.record(report, images: generator.images) }

        let reader = try ReportStore.open(path: directory("agent.sqlite"))
        let expected = reports.map { $0.named() }
        #expect(Set(try reader.reports(ReportFilter())) == Set(expected))
        for report in expected.prefix(5) {
            #expect(try reader.report(idPrefix: report.id.description) == report)
        }
        try store.close()
    }

    @Test func `names that are not final are shown, and asked for again`() throws {
        var generator = ReportGenerator(seed: 5)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        let report = generator.report()
        try store.record(report, images: generator.images)
        let places = report.places
        let names = Dictionary(uniqueKeysWithValues: places.map { ($0, generator.names($0)) })
        try store.symbolize(names, areFinal: false)
        #expect(Set(try store.unsymbolized(Array(places))) == places)
        let reader = try ReportStore.open(path: directory("agent.sqlite"))
        #expect(try reader.reports(ReportFilter()) == [report.named(names)])
        let known = places.filter { $0.buildID != nil }
        #expect(Set(try reader.unfinishedLocations()) == known)
        try store.symbolize(names)
        #expect(try store.unsymbolized(Array(places)).isEmpty)
        #expect(try reader.unfinishedLocations().isEmpty)
        try store.close()
    }

    @Test(arguments: 11...14 as ClosedRange<UInt64>)
    func `names attach to places, in every report that has them`(seed: UInt64) throws {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        let reports = (0..<20).map { _ in generator.report() }
        for report in reports.dropLast(5) { try store.record(report, images: generator.images) }

        let places = reports.reduce(into: Set()) { $0.formUnion($1.places) }
        let recorded = reports.dropLast(5).reduce(into: Set()) { $0.formUnion($1.places) }
        #expect(Set(try store.unsymbolized(Array(places))) == places)
        var names = Dictionary(uniqueKeysWithValues: recorded.map { ($0, generator.names($0)) })
        try store.symbolize(names)
        #expect(try store.unsymbolized(Array(recorded)).isEmpty)
        // Names are redone as a whole.
        for place in recorded.prefix(10) { names[place] = generator.names(place) }
        try store.symbolize(names)
        // Reports that come later find the names there.
        for report in reports.suffix(5) { try store.record(report, images: generator.images) }
        try store.close()

        let expected = Set(reports.map { $0.named(names) })
        #expect(
            Set(try ReportStore.open(path: directory("agent.sqlite")).reports(ReportFilter()))
                == expected)
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([directory("agent.sqlite")]).addedCount == 20)
        try ingest.close()
        let central = try ReportStore.open(path: directory("central.sqlite"))
        // Their processes are of no boot of a machine that we are, so that open ones stay open.
        #expect(Set(try central.reports(ReportFilter())) == expected)
        #expect(
            try central.images(ofRun: generator.run.id)
                == generator.images.sorted { $0.loadAddress < $1.loadAddress })
    }

    @Test func `an open report is refreshed, gains samples and ends`() throws {
        var generator = ReportGenerator(seed: 21)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        let reader = try ReportStore.open(path: directory("agent.sqlite"))
        var report = generator.report(state: .open)
        report.samples = []
        report.threads = []
        try store.record(report, images: generator.images)
        #expect(try reader.reports(ReportFilter()) == [report])

        report.duration = .seconds(7)
        report.cpuTime = .seconds(6)
        try store.record(report, images: generator.images)
        #expect(try reader.reports(ReportFilter()) == [report])

        report.samples = [generator.sample(), generator.sample()]
        report.threads = [generator.thread()]
        report.cause = generator.cause()
        try store.record(report, images: generator.images)
        #expect(try reader.reports(ReportFilter()) == [report.named()])

        report.state = .ended
        report.duration = .seconds(8)
        report.samples[0].weight = .seconds(3)
        try store.record(report, images: generator.images)
        #expect(try reader.reports(ReportFilter()) == [report.named()])

        // Its cause is known when its names are.
        report.cause = generator.cause()
        try store.record(report, images: generator.images)
        #expect(try reader.reports(ReportFilter()) == [report.named()])
    }

    @Test func `a filter selects the same reports as asking each of them`() throws {
        var all: [StallReport] = []
        let ingest = try Ingest(into: directory("central.sqlite"))
        for seed: UInt64 in 31...36 {
            var generator = ReportGenerator(seed: seed, app: seed % 2 == 0 ? "photos" : "mail")
            let store = try AgentStore(path: directory("\(seed).sqlite"), run: generator.run)
            for _ in 0..<15 {
                all.append(generator.report())
                try store.record(all.last!, images: generator.images)
            }
            try store.close()
        }
        _ = try ingest.run([directory.path])
        try ingest.close()
        let store = try ReportStore.open(path: directory("central.sqlite"))
        let middle = all.map(\.start).sorted()[all.count / 2]
        var filters = [ReportFilter()]
        func add(_ change: (inout ReportFilter) -> Void) {
            var filter = ReportFilter()
            change(&filter)
            filters.append(filter)
        }
        add { $0.apps = ["mail"] }
        add { $0.apps = ["mail", "photos"] }
        add { $0.apps = ["no such app", "x' or 1 = 1 --"] }
        add {
            $0.hosts = ["web-1"]; $0.apps = ["photos"]
        }
        add { $0.versions = ["2.33.0"] }
        add { $0.loops = ["", "decoder"] }
        add { $0.since = middle }
        add { $0.until = middle }
        add {
            $0.since = middle; $0.until = UnixTime(microseconds: middle.microseconds + 1)
        }
        add { $0.verdicts = [.stalled, .starved] }
        add { $0.verdicts = [] }
        for filter in filters {
            let expected = all.filter { filter.selects($0) }
            let selection = try store.summaries(filter)
            #expect(Set(selection.reports.map(\.id)) == Set(expected.map(\.id)))
            #expect(selection.reports.count == expected.count)
            let whole = try store.reports(filter)
            #expect(Set(whole) == Set(expected.map { $0.named() }))
            #expect(whole.map(\.start) == whole.map(\.start).sorted(by: >))
            #expect(try store.reports(filter, limit: 3) == Array(whole.prefix(3)))
        }
        // A summary refers to the same stacks as the report.
        let selection = try store.summaries(ReportFilter())
        let frames = try store.frames(
            ofStacks: Set(selection.reports.flatMap(\.stacks).map(\.stack)))
        for summary in selection.reports {
            let report = try #require(all.first { $0.id == summary.id }).named()
            #expect(selection.runs[summary.run] == report.run)
            #expect(summary.loop == report.loop && summary.duration == report.duration)
            #expect(summary.state == report.state && summary.verdict == report.verdict)
            #expect(summary.cause == report.cause?.cause)
            let seen = report.samples.filter {
                !$0.isLate && !($0.locations.isEmpty && !$0.isTruncated)
            }
            #expect(summary.stacks.map(\.weight) == seen.map(\.weight))
            #expect(summary.stacks.map { frames[$0.stack] } == seen.map(\.frames))
        }
        #expect(try store.frames(ofStacks: [-1, 1 << 40]).isEmpty)
    }

    @Test func `a report is found by the beginning of its id, when only one begins so`() throws {
        var generator = ReportGenerator(seed: 41)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        let reports = (0..<20).map { _ in generator.report() }
        for report in reports { try store.record(report, images: []) }
        let reader = try ReportStore.open(path: directory("agent.sqlite"))
        let id = reports[7].id.description
        #expect(try reader.report(idPrefix: id.uppercased()).id == reports[7].id)
        #expect(try reader.report(idPrefix: String(id.prefix(31))).id == reports[7].id)
        let dashed = "\(id.prefix(8))-\(id.dropFirst(8))"
        #expect(try reader.report(idPrefix: dashed).id == reports[7].id)
        for wrong in ["", "zz", "ffff", id + "0", "é"] {
            #expect(throws: StoreError.unknownReport(prefix: wrong)) {
                try reader.report(idPrefix: wrong)
            }
        }
        let error = try #require(throws: StoreError.self) { try reader.report(idPrefix: "01") }
        guard case .ambiguousReport(_, let ids) = error else { throw error }
        #expect(Set(ids) == Set(reports.map(\.id)))
    }
}

extension ReportFilter {
    /// What a filter means, said once more and in another way.
    func selects(_ report: StallReport) -> Bool {
        (apps.isEmpty || apps.contains(report.run.app))
            && (versions.isEmpty || versions.contains(report.run.version))
            && (hosts.isEmpty || hosts.contains(report.run.host))
            && (loops.isEmpty || loops.contains(report.loop))
            && (since == nil || report.start >= since!) && (until == nil || report.start < until!)
            && (verdicts == nil || verdicts!.contains(report.verdict))
    }
}
