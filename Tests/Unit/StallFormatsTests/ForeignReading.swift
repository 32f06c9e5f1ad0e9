import StallModel
import StallQuery
import Testing

@testable import StallFormats

/// 27 November 2026, 12:00: when the texts of these tests were written.
let modified = UnixTime(microseconds: 1_795_780_800_000_000)

/// The reports of a text in another program's format, and its faults.
func readForeign(
    _ text: some Sequence<UInt8>, _ options: ReadingOptions = ReadingOptions()
) -> (reports: [StallReport], faults: [LineFault]) {
    var feed = ForeignReports.feed(ByteStream(bytes: Array(text)), options, modified: modified)
    var (reports, faults) = ([StallReport](), [LineFault]())
    while true {
        do throws(LineFault) {
            guard let row = try feed.next() else { return (reports, faults) }
            if case .report(let portable) = row { reports.append(portable.report) }
        } catch {
            faults.append(error)
        }
    }
}

/// The reports of a text that has no fault.
func readWhole(_ text: String) -> [StallReport] {
    let read = readForeign(text.utf8)
    #expect(read.faults.isEmpty, "\(read.faults)")
    return read.reports
}

func readWhole(_ lines: [String]) -> [StallReport] {
    readWhole(lines.map { $0 + "\n" }.joined())
}

/// The functions of its samples, the innermost first.
func functions(_ report: StallReport?) -> [String] {
    report?.samples.flatMap(\.frames).compactMap(\.function) ?? []
}
