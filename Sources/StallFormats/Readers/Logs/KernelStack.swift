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
    private(set) var hasBegun = false
    private var frames: [ForeignFrame] = []
    private var isTruncated = false
    /// Registers stand between the parts of a stack that an interrupt divides.
    private var isInRegisters = false

    init(task: String?, pid: Int32?) {
        self.task = task
        self.pid = pid
    }

    /// - Returns: Whether there can be more of it.
    mutating func take(_ message: ArraySlice<UInt8>, frameLimit: Int) -> Bool {
        if takePlace(message) { return true }
        if isOtherTask(message) { return false }
        if message.begins(with: "CPU: ") {
            if hasBegun { return false }
            takeTask(message)
            return true
        }
        if let line = KernelFrameLine(message) {
            (hasBegun, isInRegisters) = (true, false)
            for frame in frames.isEmpty ? line.frames : line.frames.suffix(1) {
                guard frames.count < frameLimit else {
                    isTruncated = true
                    break
                }
                frames.append(frame)
            }
            return !line.isEnd
        }
        if isInRegisters, Self.isRegisters(message) { return true }
        return !hasBegun && !Self.isOther(message)
    }

    /// The rest of it is left out.
    mutating func end() { isTruncated = isTruncated || hasBegun }

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
        var sample = ForeignSample(frames: frames, isTruncated: isTruncated)
        sample.frames[0].kind = .interrupted
        return sample
    }

    /// `RIP: 0010:FUNCTION` or `pc : FUNCTION`: the interrupted function. The frames before it are those of the
    /// interrupt, in which the watchdog runs.
    private mutating func takePlace(_ message: ArraySlice<UInt8>) -> Bool {
        let name: ArraySlice<UInt8>
        if message.begins(with: "RIP: ") {
            let rest = message.dropFirst(5)
            guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return false }
            name = rest[(colon + 1)...]
        } else if message.begins(with: "pc : ") {
            name = message.dropFirst(5)
        } else {
            return false
        }
        // A program's own code has no name here, and ends the stack.
        guard let line = KernelFrameLine(name), let frame = line.frames.last,
            frame.function != nil
        else { return false }
        (frames, hasBegun, isInRegisters) = ([frame], true, true)
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

    /// `RAX: 0000000000000001`, `Code: 00 00`, `x29: ffff8000`, `Call Trace:`.
    private static func isRegisters(_ message: ArraySlice<UInt8>) -> Bool {
        var rest = message
        let (word, next) = (rest.takeWord(), rest.takeWord())
        if message.begins(with: "Call ") || next.elementsEqual(":".utf8) { return true }
        return word.last == UInt8(ascii: ":") && (3...7).contains(word.count)
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

/// A line of a stack.
private struct KernelFrameLine {
    /// None if the line is only a mark, or an address that the unwinder is unsure of.
    private(set) var frames: [ForeignFrame] = []
    private(set) var isEnd = false

    /// No line of a stack has more words.
    private static let wordLimit = 16

    init?(_ message: ArraySlice<UInt8>) {
        guard message.count <= 1024 else { return nil }
        var rest = message
        var (hasMark, isUnreliable, caller) = (false, false, ArraySlice<UInt8>())
        for _ in 0..<Self.wordLimit {
            let whole = rest.takeWord()
            if whole.isEmpty { break }
            let word = whole.withoutParentheses
            if Self.isMark(word) {
                hasMark = true
                isEnd = isEnd || word.elementsEqual("</TASK>".utf8)
            } else if word.elementsEqual("?".utf8) || word.elementsEqual("unreliable".utf8) {
                isUnreliable = true
            } else if Self.isAddress(word) {
                continue
            } else if word.first == UInt8(ascii: "["), let last = frames.indices.last {
                takeModule(word, &rest, last)
            } else if word.first == UInt8(ascii: "["), !caller.isEmpty {
                // The module of the caller's callee, which the line before has.
                continue
            } else if word.elementsEqual("from".utf8), !caller.isEmpty, frames.isEmpty {
                frames.append(ForeignFrame(function: caller.text, image: "[kernel]"))
            } else if let name = Self.name(word), frames.count < 2 {
                frames.append(ForeignFrame(function: name.text, image: "[kernel]"))
            } else if frames.isEmpty, caller.isEmpty {
                caller = word
            } else if frames.isEmpty && !Self.isBare(caller) || whole.count == word.count {
                return nil
            }
        }
        // Code without a name: that of a program for BPF, or of a module that is gone.
        if frames.isEmpty, Self.isBare(caller), let address = caller.address() {
            frames.append(ForeignFrame(image: "[kernel]", offset: address))
            caller = []
        }
        guard rest.allSatisfy(\.isBlank), hasMark || !frames.isEmpty,
            !frames.isEmpty || caller.isEmpty
        else { return nil }
        if caller.isEmpty == false, frames.count < 2 { return nil }
        if isUnreliable { frames = [] }
    }

    /// `0xffff800008a1b2c4`.
    private static func isBare(_ word: ArraySlice<UInt8>) -> Bool {
        word.count >= 10 && word.address() != nil
    }

    /// `<TASK>`, `</IRQ>`, `<<EOE>>`.
    private static func isMark(_ word: ArraySlice<UInt8>) -> Bool {
        word.first == UInt8(ascii: "<") && word.last == UInt8(ascii: ">")
    }

    /// `[<ffffffff8168c889>]` or `[c00000000009eda8]`.
    private static func isAddress(_ word: ArraySlice<UInt8>) -> Bool {
        guard word.first == UInt8(ascii: "["), word.last == UInt8(ascii: "]") else { return false }
        let inner = word.dropFirst().dropLast()
        if inner.first == UInt8(ascii: "<"), inner.last == UInt8(ascii: ">") { return true }
        return inner.count == 16 && inner.hexadecimal() != nil
    }

    /// The function of `FUNCTION+0x1/0x2`.
    private static func name(_ word: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let plus = word.lastRange(of: "+0x"), plus.lowerBound > word.startIndex,
            let slash = word[plus.upperBound...].range(of: "/0x"),
            word[plus.upperBound..<slash.lowerBound].hexadecimal() != nil,
            word[slash.upperBound...].hexadecimal() != nil
        else { return nil }
        return word[..<plus.lowerBound]
    }

    /// `[zfs]`, or `[zfs BUILDID]`.
    private mutating func takeModule(
        _ first: ArraySlice<UInt8>, _ rest: inout ArraySlice<UInt8>, _ place: Int
    ) {
        if first.last == UInt8(ascii: "]") {
            frames[place].image = first.dropFirst().dropLast().text
            return
        }
        let id = rest.takeWord()
        guard id.last == UInt8(ascii: "]") else { return }
        frames[place].image = first.dropFirst().text
        frames[place].buildID = BuildID(hexadecimal: id.dropLast().text)
    }
}

extension ArraySlice<UInt8> {
    fileprivate var withoutParentheses: Self {
        var word = self
        if word.first == UInt8(ascii: "(") { word = word.dropFirst() }
        if word.last == UInt8(ascii: ")") { word = word.dropLast() }
        return word
    }
}
