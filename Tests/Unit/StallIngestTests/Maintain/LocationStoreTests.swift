import StallModel
import StallQuery
import StoreTestSupport
import TestSupport
import Testing

@testable import StallArchive
@testable import StallIngest
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

    /// Two agents of one build saw the same stall. One of them had the time to look for the calls that were inlined at the
    /// places, the other had not.
    private func writeTwins(files: [String]) throws {
        var generator = ReportGenerator(seed: 6)
        var report = generator.report()
        while report.samples.allSatisfy({ $0.isLate || $0.locations.isEmpty }) {
            report = generator.report()
        }
        report.verdict = .stalled
        for index in report.samples.indices {
            // A place in no build is another one in each run.
            report.samples[index].locations.removeAll { $0.buildID == nil }
        }
        for file in files {
            let isSlow = file == "slow.sqlite"
            if isSlow { generator.run = ReportGenerator(seed: 7).run }
            report.run = generator.run
            report.id = UniqueID(version7At: report.start, random: &generator.random)
            let store = try AgentStore(path: directory(file), run: report.run)
            try store.record(report, images: generator.images)
            let found = Dictionary(
                uniqueKeysWithValues: report.places.map { place in
                    let function = names(place, "Timeline.tick\(place.offset)()")
                    var inlined = names(place, "inlined\(place.offset)()", line: 3)
                    inlined[0].isInlined = true
                    return (place, isSlow ? function : inlined + function)
                })
            try store.symbolize(found, areFinal: !isSlow)
            try store.close()
        }
    }

    private func groups(of files: [String]) throws -> [String] {
        let path = directory(files.joined() + "central.sqlite")
        for file in files {
            let ingest = try Ingest(into: path)
            _ = try ingest.run([directory(file)])
            try ingest.close()
        }
        #expect(try checkStore(path: path).isEmpty)
        return try ReportStore.open(path: path).aggregates(AggregateQuestion(), grouper: rules)
            .groups.map(\.group.title)
    }

    @Test func `names that one agent had no time for make no group of their own, in any order`()
        throws
    {
        try writeTwins(files: ["fast.sqlite", "slow.sqlite"])
        let group = try groups(of: ["fast.sqlite"])
        #expect(group.count == 1)
        #expect(try groups(of: ["fast.sqlite", "slow.sqlite"]) == group)
        #expect(try groups(of: ["slow.sqlite", "fast.sqlite"]) == group)
    }

    @Test func `names that are not complete yet are imported, and asked for until they are`() throws
    {
        try writeTwins(files: ["slow.sqlite"])
        let group = try groups(of: ["slow.sqlite"])
        #expect(group.count == 1 && group[0].contains("Timeline.tick"))
        let path = directory("slow.sqlitecentral.sqlite")
        let central = try ReportStore.open(path: path)
        let places = try central.unfinishedLocations()
        #expect(!places.isEmpty)
        let store = try LocationStore(path: path, grouper: rules)
        let better = places.map { ($0, names($0, "Timeline.tick\($0.offset)()", line: 5)) }
        #expect(try store.rename(Dictionary(uniqueKeysWithValues: better)).count == places.count)
        try store.close()
        #expect(try central.unfinishedLocations().isEmpty)
        #expect(try checkStore(path: path).isEmpty)
    }
}
