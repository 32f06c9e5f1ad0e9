// A line of Linux' log, without what dmesg, the journal or syslog put before the message.
//
//     Nov 20 09:14:31 db-7 kernel: [12345.678901] INFO: task ...
//     [12345.678901] INFO: task ...
//     [12345.678901][  T123] INFO: task ...
//     [Fri Nov 20 09:14:31 2026] INFO: task ...
//     2026-11-20T09:14:31,204567+01:00 INFO: task ...
//     <3>[12345.678901] INFO: task ...

internal import StallModel

/// A message of the kernel.
struct KernelLine {
    private(set) var message: ArraySlice<UInt8>
    private(set) var time: UnixTime?
    private(set) var host = ""
    /// The log says that it is the kernel's.
    private(set) var isNamed = false

    init(_ line: ArraySlice<UInt8>) {
        message = line
        let beginning = line.prefix(256)
        if let found = beginning.range(of: "kernel:"),
            found.lowerBound == line.startIndex || line[found.lowerBound - 1].isBlank
        {
            isNamed = true
            let prefix = LogPrefix(line[..<found.upperBound])
            (time, host) = (prefix.time, prefix.host)
            message = line[found.upperBound...]
        }
        while takeMark() {}
        message = message.trimmed
    }

    /// Passes over a time, a level or a caller.
    private mutating func takeMark() -> Bool {
        let text = message.drop(while: \.isBlank)
        if text.first == UInt8(ascii: "["), let end = text.prefix(48).firstIndex(of: 0x5d) {
            let mark = text[(text.startIndex + 1)..<end].trimmed
            if !Self.isUptime(mark), !Self.isCaller(mark) {
                guard let found = LogPrefix(text[...end]).time else { return false }
                time = time ?? found
            }
            message = text[(end + 1)...]
            return true
        }
        if text.first == UInt8(ascii: "<"), let end = text.prefix(5).firstIndex(of: 0x3e),
            text[(text.startIndex + 1)..<end].decimal(UInt8.self) != nil
        {
            message = text[(end + 1)...]
            return true
        }
        guard text.first?.isDigit == true else { return false }
        var rest = text.prefix(48)
        let word = rest.takeWord()
        guard let found = LogPrefix(word).time else { return false }
        time = time ?? found
        message = text[word.endIndex...]
        return true
    }

    /// Seconds since boot.
    private static func isUptime(_ text: ArraySlice<UInt8>) -> Bool {
        let digits = text.prefix(while: \.isDigit)
        return !digits.isEmpty && text[digits.endIndex...].first == UInt8(ascii: ".")
            && text[digits.endIndex...].dropFirst().allSatisfy(\.isDigit)
    }

    /// A task or a processor.
    private static func isCaller(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first, first == UInt8(ascii: "T") || first == UInt8(ascii: "C")
        else { return false }
        return text.dropFirst().decimal(Int32.self) != nil
    }
}
