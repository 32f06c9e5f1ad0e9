import StallModel
import StallQuery
import TestSupport
import Testing

@testable import StallArchive
@testable import StallStore

/// Goal: names that come later replace those that say less, and nothing else. Method: seeded random reports and names
/// through the public calls, checked against what the calls were given.
@Suite struct LocationStoreTests {
    let directory = try! TemporaryDirectory()
    let rules = PlainGrouper()

    private func names(_ location: CodeLocation, _ function: String?, line: Int? = nil) -> [Frame] {
        var frame = Frame(location)
        frame.function = function
        frame.file = line == nil ? nil : "/src/Timeline.swift"
        frame.line = line
        return [frame]
    }

    private func writeStore(seed: UInt64) throws -> Set<CodeLocation> {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        let reports = (0..<20).map { _ in generator.report() }
        for report in reports { try store.record(report, images: generator.images) }
        try store.close()
        return reports.reduce(into: Set()) { $0.formUnion($1.places) }
    }

    @Test func `every place with a build ID is offered, and the others are counted`() throws {
        let all = try writeStore(seed: 1)
        let store = try LocationStore(path: directory("agent.sqlite"), grouper: rules)
        let (places, withoutBuildID) = try store.places(ReportFilter())
        #expect(Set(places.map(\.location)) == all.filter { $0.buildID != nil })
        #expect(withoutBuildID == all.count { $0.buildID == nil })
        var filter = ReportFilter()
        filter.loops = ["main", "decoder", ""]
        #expect(Set(try store.places(filter).places) == Set(places))
        filter.loops = ["main"]
        #expect(try store.places(filter).places.count < places.count)
        filter.apps = ["other"]
        #expect(try store.places(filter).places.isEmpty)
    }

    @Test func `names are replaced by what says as much or more, never by less`() throws {
        let all = try writeStore(seed: 2)
        let place = try #require(all.first { $0.buildID != nil })
        let unidentified = try #require(all.first { $0.buildID == nil })
        let store = try LocationStore(path: directory("agent.sqlite"), grouper: rules)
        func rename(_ names: [Frame]) throws -> Bool { try !store.rename([place: names]).isEmpty }
        #expect(try rename(names(place, nil)))  // looked up: there is no symbol
        #expect(try !rename(names(place, nil)))
        #expect(try rename(names(place, "tick()")))
        #expect(try rename(names(place, "Timeline.tick()")))
        #expect(try !rename(names(place, nil)))
        #expect(try rename(names(place, "Timeline.tick()", line: 12)))
        #expect(try !rename(names(place, "Timeline.tick()", line: 12)))
        #expect(try !rename(names(place, "Other.tick()")))
        let stored = try store.places(ReportFilter()).places.first { $0.location == place }
        #expect(stored?.frames == names(place, "Timeline.tick()", line: 12))
        #expect(try store.rename([unidentified: names(unidentified, "wrong()")]).isEmpty)
        var elsewhere = place
        elsewhere.offset = 1
        #expect(try store.rename([elsewhere: names(elsewhere, "wrong()")]).isEmpty)
    }

    @Test func `ingest imports symbols that came after the reports`() throws {
        let all = try writeStore(seed: 3).filter { $0.buildID != nil }
        func ingest() throws {
            let ingest = try Ingest(into: directory("central.sqlite"))
            _ = try ingest.run([directory("agent.sqlite")])
            try ingest.close()
        }
        func stored(_ name: String) throws -> Set<StoredLocation> {
            let store = try LocationStore(path: directory(name), grouper: rules)
            defer { try? store.close() }
            return Set(try store.places(ReportFilter()).places)
        }
        try ingest()
        let agent = try LocationStore(path: directory("agent.sqlite"), grouper: rules)
        let better = Dictionary(
            uniqueKeysWithValues: all.map { ($0, names($0, "at\($0.offset)()", line: 3)) })
        #expect(try agent.rename(better) == all)
        try agent.close()
        try ingest()
        #expect(try stored("central.sqlite") == stored("agent.sqlite"))
        #expect(try stored("central.sqlite").allSatisfy { better[$0.location] == $0.frames })

        // A central store's own locations can be symbolicated as well; its groups follow.
        let central = try LocationStore(path: directory("central.sqlite"), grouper: rules)
        let best = Dictionary(
            uniqueKeysWithValues: all.map { ($0, names($0, "best\($0.offset)()", line: 4)) })
        #expect(try central.rename(best) == all)
        try central.close()
        try ingest()
        #expect(try stored("central.sqlite").allSatisfy { best[$0.location] == $0.frames })
        #expect(try checkStore(path: directory("central.sqlite")).isEmpty)
        let reader = try ReportStore.open(path: directory("central.sqlite"))
        let groups = try reader.aggregates(AggregateQuestion(), grouper: rules).groups.map(
            \.group.title)
        let expected = try reader.reports(ReportFilter()).filter { $0.verdict == .stalled }
            .map { rules.group(of: $0).title }
        #expect(Set(groups) == Set(expected) && groups.contains { $0.contains("best") })
    }
}
