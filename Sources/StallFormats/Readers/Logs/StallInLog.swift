// The first stall of a log that is far from its beginning: a kernel's log begins with the boot.

internal import Glibc

/// Looks for a stall behind the beginning of a text that is a log.
enum StallInLog {
    /// How far it looks, and how much it reads at once, in bytes.
    private static let (limit, step) = (1 << 26, 1 << 20)
    private static let (sampleSize, lineLimit) = (256, 1 << 14)

    /// Parts of the first lines of stalls. Their first letters are rare in logs, which makes the search quick.
    private static let marks = [
        "Reactor stalled for ", "INFO: task ", "INFO: rcu", "BUG: soft lockup", "LOCKUP",
    ].map { Array($0.utf8) }

    /// The format of the first stall; nil without one, and of a text that is no log.
    ///
    /// **Cost:** a text that is no log is not read any further than its beginning; a log is kept in memory as far as
    /// it is read here.
    static func format(of text: ByteStream) -> ReportFormat? {
        let count = text.peek(ReportFormat.beginningSize).count
        guard count == ReportFormat.beginningSize, isLog(text.peek(count)) else { return nil }
        var (size, searched) = (count, 0)
        while true {
            // No slice of the bytes is held while more are read: all of them would be copied. A pipe's next bytes are
            // looked at when they come: there may be no others for long.
            let found = text.peek(min(size + step, limit)) { $0.count > size }.count
            let isLast = found <= size
            let format = search(text.peek(found), &searched, isLast: isLast)
            if format != nil || isLast { return format }
            size = found
        }
    }

    /// Nine of ten lines begin as those of a log.
    static func isLog(_ beginning: ArraySlice<UInt8>) -> Bool {
        let lines = beginning.split(separator: 0x0a, maxSplits: sampleSize).dropLast()
        let count = lines.count { line in
            let line = Array(line.prefix(512)).asLogLine.prefix(160)
            if KernelLine(line).hasPrefix { return true }
            let prefix = LogPrefix(line)
            return prefix.time != nil || prefix.timeOfYear != nil
        }
        return lines.count >= 10 && count * 10 >= lines.count * 9
    }

    /// - Parameter searched: How much of the bytes was searched before, in whole lines; afterwards, too.
    private static func search(
        _ bytes: ArraySlice<UInt8>, _ searched: inout Int, isLast: Bool
    ) -> ReportFormat? {
        let rest = bytes.dropFirst(searched)
        let end =
            isLast ? bytes.endIndex : (rest.lastIndex(of: 0x0a).map { $0 + 1 } ?? bytes.endIndex)
        let new = bytes[(bytes.startIndex + searched)..<end]
        searched += new.count
        return new.withUnsafeBytes { buffer in
            marks.compactMap { first($0, in: buffer) }.min { $0.place < $1.place }?.format
        }
    }

    /// The first line with the mark that a report begins with.
    private static func first(
        _ mark: [UInt8], in buffer: UnsafeRawBufferPointer
    ) -> (place: Int, format: ReportFormat)? {
        var place = 0
        while place + mark.count <= buffer.count, let base = buffer.baseAddress,
            let found = memchr(base + place, CInt(mark[0]), buffer.count - place)
        {
            place = UnsafeRawPointer(found) - base
            guard place + mark.count <= buffer.count,
                memcmp(base + place, mark, mark.count) == 0
            else {
                place += 1
                continue
            }
            var (start, end) = (place, place)
            while start > 0, buffer[start - 1] != 0x0a, place - start < lineLimit { start -= 1 }
            while end < buffer.count, buffer[end] != 0x0a, end - place < lineLimit { end += 1 }
            let line = Array(buffer[start..<end].drop { $0 == 0x0d }).asLogLine[...]
            if SeastarStalls.isHeader(line) { return (start, .seastarStalls) }
            if KernelStalls.isHeader(line) { return (start, .kernelStalls) }
            place = max(end, place + 1)
        }
        return nil
    }
}
