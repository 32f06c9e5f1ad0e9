import Foundation
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: a central store holds exactly what its sources hold, however often and in whatever order
/// they come. Method: seeded reports, changed between runs of ingest; the sources are the oracle.
@Suite struct IngestTests {
    let directory = try! TemporaryDirectory()

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `after every ingest the central store says what the agent's store says`(seed: UInt64)
        throws
    {
        var generator = ReportGenerator(seed: seed)
        var random = SeededGenerator(seed: seed)
        let path = directory("agent.sqlite")
        let agent = try AgentStore(path: path, run: generator.run)
        let central = directory("central.sqlite")
        var open: [StallReport] = []
        for _ in 0..<12 {
            for _ in 0..<Int.random(in: 0...6, using: &random) {
                switch Int.random(in: 0...3, using: &random) {
                case 0:
                    open.append(generator.report(state: .open))
                    try agent.record(open.last!, images: generator.images)
                case 1 where !open.isEmpty:
                    var report = open.removeFirst()
                    report.state = .ended
                    report.samples.append(generator.sample())
                    try agent.record(report, images: generator.images)
                case 2 where !open.isEmpty:
                    open[0].duration += .seconds(5)
                    open[0].cpuTime = .seconds(1)
                    try agent.record(open[0], images: generator.images)
                default:
                    let report = generator.report(state: .ended)
                    try agent.record(report, images: generator.images)
                    try agent.symbolize(generator.names(of: report))
                }
            }
            let ingest = try Ingest(into: central)
            #expect(try ingest.run([path]).skippedCount == 0)
            #expect(try ingest.run([path, path]).addedCount == 0)
            try ingest.close()
            let taken = try ReportStore.open(path: central).reports(ReportFilter())
            let expected = try ReportStore.open(path: path).reports(ReportFilter())
            // Symbols are imported if they are more detailed than before, so only known ones are compared.
            #expect(taken.map(\.withoutNames) == expected.map(\.withoutNames))
            #expect(try checkStore(path: central).isEmpty)
        }
        try agent.close()
    }

    @Test func `a central store is itself a source`() throws {
        var all: Set<StallReport> = []
        for seed: UInt64 in 1...3 {
            var generator = ReportGenerator(seed: seed)
            let store = try AgentStore(path: directory("\(seed).sqlite"), run: generator.run)
            for _ in 0..<20 {
                let report = generator.report()
                try store.record(report, images: generator.images)
                try store.symbolize(generator.names(of: report))
            }
            try store.countLosses(2, reason: .suppressed)
            try store.close()
            all.formUnion(
                try ReportStore.open(path: directory("\(seed).sqlite")).reports(ReportFilter()))
        }
        let (first, second) = (directory("first.central"), directory("second.central"))
        for sources in [["1", "2"], ["3"], ["1", "2", "3"]] {
            let ingest = try Ingest(into: first)
            _ = try ingest.run(sources.map { directory("\($0).sqlite") })
            try ingest.close()
            let again = try Ingest(into: second)
            // One of the agents comes both ways.
            _ = try again.run([first, directory("2.sqlite")])
            try again.close()
        }
        let store = try ReportStore.open(path: second)
        let taken = Set(try store.reports(ReportFilter()))
        #expect(Set(taken.map(\.withoutNames)) == Set(all.map(\.withoutNames)))
        #expect(taken.count == 60)
        #expect(try store.status().losses == [.suppressed: 6])
        #expect(try store.status().sourceCount == 3)
        #expect(try checkStore(path: second).isEmpty)
        try expectSound(second)
        // And never into itself.
        let itself = try Ingest(into: first)
        #expect(try itself.run([first]).files.isEmpty)
    }

    @Test func `names that say more replace those that say less`() throws {
        var generator = ReportGenerator(seed: 5)
        var report = generator.report(state: .ended)
        let place = CodeLocation(
            imagePath: generator.images[0].path, buildID: generator.images[0].buildID, offset: 7,
            kind: .interrupted)
        report.samples = [generator.sample()]
        report.samples[0].locations = [place]
        func frame(_ name: String?, line: Int?) -> Frame {
            var frame = Frame(place)
            (frame.function, frame.line) = (name, line)
            return frame
        }
        func known() throws -> Set<Frame> {
            let reports = try ReportStore.open(path: directory("central.sqlite")).reports(
                ReportFilter())
            let frames = reports.flatMap(\.samples).flatMap(\.frames).filter {
                $0.offset == place.offset && $0.imagePath == place.imagePath
                    && $0.kind == place.kind
            }
            return Set(
                frames.map { frame in
                    var frame = frame
                    frame.isGuessed = false
                    return frame
                })
        }
        func ingest(_ name: String, _ frame: Frame) throws {
            let store = try AgentStore(path: directory(name), run: generator.run)
            var report = report
            report.id = generator.report().id
            try store.record(report, images: generator.images)
            try store.symbolize([place: [frame]])
            try store.close()
            let ingest = try Ingest(into: directory("central.sqlite"))
            _ = try ingest.run([directory(name)])
            try ingest.close()
        }
        try ingest("a.sqlite", frame(nil, line: nil))
        #expect(try known() == [frame(nil, line: nil)])
        try ingest("b.sqlite", frame("tick()", line: nil))
        #expect(try known() == [frame("tick()", line: nil)])
        try ingest("c.sqlite", frame(nil, line: nil))
        #expect(try known() == [frame("tick()", line: nil)])
        try ingest("d.sqlite", frame("tick()", line: 7))
        #expect(try known() == [frame("tick()", line: 7)])
    }

    @Test func `reports that are too many to be prefetched at once are imported all the same`()
        throws
    {
        var generator = ReportGenerator(seed: 7)
        let path = directory("agent.sqlite")
        let agent = try AgentStore(path: path, run: generator.run)
        for _ in 0..<11 {
            var report = generator.report(state: .ended)
            // A few of them are more than what may wait to be written.
            report.samples = [generator.sample()]
            report.samples[0].failure = String(repeating: "x", count: 1 << 20)
            try agent.record(report, images: generator.images)
        }
        try agent.close()
        let central = directory("central.sqlite")
        #expect(try Ingest(into: central).run([path]).addedCount == 11)
        #expect(
            try ReportStore.open(path: central).reports(ReportFilter())
                == ReportStore.open(path: path).reports(ReportFilter()))
    }

    /// Method: three stores in one, with room for five changes of roll-ups; then the same with a report at its end that
    /// cannot be imported, between two other stores.
    @Test func `roll-ups of a large store are written before its end, and go with it`() throws {
        var paths: [String] = []
        for seed: UInt64 in 21...25 {
            var generator = ReportGenerator(seed: seed)
            paths.append(directory("\(seed).sqlite"))
            let agent = try AgentStore(path: paths.last!, run: generator.run)
            for _ in 0..<20 {
                let report = generator.report(state: .ended)
                try agent.record(report, images: generator.images)
                try agent.symbolize(generator.names(of: report))
            }
            try agent.close()
        }
        let large = directory("large.central")
        let first = try Ingest(into: large)
        #expect(try first.run(Array(paths[..<3])).addedCount == 60)
        try first.close()
        let broken = directory("broken.central")
        try FileManager.default.copyItem(atPath: large, toPath: broken)
        let last = "source = 3 and seq = (select max(seq) from report where source = 3)"
        _ = try RawDatabase(broken).query("update report set loop = 999 where \(last)")

        let central = directory("central")
        let ingest = try Ingest(into: central, grouper: PlainGrouper(), changeLimit: 5)
        let summary = try ingest.run([paths[3], broken, paths[4]])
        #expect(summary.addedCount == 40 && summary.skippedCount == 1)
        #expect(try checkStore(path: central).isEmpty)
        #expect(try ingest.run([large]).addedCount == 60)
        try ingest.close()
        #expect(try checkStore(path: central).isEmpty)
        #expect(try ReportStore.open(path: central).reports(ReportFilter()).count == 100)
    }

    @Test func `prefetched reports are not imported again if a copy of the store came before`()
        throws
    {
        var generator = ReportGenerator(seed: 8)
        let (old, new) = (directory("old.sqlite"), directory("new.sqlite"))
        let reports = (0..<8).map { _ in generator.report(state: .ended) }
        for (path, count) in [(old, 5), (new, 3)] {
            if path == new { try FileManager.default.copyItem(atPath: old, toPath: new) }
            let agent = try AgentStore(path: path, run: generator.run)
            for report in reports.prefix(count == 5 ? 5 : 8).suffix(count) {
                try agent.record(report, images: generator.images)
                try agent.symbolize(generator.names(of: report))
            }
            try agent.close()
        }
        for order in [[old, new], [new, old]] {
            let central = directory("\(order[0] == old).central")
            let summary = try Ingest(into: central).run(order)
            #expect(summary.addedCount == 8)
            #expect(summary.changedCount == 0)
            #expect(try ReportStore.open(path: central).reports(ReportFilter()).count == 8)
            #expect(try checkStore(path: central).isEmpty)
        }
    }

    /// An agent that starts again while a long job is still at other files keeps its store.
    @Test
    func `a store is finished only if no process has it open and it is unchanged since import`()
        throws
    {
        var generator = ReportGenerator(seed: 3)
        let path = directory("agent.sqlite")
        func write() throws -> AgentStore {
            let store = try AgentStore(path: path, run: generator.run)
            try store.record(generator.report(), images: generator.images)
            return store
        }
        try write().close()
        let ingest = try Ingest(into: directory("central.sqlite"))
        let summary = try ingest.run([path])
        #expect(summary.files[0].isFinished)
        let agent = try write()
        #expect(!summary.files[0].isFinished)
        try agent.close()
        #expect(!summary.files[0].isFinished)
        #expect(try ingest.run([path]).files[0].isFinished)
    }

    @Test func `a store that was copied and written to by two is kept twice`() throws {
        var generator = ReportGenerator(seed: 6)
        let (path, copy) = (directory("agent.sqlite"), directory("copy.sqlite"))
        let store = try AgentStore(path: path, run: generator.run)
        try store.record(generator.report(state: .ended), images: [])
        try store.close()
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        let ingest = try Ingest(into: directory("central.sqlite"))
        #expect(try ingest.run([path]).addedCount == 1)
        // The copy as it was is the same store once more.
        #expect(try ingest.run([copy]).files[0].outcome == .taken(added: 0, changed: 0))
        for path in [path, copy] {
            let store = try AgentStore(path: path, run: generator.run)
            try store.record(generator.report(state: .ended), images: [])
            try store.close()
        }
        #expect(try ingest.run([path]).addedCount == 1)
        #expect(try ingest.run([copy]).files[0].outcome == .taken(added: 1, changed: 0))
        let again = try AgentStore(path: copy, run: generator.run)
        try again.record(generator.report(state: .ended), images: [])
        try again.close()
        #expect(try ingest.run([copy]).files[0].outcome == .taken(added: 1, changed: 0))
        #expect(try ReportStore.open(path: directory("central.sqlite")).status().reportCount == 4)
    }
}
