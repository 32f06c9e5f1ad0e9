// The task and the stack in a report of Linux, in the spellings of its architectures.
//
//     CPU: 3 PID: 854 Comm: NAME Tainted: G             L     6.5.3
//     RIP: 0010:csd_lock_wait+0x4/0xa
//     pc : csd_lock_wait+0x4/0xa
//     Call Trace:
//      <TASK>
//      __schedule+0x2b4/0x8c0
//      ? lock_release+0x148/0x3f0
//      zfs_zget+0x17b/0x320 [zfs]
//     [<ffffffff8168c889>] schedule_preempt_disabled+0x29/0x70
//     [c000002fc621f250] [c00000000009eda8] rcu_dump_cpu_stacks+0xa0/0xd0 (unreliable)
//      __schedule from schedule+0x20/0xac
//
// **Source:** Linux, arch/*/kernel/dumpstack.c, stacktrace.c, traps.c, lib/dump_stack.c.

internal import StallModel

/// A stack, line by line.
struct KernelStack {
    private(set) var task: String?
    private(set) var pid: Int32?
    /// The processor whose stack it is, where that is known.
    private let cpu: Int32?
    /// It is of a blocked task, which no interrupt is in.
    private let isOfTask: Bool
    private(set) var hasBegun = false
    private var frames: [ForeignFrame] = []
    private var isTruncated = false
    /// Registers stand between the parts of a stack that an interrupt divides.
    private var isInRegisters = false
    /// Between `<TASK>` and `</TASK>`.
    private var isInTask = false
    /// Another processor's stack is written.
    private var isOfOther = false
    /// Messages of others since its last line.
    private var gap = 0

    private static let gapLimit = 16

    init(_ header: KernelStallHeader) {
        (task, pid, cpu, isOfTask) = (header.task, header.pid, header.cpu, header.isOfTask)
    }

    /// - Returns: Whether there can be more of it.
    mutating func take(_ message: ArraySlice<UInt8>, frameLimit: Int) -> Bool {
        if let found = Self.processor(message) {
            // A blocked task is on none: the stack that follows is of another report.
            if hasBegun || isOfTask { return false }
            isOfOther = !isOwn(found)
            if !isOfOther { takeTask(message) }
            return true
        }
        if isOfOther { return !Self.isOther(message) }
        if let place = Self.place(message) { return take(place, frameLimit) }
        if isOtherTask(message) { return false }
        if let line = KernelFrameLine(message) {
            (hasBegun, isInRegisters, gap) = (true, false, 0)
            isInTask = (isInTask || line.isBeginning) && !line.isEnd
            for frame in frames.isEmpty ? line.frames : line.frames.suffix(1) {
                append(frame, frameLimit)
            }
            return !line.isEnd
        }
        if isInRegisters, Self.isRegisters(message) { return true }
        if !hasBegun {
            takeTaskLine(message)
            return !Self.isOther(message)
        }
        if Self.isProgram(message) {
            isInTask = false
            return false
        }
        // Another processor's messages stand between its lines.
        gap += 1
        return gap <= Self.gapLimit && !Self.isOther(message) && !Self.isOtherStack(message)
    }

    private mutating func append(_ frame: ForeignFrame, _ limit: Int) {
        if frames.count < limit { frames.append(frame) } else { isTruncated = true }
    }

    /// Whether a processor begins to write the stack with this line.
    func isBeginning(_ message: ArraySlice<UInt8>) -> Bool {
        !isOfTask && (Self.processor(message).map(isOwn) ?? false)
    }

    private func isOwn(_ number: Int32) -> Bool { cpu == nil || cpu == number }

    /// The processor that begins to write its stack: `CPU: 3 PID: 854 Comm: NAME`, `NMI backtrace for cpu 3`.
    private static func processor(_ message: ArraySlice<UInt8>) -> Int32? {
        let marks: [StaticString] = ["CPU: ", "NMI backtrace for cpu "]
        guard let mark = marks.first(where: { message.begins(with: $0) }) else { return nil }
        return message.dropFirst(mark.utf8CodeUnitCount).prefix(while: \.isDigit)
            .decimal(Int32.self)
    }

    /// `task:NAME state:D stack:0 pid:312`, or before Linux 5.9 `NAME D 0 312 2 0x00000000`: the stack of another task
    /// follows.
    private func isOtherTask(_ message: ArraySlice<UInt8>) -> Bool {
        guard let pid else { return false }
        guard message.begins(with: "task:"), message.range(of: " state:") != nil,
            let mark = message.lastRange(of: " pid:")
        else {
            var rest = message
            let (_, state) = (rest.takeWord(), rest.takeWord())
            guard state.count == 1, let letter = state.first, 0x41...0x5a ~= letter else {
                return false
            }
            let numbers = (0..<4).map { _ in rest.takeWord() }
            return numbers.allSatisfy { ($0.hexadecimal() ?? $0.address()) != nil }
                && !numbers.contains { $0.decimal(Int32.self) == pid }
        }
        var rest = message[mark.upperBound...]
        return (rest.takeWord().decimal(Int32.self) ?? pid) != pid
    }

    var sample: ForeignSample? {
        guard !frames.isEmpty else { return nil }
        var sample = ForeignSample(frames: frames, isTruncated: isTruncated || isInTask)
        sample.frames[0].kind = .interrupted
        return sample
    }

    /// The function of `RIP: 0010:FUNCTION` or `pc : FUNCTION`. A program's own code has no name there, and ends the stack.
    private static func place(_ message: ArraySlice<UInt8>) -> ForeignFrame? {
        let name: ArraySlice<UInt8>
        if message.begins(with: "RIP: ") {
            let rest = message.dropFirst(5)
            guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            name = rest[(colon + 1)...]
        } else if message.begins(with: "pc : ") {
            name = message.dropFirst(5)
        } else {
            return nil
        }
        guard let frame = KernelFrameLine(name)?.frames.last, frame.function != nil else {
            return nil
        }
        return frame
    }

    /// The frames before a stuck processor's position are those of the interrupt, in which the watchdog runs; those of a
    /// task, of the fault in which it blocks. A position behind other messages is of another report.
    private mutating func take(_ place: ForeignFrame, _ frameLimit: Int) -> Bool {
        if hasBegun ? gap > 0 && !isInTask : isOfTask { return false }
        if isOfTask { append(place, frameLimit) } else { frames = [place] }
        (hasBegun, isInRegisters) = (true, true)
        return true
    }

    private mutating func takeTask(_ message: ArraySlice<UInt8>) {
        guard task == nil, let name = message.range(of: " Comm: ") else { return }
        if let number = message[..<name.lowerBound].lastRange(of: " PID: ") {
            pid = message[number.upperBound..<name.lowerBound].decimal(Int32.self)
        }
        let rest = message[name.upperBound...]
        let ends = [
            rest.range(of: " Kdump: "), rest.range(of: " Tainted: "),
            rest.range(of: " Not tainted "),
        ]
        let end = ends.compactMap { $0?.lowerBound }.min()
        let found = rest[..<(end ?? rest.endIndex)].trimmed
        if end != nil, !found.isEmpty { task = found.text }
    }

    /// `task:NAME   state:R  running task  stack:0  pid:1234  ppid:1`, where the first line names none.
    private mutating func takeTaskLine(_ message: ArraySlice<UInt8>) {
        guard task == nil, message.begins(with: "task:"), let state = message.range(of: " state:"),
            let mark = message.lastRange(of: " pid:"), mark.lowerBound > state.upperBound
        else { return }
        var rest = message[mark.upperBound...]
        let name = message[..<state.lowerBound].dropFirst(5).trimmed
        guard !name.isEmpty, let pid = rest.takeWord().decimal(Int32.self) else { return }
        (task, self.pid) = (name.text, pid)
    }

    /// `RAX: 0000000000000001`, `Code: 00 00`, `x29: ffff8000`, `Call Trace:`.
    private static func isRegisters(_ message: ArraySlice<UInt8>) -> Bool {
        var rest = message
        let (word, next) = (rest.takeWord(), rest.takeWord())
        if message.begins(with: "Call ") || next.elementsEqual(":".utf8) { return true }
        // Of the stack's own words, until Linux 4.8.
        if word.count == 16, word.hexadecimal() != nil { return true }
        return word.last == UInt8(ascii: ":") && (3...7).contains(word.count)
    }

    /// The position in the program that called the kernel, behind the last frame.
    private static func isProgram(_ message: ArraySlice<UInt8>) -> Bool {
        message.begins(with: "RIP: ") || message.begins(with: "pc : ")
    }

    /// The beginning of another stack.
    private static func isOtherStack(_ message: ArraySlice<UInt8>) -> Bool {
        message.begins(with: "Call ")
            || message.begins(with: "Sending NMI ") || message.begins(with: "Task dump for CPU ")
            || message.begins(with: "task:") || message.begins(with: "---[ end ")
            || message.begins(with: "Internal error: ")
    }

    /// Another message, so that this report has no stack.
    private static func isOther(_ message: ArraySlice<UInt8>) -> Bool {
        message.begins(with: "------------[ cut here")
            || message.begins(with: "INFO: ")
                && message.range(of: " likely owned by task ") == nil
            || message.begins(with: "BUG: ") || message.begins(with: "WARNING: ")
            || message.begins(with: "Kernel panic") || message.begins(with: "Oops")
            || message.begins(with: "kernel BUG at ")
            || message.begins(with: "general protection fault")
            || message.begins(with: "Unable to handle kernel ")
            || message.prefix(5).text.lowercased() == "sysrq"
            || message.begins(with: "Future hung task reports are suppressed")
            || message.begins(with: "Showing all locks held")
            || message.range(of: " kthread starved for ") != nil
            || message.range(of: " kthread timer wakeup didn't happen ") != nil
    }
}
