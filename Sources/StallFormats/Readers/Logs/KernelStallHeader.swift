// The first line of the kernel's report of a stall, in the spellings of its versions.

internal import StallModel

/// The first line of a report.
struct KernelStallHeader {
    private(set) var task: String?
    private(set) var pid: Int32?
    private(set) var duration: Duration?
    /// The processor that is stuck; nil where the line has no number of it.
    private(set) var cpu: Int32?
    /// It is of a task that is blocked, not of a processor that is stuck.
    private(set) var isOfTask = false
    private(set) var isInRange = true

    init?(_ message: ArraySlice<UInt8>) {
        if message.begins(with: "INFO: task ") {
            guard takeHungTask(message.dropFirst(11)) else { return nil }
            isOfTask = true
        } else if let found = message.range(of: "BUG: soft lockup - CPU#") {
            guard Self.isWatchdog(message[..<found.lowerBound]),
                takeSoftLockup(message[found.upperBound...])
            else { return nil }
        } else if Self.isPowerLockup(message) {
            return
        } else if let found = message.range(of: "Watchdog detected hard LOCKUP on cpu ") {
            let digits = message[found.upperBound...].prefix(while: \.isDigit)
            guard Self.isWatchdog(message[..<found.lowerBound]), !digits.isEmpty else {
                return nil
            }
            cpu = digits.decimal(Int32.self)
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
        let number = text.prefix(while: \.isDigit)
        let rest = text[number.endIndex...]
        guard !number.isEmpty, rest.begins(with: " stuck for ") else { return false }
        let digits = rest.dropFirst(11).prefix(while: \.isDigit)
        guard rest[digits.endIndex...].begins(with: "s!") else { return false }
        takeDuration(digits)
        cpu = number.decimal(Int32.self)
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
