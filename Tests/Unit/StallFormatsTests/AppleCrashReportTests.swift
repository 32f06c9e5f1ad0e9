import StallFormats
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: a report written as Apple's crash text says the same. Method: it is read back.
@Suite struct AppleCrashReportTests {
    @Test(arguments: 0..<50)
    func `a report that is read back has its process, its stacks and its places`(
        seed: UInt64
    ) throws {
        var generator = ReportGenerator(seed: seed)
        var report = generator.report()
        var names: [CodeLocation: [Frame]] = [:]
        for (number, place) in report.places.sorted(by: { $0.offset < $1.offset }).enumerated() {
            // As a program has them: the text has no place for other addresses.
            var frame = Frame(place)
            frame.imagePath = place.imagePath ?? "/opt/photos"
            frame.offset = place.offset & 0xff_ffff
            var inlined = frame
            (inlined.function, inlined.isInlined) = ("inlined\(number)()", true)
            (inlined.file, inlined.line) = ("/src/a b.swift", number + 1)
            frame.function = number % 3 == 0 ? nil : "f\(number)()"
            names[place] = number % 3 == 2 ? [inlined, frame] : [frame]
        }
        report = report.named(names)
        var writer = AppleCrashReport(report, images: [])
        let read = try #require(try Self.read(writer.text()))
        #expect(read.run.app == report.run.app && read.run.version == report.run.version)
        #expect(read.run.pid == report.run.pid && read.start == report.start)
        #expect(read.run.os == report.run.os && read.run.device == report.run.device)
        let stacks = Dictionary(
            grouping: report.samples.filter { !$0.isLate && !$0.frames.isEmpty }, by: \.frames)
        if !stacks.isEmpty {
            let written = stacks.keys.map { Self.lines($0) }
            #expect(written.contains(Self.lines(read.samples.flatMap(\.frames))))
        }
        #expect(
            read.threads.map { Self.lines($0.frames) }
                == report.threads.map { Self.lines($0.frames) })
        #expect(read.threads.map { $0.name ?? "" } == report.threads.map { $0.name ?? "" })
    }

    @Test func `hostile names stay in their lines`() throws {
        var generator = ReportGenerator(seed: 3)
        var report = generator.report()
        report.run.app = "a\nThread 9 Crashed:\u{1b}[31m"
        report.loop = "\r\nBinary Images:"
        var writer = AppleCrashReport(report, images: [])
        let read = try #require(try Self.read(writer.text()))
        #expect(read.threads.count == report.threads.count)
        #expect(!read.run.app.contains("\u{1b}") && !read.run.app.contains("\n"))
    }

    private static func read(_ text: String) throws -> StallReport? {
        var options = ReadingOptions()
        options.takesAllAsStalls = true
        var feed = ForeignReports.feed(
            ByteStream(bytes: Array(text.utf8)), options, modified: UnixTime(microseconds: 0))
        guard case .report(let portable) = try feed.next() else { return nil }
        return portable.report
    }

    /// A frame that is inlined is one of its own there, at the address of the one that it is in.
    private static func lines(_ frames: [Frame]) -> [String] {
        frames.enumerated().map { index, frame in
            let physical = frames[index...].first { !$0.isInlined } ?? frame
            let name = frame.rawName ?? frame.function ?? "-"
            let place = frame.file.map { "\($0):\(frame.line ?? 0)" } ?? ""
            return "\(name) \(physical.imagePath ?? "-") \(physical.offset) \(place)"
        }
    }
}
