// The text of `perf script`, which Perfetto, the Firefox Profiler, speedscope, inferno and FlameGraph all read: an event a stack
// that was seen, with the nanoseconds that it stands for as its period.
//
//     photos-main  4711/4711  [000]  1732197600.417000:  566000000 stall:
//     	    93c22 pthread_mutex_lock (/lib/x86_64-linux-gnu/libc.so.6)

import StallModel
package import StallQuery

package struct PerfScript: ViewerWriter {
    package static let order = CursorOrder.stored

    private var text: ByteText
    private var frames = ViewerFrames()
    private var lines: [[UInt8]] = []

    package init(to sink: @escaping ByteSink) { text = ByteText(sink) }

    package mutating func add(_ stall: ViewerStall) throws {
        let trace = stall.trace
        let start_us = trace.start.microseconds
        let command = "\(trace.run.app)-\(trace.loop)".withoutSpaces
        let thread = "  \(trace.run.pid)/\(trace.run.pid)  [000]  "
        for part in trace.parts where part.duration_ns > 0 {
            text.append(command)
            text.append(thread)
            let (time_us, overflow) = start_us.addingReportingOverflow(part.begin_ns / 1000)
            var bytes: [UInt8] = []
            // Readers expect no time before 1970.
            bytes.append(
                nanoseconds: max(0, overflow ? start_us : time_us), digits: 6, isPadded: true)
            bytes += ":  ".utf8
            bytes.append(decimal: part.duration_ns)
            text.append(bytes)
            text.append(" stall:\n")
            for number in try frames.numbers(of: part.stack, in: stall) {
                while lines.count <= number { lines.append(line(frames.frames[lines.count])) }
                text.append(lines[Int(number)])
            }
            text.append("\n")
            try text.settle()
        }
    }

    package mutating func finish() throws { try text.flush() }

    private func line(_ frame: Frame) -> [UInt8] {
        let address = String(frame.offset, radix: 16)
        let image = frame.imagePath?.withoutSpaces ?? "[unknown]"
        let name = frame.title.onOneLine
        return Array("\t\(address) \(name.isEmpty ? "[unknown]" : name) (\(image))\n".utf8)
    }
}

extension String {
    /// One word, whatever it is made of.
    fileprivate var withoutSpaces: String {
        let scalars = onOneLine.unicodeScalars.map { scalar -> Unicode.Scalar in
            scalar.properties.isWhitespace || scalar == "(" || scalar == ")" ? "_" : scalar
        }
        return scalars.isEmpty ? "_" : String(String.UnicodeScalarView(scalars))
    }
}
