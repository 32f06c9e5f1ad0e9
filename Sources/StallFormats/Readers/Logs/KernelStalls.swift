// The stalls in Linux' log, by dmesg, journalctl -k or syslog, with whatever stands before the messages.
//
//     INFO: task NAME:PID blocked for more than 122 seconds.
//     watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [NAME:PID]
//     watchdog: Watchdog detected hard LOCKUP on cpu 3
//     watchdog: CPU 4 self-detected hard LOCKUP @ FUNCTION
//     rcu: INFO: rcu_preempt self-detected stall on CPU
//     INFO: rcu_tasks detected stalls on tasks:
//
// A stall lasts at least as long as its line says: the kernel looks at intervals, and again later. Hard lockups and
// stalls of RCU have no duration in seconds. Stalls of Seastar in the same log are read, too.
//
// **Source:** Linux, kernel/hung_task.c, kernel/watchdog.c, kernel/watchdog_perf.c, kernel/rcu/tree_stall.h, tree_exp.h, tasks.h,
// arch/powerpc/kernel/watchdog.c.

internal import StallModel
internal import StallQuery

/// Reads the kernel's reports of tasks that are blocked and of processors that are stuck.
struct KernelStalls: FormatReader {
    /// Lines of a report before its stack, and frames of that.
    private static let (gapLimit, frameLimit) = (256, 1000)

    private(set) var lines: TextLines
    private let options: ReadingOptions

    init(_ lines: TextLines, _ options: ReadingOptions) {
        self.lines = lines
        self.options = options
    }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains { isHeader(Array($0.utf8).asLogLine[...]) }
    }

    /// Whether a report begins with the line.
    static func isHeader(_ line: ArraySlice<UInt8>) -> Bool {
        // Most lines have none of these, and need no look at their time.
        guard
            line.range(of: "INFO: ") != nil || line.range(of: "lockup") != nil
                || line.range(of: "LOCKUP") != nil
        else { return false }
        return KernelStallHeader(KernelLine(line).message) != nil
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while let bytes = lines.next() {
            let text = bytes.asLogLine
            let line = KernelLine(text[...])
            guard let header = KernelStallHeader(line.message) else {
                guard SeastarStalls.isHeader(text[...]) else { continue }
                lines.putBack()
                var other = SeastarStalls(lines, options)
                defer { lines = other.lines }
                return try other.next()
            }
            guard header.isInRange else {
                throw LineFault(line: lines.number, reason: "has a number out of range")
            }
            var report = report(header, line)
            if report.start == nil { report.timeText = text[...].trimmed.text }
            return report
        }
        return nil
    }

    private mutating func report(_ header: KernelStallHeader, _ line: KernelLine) -> ForeignReport {
        var report = ForeignReport(kind: .hang, line: lines.number)
        report.isAtLeast = true
        report.duration = header.duration
        report.host = line.host
        report.format = .kernelStalls
        report.start = line.time?.before(header.duration)
        report.likelyStart = line.likelyTime(before: options.modified)?.before(header.duration)
        var stack = KernelStack(task: header.task, pid: header.pid)
        var count = 0
        while let bytes = lines.next() {
            let text = bytes.asLogLine
            let next = KernelLine(text[...])
            let isOther = SeastarStalls.isHeader(text[...])
            if isOther || KernelStallHeader(next.message) != nil || !next.isSoon(after: line) {
                if isOther { stack.end() }
                lines.putBack()
                break
            }
            // Lines of other programs between the kernel's.
            if line.isNamed, !next.isNamed {
                count += 1
                if count > Self.gapLimit { break }
                continue
            }
            count += 1
            if !stack.hasBegun, count > Self.gapLimit { break }
            if !stack.take(next.message, frameLimit: Self.frameLimit) { break }
        }
        report.app = stack.task ?? ""
        report.pid = stack.pid
        var thread = ForeignThread(number: stack.pid ?? 0, name: stack.task)
        if let sample = stack.sample { thread.samples = [sample] }
        report.threads = [thread]
        return report
    }
}

/// The first line of a report.
private struct KernelStallHeader {
    private(set) var task: String?
    private(set) var pid: Int32?
    private(set) var duration: Duration?
    private(set) var isInRange = true

    init?(_ message: ArraySlice<UInt8>) {
        if message.begins(with: "INFO: task ") {
            guard takeHungTask(message.dropFirst(11)) else { return nil }
        } else if let found = message.range(of: "BUG: soft lockup - CPU#") {
            guard Self.isWatchdog(message[..<found.lowerBound]),
                takeSoftLockup(message[found.upperBound...])
            else { return nil }
        } else if Self.isPowerLockup(message) {
            return
        } else if let found = message.range(of: "Watchdog detected hard LOCKUP on cpu ") {
            guard Self.isWatchdog(message[..<found.lowerBound]),
                message[found.upperBound...].first?.isDigit == true
            else { return nil }
        } else {
            let rest = message.begins(with: "rcu: ") ? message.dropFirst(5) : message
            guard rest.begins(with: "INFO: rcu"),
                rest.range(of: " self-detected stall on CPU") != nil
                    || rest.range(of: " detected stalls on CPUs/tasks:") != nil
                    || rest.range(of: " detected expedited stalls on CPUs/tasks:") != nil
                    || rest.range(of: " detected stalls on tasks:") != nil
            else { return nil }
        }
    }

    private static func isWatchdog(_ text: ArraySlice<UInt8>) -> Bool {
        var text = text.trimmed
        // `watchdog: CPU3:`
        if let cpu = text.lastRange(of: " CPU"), text.last == UInt8(ascii: ":"),
            text[cpu.upperBound...].dropLast().decimal(Int32.self) != nil
        {
            text = text[..<cpu.lowerBound].trimmed
        }
        return text.isEmpty || text.elementsEqual("watchdog:".utf8)
            || text.elementsEqual("NMI watchdog:".utf8)
    }

    /// `watchdog: CPU 4 self-detected hard LOCKUP @ FUNCTION`, `watchdog: CPU 4 detected hard LOCKUP on other CPUs 7`,
    /// and before Linux 4.14 `Watchdog CPU:4 Hard LOCKUP`.
    private static func isPowerLockup(_ message: ArraySlice<UInt8>) -> Bool {
        let isOld = message.begins(with: "Watchdog CPU:")
        guard isOld || message.begins(with: "watchdog: CPU ") else { return false }
        let rest = message.dropFirst(isOld ? 13 : 14)
        let digits = rest.prefix(while: \.isDigit)
        let event = rest[digits.endIndex...]
        guard !digits.isEmpty else { return false }
        return isOld
            ? event.begins(with: " Hard LOCKUP")
                || event.begins(with: " detected Hard LOCKUP other CPUS:")
            : event.begins(with: " self-detected hard LOCKUP")
                || event.begins(with: " detected hard LOCKUP on other CPUs ")
    }

    /// `NAME:PID blocked for more than 122 seconds.`; the name may have colons and spaces.
    private mutating func takeHungTask(_ text: ArraySlice<UInt8>) -> Bool {
        guard let time = text.range(of: " for more than "),
            let blocked = text[..<time.lowerBound].lastRange(of: " blocked")
        else { return false }
        let digits = text[time.upperBound...].prefix(while: \.isDigit)
        guard text[digits.endIndex...].begins(with: " second") else { return false }
        takeTask(text[..<blocked.lowerBound])
        takeDuration(digits)
        return task != nil
    }

    /// `3 stuck for 22s! [NAME:PID]`.
    private mutating func takeSoftLockup(_ text: ArraySlice<UInt8>) -> Bool {
        let cpu = text.prefix(while: \.isDigit)
        let rest = text[cpu.endIndex...]
        guard !cpu.isEmpty, rest.begins(with: " stuck for ") else { return false }
        let digits = rest.dropFirst(11).prefix(while: \.isDigit)
        guard rest[digits.endIndex...].begins(with: "s!") else { return false }
        takeDuration(digits)
        let task = rest[digits.endIndex...].dropFirst(2).trimmed
        if task.first == UInt8(ascii: "["), task.last == UInt8(ascii: "]") {
            takeTask(task.dropFirst().dropLast())
        }
        return true
    }

    private mutating func takeTask(_ text: ArraySlice<UInt8>) {
        guard let colon = text.lastIndex(of: UInt8(ascii: ":")), colon > text.startIndex else {
            return
        }
        let digits = text[(colon + 1)...]
        guard !digits.isEmpty, digits.allSatisfy(\.isDigit) else { return }
        task = text[..<colon].text
        pid = digits.decimal(Int32.self)
        isInRange = isInRange && pid != nil
    }

    private mutating func takeDuration(_ digits: ArraySlice<UInt8>) {
        duration = digits.decimal(Int32.self).map { .seconds($0) }
        isInRange = isInRange && duration != nil
    }
}
