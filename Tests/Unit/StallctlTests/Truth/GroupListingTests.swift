import Foundation
import StallAnalysis
import StallArchive
import StallIngest
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: the newest stalls of a group, read from the days that have any, are those that a look at every report finds.
/// Method: a made-up fleet over forty days in a central store; with a least duration, if only of a nanosecond, a
/// listing reads all reports.
@Suite struct GroupListingTests {
    @Test(arguments: GroupKey.allCases)
    func `a group's newest stalls come from its days`(key: GroupKey) throws {
        try withTemporaryDirectory { directory in
            let fleet = MadeUpFleet(seed: 5)
            let agent = directory.appending(path: "agent").path
            try fleet.write(fleet.runs.indices, to: agent)
            let central = directory.appending(path: "central").path
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            #expect(try ingest.run([agent]).skippedCount == 0)
            try ingest.close()
            let store = try ReportStore.open(path: central)
            var part = ReportFilter()
            part.since = UnixTime(microseconds: MadeUpFleet.begin + 3 * 86_400_000_000 + 7)
            part.until = UnixTime(microseconds: MadeUpFleet.begin + 30 * 86_400_000_000)
            part.versions = ["1.0", "2.0"]
            for filter in [ReportFilter(), part] {
                let question = RankingQuestion(store: store, filter: filter, by: key)
                let groups = try question.exactRanking(by: .total).groups
                #expect(!groups.isEmpty)
                for group in groups.prefix(3) {
                    var listing = ListingQuestion(question, limit: 5)
                    listing.exactGroup = (key, group.group.signature)
                    let found = try listing.listing()
                    listing.minDuration = .nanoseconds(1)
                    let expected = try listing.listing()
                    #expect(!found.entries.isEmpty, "\(key) \(group.title)")
                    #expect(found.entries.map(\.report.id) == expected.entries.map(\.report.id))
                    #expect(found.entries.map(\.run) == expected.entries.map(\.run))
                    #expect(found.rows.map(\.title) == expected.rows.map(\.title))
                    #expect(found.reportCount == expected.reportCount)
                }
            }
        }
    }

    @Test func `the reports of a group's name are those that a look at every report finds`() throws
    {
        try withTemporaryDirectory { directory in
            let fleet = MadeUpFleet(seed: 6)
            let agent = directory.appending(path: "agent").path
            try fleet.write(fleet.runs.indices, to: agent)
            let central = directory.appending(path: "central").path
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            #expect(try ingest.run([agent]).skippedCount == 0)
            try ingest.close()
            let store = try ReportStore.open(path: central)
            // Says nothing of any frame, but has a hash of its own: the stored groups are not used.
            let others = try GroupingRules("skip function noFunctionHasThisName", file: "test")
            #expect(others.hash != GroupingRules.builtIn.hash)
            let groups = try RankingQuestion(store: store, filter: ReportFilter())
                .exactRanking(by: .total).groups
            var names: [String] = groups.prefix(4).flatMap {
                [$0.title, $0.group.frames.first, hexadecimal($0.group.signature)].compactMap { $0 }
            }
            names += ["lock in", "*(*", "i"]
            for name in names {
                for (state, least) in [(nil, 0), (.hang, 0), (nil, 900)] as [(StallState?, Int)] {
                    func listing(_ rules: GroupingRules) throws -> Listing {
                        var listing = ListingQuestion(
                            RankingQuestion(store: store, filter: ReportFilter(), rules: rules),
                            limit: 50)
                        listing.group = name
                        listing.states = state.map { [$0] } ?? []
                        listing.minDuration = .milliseconds(least)
                        return try listing.listing()
                    }
                    let (found, expected) = try (listing(.builtIn), listing(others))
                    #expect(
                        found.entries.map(\.report) == expected.entries.map(\.report), "\(name)")
                    #expect(found.reportCount == expected.reportCount)
                }
            }
            #expect(throws: UnclearGroup.self) {
                var listing = ListingQuestion(
                    RankingQuestion(store: store, filter: ReportFilter()), limit: 50)
                listing.group = "noFunctionHasThisName"
                _ = try listing.listing()
            }
        }
    }
}
