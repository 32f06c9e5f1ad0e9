import StallFormats
import StallModel
import Testing

@testable import stallctl

/// Goal: flame graph tools read every line, and no time is lost or made up.
/// Method: reports made by hand; the grammar that FlameGraph and speedscope share as a regular
/// expression.
@Suite struct FoldedStacksTests {
    @Test func `equal stacks are one line, root first, with the time they stand for`() {
        var stacks = FoldedStacks()
        for number in 1...2 { stacks.add(SampleReports.report(UInt64(number))) }
        #expect(stacks.lines(weight: .ms).map { $0.split(separator: " ").last } == ["3312", "368"])
        #expect(stacks.lines(weight: .count).map { $0.split(separator: " ").last } == ["4", "2"])
        #expect(stacks.lines(weight: .ms)[0].hasPrefix("photos;main;__libc_start_call_main;main;"))
    }

    @Test func `late samples and delays that are not the app's do not count`() {
        var stacks = FoldedStacks()
        stacks.add(SampleReports.report(verdict: .starved))
        let late = SampleReports.sample(at: 1, for: 1, SampleReports.waiting, isLate: true)
        stacks.add(SampleReports.report(samples: [late]))
        #expect(stacks.lines(weight: .ms).isEmpty)
    }

    @Test(arguments: hostileNames + ["a;b", ";"])
    func `no name breaks the grammar`(name: String) throws {
        var stacks = FoldedStacks()
        let frame = SampleReports.frame(name)
        stacks.add(SampleReports.report(samples: [SampleReports.sample(at: 1, for: 7, [frame])]))
        let line = try #require(stacks.lines(weight: .ms).first)
        let match = try #require(try /(.*) (\d+)/.wholeMatch(in: line))
        #expect(match.1.split(separator: ";", omittingEmptySubsequences: false).count == 3)
        #expect(match.2 == "7")
    }

    @Test func `weights beyond any clock are counted, not trapped on`() {
        var stacks = FoldedStacks()
        var sample = SampleReports.sample(at: 1, for: 1, SampleReports.waiting)
        sample.weight = .nanoseconds(Int64.max)
        stacks.add(SampleReports.report(samples: [sample, sample]))
        #expect(stacks.lines(weight: .ms)[0].hasSuffix(" 9223372036855"))
    }
}
