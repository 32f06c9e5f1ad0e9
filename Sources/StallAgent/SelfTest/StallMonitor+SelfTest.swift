// The agent's view of its own process.

internal import CLinux
internal import StallCapture
internal import StallStore

extension StallMonitor {
    /// Tries the files, rights and system calls that the agent needs in this process, as its user and in its container.
    ///
    /// It opens files of `/proc`, creates and deletes a file in the store's folder and in `/dev/shm`, makes the system calls
    /// that captures make, and compares the insides of libraries with the expected ones. No stall is planted, no thread is
    /// started and no signal is sent: `stallctl doctor` does that, in processes of its own. So a part that works here may
    /// still have other obstacles.
    ///
    /// - Returns: One finding for each ``SelfTestFinding/Part``, in their order. If the agent is disabled or could not start,
    ///   all of them fail, with the reason.
    ///
    /// **Thread safety:** any thread, at any time; in a watched loop it counts as the loop's work.
    /// **Cost:** some 30 system calls, about a millisecond; a store on a disk that hangs keeps the calling thread waiting.
    public func selfTest() -> [SelfTestFinding] {
        var shortages =
            isRunning
            ? Surroundings.current.shortages(storeFolder: configuration.store.nearestDirectory)
            : [whyNot]
        if isRunning { shortages += Self.refusedCalls + Self.unknownLayouts + Self.missingParts }
        return SelfTestFinding.Part.allCases.map { part in
            let own = shortages.filter { $0.parts.contains(part) }
            return SelfTestFinding(
                part: part,
                verdict: own.contains(where: \.isFatal) ? .fails : own.isEmpty ? .works : .limited,
                losses: own.map(\.loss))
        }
    }

    private var isRunning: Bool { agent.map { !$0.hasStopped } ?? false }

    private var whyNot: Shortage {
        let all = SelfTestFinding.Part.allCases
        guard configuration.isEnabled else {
            return Shortage(
                "the agent is disabled", "nothing is watched",
                remedy: "Unset STALLWATCH_DISABLED, or set Configuration.isEnabled to true.",
                of: all,
                isFatal: true)
        }
        return Shortage(
            "the agent does not run in this process", "nothing is watched",
            remedy:
                "It was stopped, its threads could not be started, or the process was forked: restartAfterFork().",
            of: all, isFatal: true)
    }

    private static var refusedCalls: [Shortage] {
        var refused = [stall_refused_call](repeating: stall_refused_call(), count: 16)
        let count = stall_calls_probe(&refused, refused.count)
        return refused.prefix(count).compactMap { call in
            guard let name = call.name.map({ String(cString: $0) }), let effect = call.effect else {
                return nil
            }
            return Shortage(
                "the system call \(name) is refused (errno \(call.error))", String(cString: effect),
                remedy: "Allow it in the container's seccomp profile.", of: parts(using: name),
                isFatal: name == "rt_tgsigqueueinfo")
        }
    }

    private static func parts(using call: String) -> [SelfTestFinding.Part] {
        switch call {
        case "rt_tgsigqueueinfo", "clock_nanosleep": [.runningStacks]
        case "process_vm_readv", "tgkill": [.blockedStacks, .runningStacks]
        case "statx": [.store]
        case "sendto": []
        default: [.causes]
        }
    }

    private static var unknownLayouts: [Shortage] {
        var unknown = [stall_unknown_layout](repeating: stall_unknown_layout(), count: 8)
        let count = stall_layouts_probe(&unknown, unknown.count)
        var found = unknown.prefix(count).compactMap { layout -> Shortage? in
            guard let name = layout.name, let effect = layout.effect else { return nil }
            return Shortage(
                "\(String(cString: name)) has a layout that is not known", String(cString: effect),
                of: [.lockHolders])
        }
        if !stall_queue_layout_is_usual(), !stall_queue_layout_is_known() {
            found.append(
                Shortage(
                    "a Dispatch queue has a layout that is not known",
                    "the thread of a stalled queue is a guess", of: [.queues]))
        }
        return found
    }

    private static var missingParts: [Shortage] {
        var found: [Shortage] = []
        if !stall_jobs_are_possible() {
            found.append(
                Shortage(
                    "Swift's runtime has no hook for jobs",
                    "the cooperative pool is watched instead of jobs",
                    of: [.tasks]))
        }
        if !stall_foreign_loop_is_available() {
            found.append(
                Shortage(
                    "Foundation is not in this program", "its run loops cannot be watched",
                    of: [.runLoops], isFatal: true))
        }
        if !isProcessDumpable() {
            found.append(
                Shortage(
                    "this process is not dumpable",
                    "threads that are watched from now on have a stack only while they compute",
                    remedy:
                        "prctl(PR_SET_DUMPABLE, 1), after the last setuid or with read permission for the program.",
                    of: [.blockedStacks, .causes, .lockHolders]))
        }
        return found
    }
}
