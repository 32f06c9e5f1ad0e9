// Files and rights that the agent and stallctl use and this machine, container or user lacks.

internal import StallAgent

/// Something that is missing here.
package struct Lack: Equatable, Sendable {
    /// The missing thing and the error.
    package var what: String
    /// The loss without it.
    package var effect: String
    /// A repair; nil if the user has none.
    package var remedy: String?
    /// The guarantees whose failure it explains.
    package var guarantees: [Guarantee]

    init(what: String, effect: String, remedy: String?, guarantees: [Guarantee]) {
        self.what = what
        self.effect = effect
        self.remedy = remedy
        self.guarantees = guarantees
    }

    init(_ shortage: Shortage) {
        self.init(
            what: shortage.loss.what, effect: shortage.loss.effect, remedy: shortage.loss.remedy,
            guarantees: shortage.parts.compactMap(\.guarantee))
    }
}

extension SelfTestFinding.Part {
    /// The guarantee that a shortage of this part explains. A store that cannot be written has no trial of its own: doctor's
    /// stores are elsewhere.
    fileprivate var guarantee: Guarantee? {
        switch self {
        case .blockedStacks: .blocked
        case .runningStacks: .running
        case .causes: .causes
        case .lockHolders: .holders
        case .queues: .queues
        case .tasks: .tasks
        case .runLoops, .store, .endings: nil
        }
    }
}

extension Surroundings {
    /// The missing things, for a program with this environment whose agent's store is in `storeFolder`.
    func lacks(storeFolder: String, _ environment: [String: String]) -> [Lack] {
        shortages(storeFolder: storeFolder).map { Lack($0) }
            + [tracing, disabled(environment)].compactMap(\.self)
    }

    /// **Source:** Documentation/admin-guide/LSM/Yama.rst: 0 and 1 let a process read its descendants.
    private var tracing: Lack? {
        let path = "/proc/sys/kernel/yama/ptrace_scope"
        guard let scope = line(path).flatMap({ Int($0) }), scope >= 2 else { return nil }
        return Lack(
            what: "\(path) is \(scope)", effect: "other processes cannot be read",
            remedy: scope == 2
                ? "Run as root, or set it to 1: sysctl kernel.yama.ptrace_scope=1" : nil,
            guarantees: [.tests])
    }

    private func disabled(_ environment: [String: String]) -> Lack? {
        guard let value = environment["STALLWATCH_DISABLED"], !["", "0"].contains(value) else {
            return nil
        }
        return Lack(
            what: "STALLWATCH_DISABLED is \(value)",
            effect: "the agent does nothing in programs that have it in their environment",
            remedy: "unset STALLWATCH_DISABLED", guarantees: [])
    }
}

/// For stallctl, which does not see the agent.
package enum MachineSurroundings {
    package static func lacks(storeFolder: String, _ environment: [String: String]) -> [Lack] {
        Surroundings.current.lacks(storeFolder: storeFolder, environment)
    }
}
