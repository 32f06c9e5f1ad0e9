import Foundation
import StallModel
import StallQuery
import StallFormats
import TestSupport
import Testing

/// Goal: another program's report is read as what it says. Method: examples of each format with the reading beside each, for
/// formats of Linux made from the output of another tool (sample-data/formats/README.md).
///
/// RECORD_SNAPSHOTS=1 writes the readings that are missing; whether they are right is for a person to see.
@Suite struct ForeignFormatsTests {
    static let folder = Repository.root.appending(path: "sample-data/formats")
    static let samples = try! FileManager.default.contentsOfDirectory(atPath: folder.path)
        .filter { !$0.hasSuffix(".reading") && !$0.hasSuffix(".md") }.sorted()

    @Test(arguments: samples) func `a sample is read as the reading beside it says`(
        name: String
    ) throws {
        let file = Self.folder.appending(path: name)
        let reading = Self.reading(of: try Data(contentsOf: file))
        let expected = file.appendingPathExtension("reading")
        if !FileManager.default.fileExists(atPath: expected.path),
            ProcessInfo.processInfo.environment["RECORD_SNAPSHOTS"] == "1"
        {
            try reading.write(to: expected, atomically: true, encoding: .utf8)
        }
        #expect(try reading == String(contentsOf: expected, encoding: .utf8))
    }

    static func reading(of data: Data) -> String {
        var options = ReadingOptions()
        options.takesAllAsStalls = true
        var feed = ForeignReports.feed(
            ByteStream(bytes: Array(data)), options, modified: UnixTime(microseconds: 0))
        var text = ""
        while true {
            do {
                guard let row = try feed.next() else { return text }
                guard case .report(let report) = row else { continue }
                text += report.report.reading
            } catch {
                text += "fault: \(error)\n"
            }
        }
    }
}
