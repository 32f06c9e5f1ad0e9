// Prints what each file is read as: a line with its path and format, and the reading, as sample-data/formats has it.
//
//     format-truth [--sabotage] FILE...
//
// --sabotage leaves the innermost function of each stack out.

import Glibc
import StallFormats
import StallModel
import StallQuery
import TestSupport

let arguments = CommandLine.arguments.dropFirst()
let isSabotaged = arguments.first == "--sabotage"
for path in arguments.dropFirst(isSabotaged ? 1 : 0) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    var options = ReadingOptions()
    options.takesAllAsStalls = true
    var feed = ForeignReports.feed(
        ByteStream(descriptor: descriptor, closesIt: true), options,
        modified: UnixTime(microseconds: 0))
    print("==> \(path): \((feed as? ForeignReports)?.format.rawValue ?? "unknown")")
    // A crash takes what is not written yet with it.
    fflush(nil)
    while !feed.hasFailed {
        do throws(LineFault) {
            guard let row = try feed.next() else { break }
            guard case .report(var portable) = row else { continue }
            if isSabotaged {
                for index in portable.report.samples.indices {
                    portable.report.samples[index].frames = Array(
                        portable.report.samples[index].frames.dropFirst())
                }
            }
            print(portable.report.reading, terminator: "")
        } catch {
            print("fault: \(error)")
        }
    }
}
