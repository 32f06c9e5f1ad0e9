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
    private var stalls: LogStalls
    var lines: TextLines { stalls.lines }

    init(_ lines: TextLines, _ options: ReadingOptions) {
        stalls = LogStalls(lines, options, isSeastar: false)
    }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains { isHeader(Array($0.utf8).asLogLine[...]) }
    }

    /// Whether a report begins with the line.
    static func isHeader(_ line: ArraySlice<UInt8>) -> Bool {
        mayBegin(line) && KernelStallHeader(KernelLine(line).message) != nil
    }

    /// Most lines have none of these, and need no look at their time.
    static func mayBegin(_ line: ArraySlice<UInt8>) -> Bool {
        line.range(of: "INFO: ") != nil || line.range(of: "lockup") != nil
            || line.range(of: "LOCKUP") != nil
    }

    mutating func next() throws(LineFault) -> ForeignReport? { try stalls.next() }
}

/// A stall of the kernel's, as far as its lines are read.
struct KernelStall: OpenStall {
    /// Lines of a report before its stack, frames of that, and lines of other hosts and programs among them.
    private static let (gapLimit, frameLimit, otherLimit) = (256, 1000, 4096)

    private let base: ForeignReport
    private let first: KernelLine
    private var caller: ArraySlice<UInt8>
    private var stack: KernelStack
    private var (count, otherCount) = (0, 0)

    init(
        _ header: KernelStallHeader, _ text: LogLine, _ number: Int, _ options: ReadingOptions
    ) {
        let line = text.kernel
        var report = ForeignReport(kind: .hang, line: number)
        report.isAtLeast = true
        report.duration = header.duration
        report.host = line.host
        report.format = .kernelStalls
        report.start = line.time?.before(header.duration)
        report.likelyStart = line.likelyTime(before: options.modified)?.before(header.duration)
        if report.start == nil { report.timeText = text.text.trimmed.text }
        report.hasNoClock = line.clock == nil
        // The log may end within the stack, or begin there.
        if line.isDated, !line.host.isEmpty || header.pid != nil {
            report.identifier = "\(line.host) \(report.timeText ?? line.message.text)"
        }
        (base, first, caller) = (report, line, line.caller)
        stack = KernelStack(header)
    }

    var report: ForeignReport {
        var report = base
        report.app = stack.task ?? ""
        report.pid = stack.pid
        var thread = ForeignThread(number: stack.pid ?? 0, name: stack.task)
        if let sample = stack.sample { thread.samples = [sample] }
        report.threads = [thread]
        return report
    }

    func isWriter(of line: LogLine) -> Bool {
        isHost(of: line.kernel) && line.kernel.caller == caller
    }

    /// Lines of other programs stand between the kernel's.
    private func isHost(of line: KernelLine) -> Bool {
        line.host == first.host && (line.isNamed || !first.isNamed)
    }

    mutating func take(_ line: LogLine, isOfOther: Bool) -> Bool {
        let line = line.kernel
        if line.host == first.host, !line.isSoon(after: first) { return false }
        guard isHost(of: line) else {
            otherCount += 1
            return otherCount <= Self.otherLimit
        }
        count += 1
        if count > Self.gapLimit, !stack.hasBegun { return false }
        if line.caller != caller {
            // A stuck processor is made to write its stack by another one.
            guard !isOfOther, !stack.hasBegun,
                caller.isEmpty || stack.isBeginning(line.message)
            else { return true }
            caller = line.caller
        }
        return stack.take(line.message, frameLimit: Self.frameLimit)
    }
}
