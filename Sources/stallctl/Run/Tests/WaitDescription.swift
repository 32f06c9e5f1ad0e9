// Describes the wait of a thread of another process: the facts are StallInspection's, the conclusions StallCause's.

internal import Glibc
internal import StallCause
internal import StallInspection
internal import StallModel

/// Finds what threads of one process wait for.
struct WaitDescription {
    let process: InspectedProcess
    let threads: [ThreadID: InspectedTests.Thread]

    func wait(of thread: InspectedTests.Thread) -> WaitFinding {
        let facts = thread.facts
        if facts.isRunning { return WaitFinding(isRunning: true, object: "", cause: .cpu) }
        var found = WaitFinding(object: object(of: thread), cause: cause(of: thread))
        guard isFutex(facts) else { return found }
        // Each holds what the one before it waits for.
        var chain = [facts.id]
        var next: InspectedTests.Thread? = thread
        while let waiter = next, let owner = owner(of: waiter), chain.count < 9 {
            if chain.contains(owner) {
                found.isCircular = true
                break
            }
            chain.append(owner)
            next = threads[owner]
        }
        found.holderIDs = Array(chain.dropFirst())
        found.holders = found.holderIDs.map(holder)
        return found
    }

    private func holder(_ id: ThreadID) -> String {
        guard let thread = threads[id] else { return "thread \(id.rawValue)" }
        let frame = thread.frames.first(where: \.isOwn)
        let position = frame.map { " in \($0.title)" + ($0.placeText.map { " at " + $0 } ?? "") }
        return "thread \(id.rawValue) '\(thread.facts.name)'" + (position ?? "")
    }

    private func isFutex(_ facts: InspectedThread) -> Bool {
        facts.systemCall.flatMap(SystemCall.init)?.kind == .futex && facts.arguments.count == 6
    }

    private func owner(of thread: InspectedTests.Thread) -> ThreadID? {
        guard isFutex(thread.facts) else { return nil }
        let arguments = thread.facts.arguments
        let futex = WaitedFutex(
            address: arguments[0], operation: UInt32(truncatingIfNeeded: arguments[1]) & 127,
            words: process.memory.halfWords(at: arguments[0], count: 8),
            drainer: process.syncQueueHolder(futex: arguments[0], waiter: thread.facts.id))
        let owner = lockOwner(of: futex, thread.functions)
        return owner.flatMap { threads[$0] == nil ? nil : $0 }
    }

    private func object(of thread: InspectedTests.Thread) -> String {
        let facts = thread.facts
        switch FrameHint(thread.functions) {
        case .lock(.file): return fileLock(facts)
        case .lock(let kind): return kind.rawValue
        case .resolver: return "the resolver (DNS)"
        case .child: return child(nil)
        case .file, .memory, .timedLoop, nil: break
        }
        if facts.state == UInt8(ascii: "T") || facts.state == UInt8(ascii: "t") {
            return "SIGCONT: it is stopped"
        }
        guard let number = facts.systemCall else {
            return facts.waitChannel.isEmpty ? "the kernel" : "the kernel (\(facts.waitChannel))"
        }
        guard let call = SystemCall(number: number) else { return "system call \(number)" }
        let first = facts.arguments.first.map { Int32(truncatingIfNeeded: $0) } ?? -1
        switch call.kind {
        case .descriptor, .socket, .file:
            return process.descriptor(first).map { "\(call.name)(\(text($0)))" } ?? call.name
        case .poll where call.name.hasSuffix("poll"):
            let polled = process.polled(at: facts.arguments[0], count: facts.arguments[1])
            return polled.isEmpty
                ? "the end of a sleep" : "\(call.name)(\(polled.map(text).joined(separator: ", ")))"
        case .fileLock: return fileLock(facts)
        case .child:
            let named = call.name == "waitid" ? facts.arguments[1] : facts.arguments[0]
            return child(Int32(truncatingIfNeeded: named))
        case .sleep: return "the end of a sleep"
        case .signal: return "a signal"
        case .futex: return "a lock"
        default: return call.name
        }
    }

    /// The class that the agent's reports have for such a wait.
    private func cause(of thread: InspectedTests.Thread) -> CauseClass {
        let facts = thread.facts
        switch FrameHint(thread.functions) {
        case .lock: return .lock
        case .resolver: return .network
        case .child: return .ipc
        case .file, .memory, .timedLoop, nil: break
        }
        if facts.state == UInt8(ascii: "T") || facts.state == UInt8(ascii: "t") { return .stopped }
        guard let call = facts.systemCall.flatMap(SystemCall.init) else { return .unknown }
        switch call.kind {
        case .futex, .fileLock: return .lock
        case .sleep: return .sleep
        case .child, .exchange, .signal: return .ipc
        case .file: return .disk
        case .descriptor, .socket:
            let first = facts.arguments.first.map { Int32(truncatingIfNeeded: $0) } ?? -1
            return process.descriptor(first).map { cause(of: [$0]) } ?? .unknown
        case .poll where call.name.hasSuffix("poll"):
            let polled = process.polled(at: facts.arguments[0], count: facts.arguments[1])
            return polled.isEmpty ? .sleep : cause(of: polled)
        default: return .unknown
        }
    }

    private func cause(of descriptors: [InspectedDescriptor]) -> CauseClass {
        let causes = Set(
            descriptors.map { descriptor -> CauseClass in
                if descriptor.target.hasPrefix("pipe:") { return .ipc }
                if descriptor.target.hasPrefix("socket:") {
                    return process.isLocalSocket(descriptor) ? .ipc : .network
                }
                return descriptor.target.hasPrefix("/dev/") || !descriptor.target.hasPrefix("/")
                    ? .unknown : .disk
            })
        return causes.count == 1 ? causes.first! : .unknown
    }

    private func text(_ descriptor: InspectedDescriptor) -> String {
        let others = process.processes(sharing: descriptor.target).compactMap { RunningProcess($0) }
        let partners = others.prefix(3).map { "process \($0.id) '\($0.name)'" }
        return "\(descriptor.number): \(descriptor.target)"
            + (partners.isEmpty ? "" : ", also open in " + partners.joined(separator: ", "))
    }

    private func fileLock(_ facts: InspectedThread) -> String {
        let first = facts.arguments.first.map { Int32(truncatingIfNeeded: $0) } ?? -1
        let file = process.descriptor(first).map { " on " + $0.target } ?? ""
        let holder = process.fileLockHolder().map { id in
            ", held by process \(id)" + (RunningProcess(id).map { " '\($0.name)'" } ?? "")
        }
        return "a file lock" + file + (holder ?? "")
    }

    private func child(_ id: Int32?) -> String {
        let children = process.children.filter { id == nil || id! <= 0 || $0.id == id }
        guard !children.isEmpty else { return "the end of a child process" }
        return "the end of "
            + children.prefix(5).map {
                "process \($0.id) '\($0.name)'"
                    + ($0.state == UInt8(ascii: "Z") ? " (it has ended)" : "")
            }.joined(separator: ", ")
    }
}

extension InspectedTests.Thread {
    /// Innermost first.
    var functions: [String] {
        // Suspensions are no part of the wait.
        frames.prefix { $0.kind != .asyncResume }.map { $0.function ?? "" }
    }
}
