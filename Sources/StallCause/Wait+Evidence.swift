// The evidence as text.

internal import StallModel

func evidence(
    _ facts: CauseFacts, _ sample: CauseSample?, _ finding: SampleFinding?,
    _ unreadable: UnreadableFacts
) -> [CauseEvidence] {
    var list: [CauseEvidence] = []
    func add(_ name: EvidenceName, _ value: String) {
        list.append(CauseEvidence(name.rawValue, value))
    }
    if let wait = sample?.observation.wait {
        if let text = wait.callText { add(.systemCall, text) }
        if !wait.waitChannel.isEmpty { add(.waitChannel, wait.waitChannel) }
        add(.state, String(UnicodeScalar(wait.state)))
    }
    if let kind = finding?.lock { add(.lock, kind.rawValue) }
    if let holder = sample?.observation.wait.fileLockHolder {
        add(.heldBy, "process \(holder.process)" + (holder.name.map { " '\($0)'" } ?? ""))
    }
    // Queried once per stall.
    let databaseHolder = facts.samples.lazy.compactMap(\.observation.wait.databaseLockHolder).first
    if finding?.lock == .database, let holder = databaseHolder {
        add(.heldBy, "process \(holder.process)" + (holder.name.map { " '\($0)'" } ?? ""))
    }
    let growth = facts.growth
    add(.cpu, "\(facts.cpuTime.text) of \(facts.duration.text)")
    if growth.runDelay >= .milliseconds(1) {
        add(.runDelay, "\(growth.runDelay.text) of \(facts.observed.text)")
    }
    if growth.majorFaults > 0 || growth.minorFaults > 1000 {
        add(.pageFaults, "\(growth.majorFaults) major, \(growth.minorFaults) minor")
    }
    if growth.waits + growth.preemptions > 0 {
        add(.contextSwitches, "\(growth.waits) own, \(growth.preemptions) forced")
    }
    if growth.throttled >= .milliseconds(1) || growth.throttleCount > 0 {
        add(.throttled, "\(growth.throttled.text), \(growth.throttleCount) times")
    }
    let names = ["cpu", "io", "memory"]
    let pressure = zip(names, growth.pressure).filter { $1 >= .milliseconds(20) }
    if !pressure.isEmpty {
        add(.pressure, pressure.map { "\($0) \($1.text)" }.joined(separator: ", "))
    }
    if growth.processTime > growth.cpuTime + .milliseconds(50) {
        add(.processCPU, "\(growth.processTime.text) of \(facts.observed.text)")
    }
    let missing = UnreadableFacts.names.filter { unreadable.contains($0.fact) }.map(\.name)
    if !missing.isEmpty { add(.notReadable, missing.joined(separator: ", ")) }
    return list
}

extension Wait {
    /// `fsync(7: /var/lib/photos.db)`, `futex(0x55d0c8a01f40)`, `clock_nanosleep`; nil outside of system calls.
    var callText: String? {
        guard let number = systemCall else { return nil }
        guard let call else { return "system call \(number)" }
        if let futex { return "\(call.name)(0x\(String(futex.address, radix: 16)))" }
        guard !descriptors.isEmpty else { return call.name }
        let targets = descriptors.prefix(4).map { "\($0.number): \($0.target)" }
        return "\(call.name)(\(targets.joined(separator: ", ")))"
    }
}

extension Duration {
    /// Whole milliseconds below ten seconds, else seconds.
    var text: String {
        let milliseconds = Int64((self / .milliseconds(1)).rounded())
        return milliseconds < 10_000 ? "\(milliseconds) ms" : "\((milliseconds + 500) / 1000) s"
    }
}
