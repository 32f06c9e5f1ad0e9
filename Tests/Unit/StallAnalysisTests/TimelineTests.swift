import StallAnalysis
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: a timeline says of each function when it was on the stack.
/// Method: reports at random; each function is looked for in each sample by its name.
@Suite struct TimelineTests {
    private struct Function: Hashable {
        var title: String
        var image: String?

        init(_ frame: Frame) { (title, image) = (frame.title, frame.imagePath) }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `every function has its first and last sample, and its share`(seed: UInt64) throws {
        var generator = ReportGenerator(seed: seed)
        for _ in 0..<50 {
            var report = generator.report()
            report = report.named(generator.names(of: report))
            let timeline = Timeline(
                report: report, signature: report.signature(by: DefaultGrouper()))
            let samples = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
            let whole = samples.reduce(Duration.zero) { $0 + $1.weight }
            let functions = timeline.functions
            #expect(Set(functions.map { Function($0.frame) }).count == functions.count)
            guard whole > .zero else {
                #expect(functions.isEmpty)
                continue
            }
            #expect(
                Set(functions.map { Function($0.frame) })
                    == Set(samples.flatMap(\.frames).map(Function.init)))
            for (frame, presence) in functions {
                let present = samples.filter {
                    $0.frames.contains { Function($0) == Function(frame) }
                }
                #expect(presence.from == present.first?.offset)
                let last = present.last?.offset
                #expect(presence.until == (last == samples.last?.offset ? nil : last))
                let weight = present.reduce(Duration.zero) { $0 + $1.weight }
                #expect(presence.share == weight / whole)
                #expect(timeline.presence(of: frame) == presence)
            }
            let shares = functions.map(\.presence.share)
            #expect(shares == shares.sorted(by: >))
        }
    }
}
