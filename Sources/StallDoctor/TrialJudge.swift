// The verdict on each guarantee: the reports, compared with the planted stalls.

package import StallModel

/// Judges by the reports alone.
package struct TrialJudge {
    private let stalls: [PlantedStall]
    private let reports: [StallReport]
    private let interruptions: Int?
    private let lateness: Duration

    /// - Parameters:
    ///   - interruptions: How many planted waits a signal ended, if that is known.
    ///   - lateness: How late a thread of the planting process ran at worst.
    package init(
        _ stalls: [PlantedStall], _ reports: [StallReport], interruptions: Int?,
        lateness: Duration
    ) {
        self.stalls = stalls
        self.reports = reports
        self.interruptions = interruptions
        self.lateness = lateness
    }

    /// The results of all guarantees but ``Guarantee/tests``, which has no report.
    package var findings: [Finding] {
        [
            stacks(of: [.sleep, .ipc, .lock], as: .blocked), stacks(of: [.cpu], as: .running),
            undisturbed, causes, holders, durations, stacks(of: [.loop], as: .eventLoops),
            stacks(of: [.task], as: .tasks), stacks(of: [.queue], as: .queues),
            stops, kills, falseAlarms, stacks(of: [.waits], as: .programs),
        ].map(timely)
    }

    /// Guarantees that a wrong observation breaks, not a missing one.
    private static let timeless: Set<Guarantee> = [.undisturbed, .stops, .falseAlarms]

    /// Where threads get no CPU in time, a missing report proves nothing.
    private func timely(_ finding: Finding) -> Finding {
        guard [.limited, .fails].contains(finding.verdict), lateness > Self.tolerance,
            !Self.timeless.contains(finding.guarantee)
        else { return finding }
        let milliseconds = Int((lateness / .milliseconds(1)).rounded())
        return Finding(
            finding.guarantee, .untried,
            "the CPUs are overloaded: a thread ran \(milliseconds) ms late"
                + (finding.detail.map { ", and there was \($0)" } ?? ""))
    }

    /// The reports of a plant's target. The loop of a program that is not built with the agent has another name.
    private func reports(of plant: Plant) -> [StallReport] {
        plant == .waits
            ? reports.filter { $0.run.app != Self.app }
            : reports.filter { $0.loop == plant.target && $0.run.app == Self.app }
    }

    package static let app = "stallctl-doctor"

    private func isPlanted(_ plant: Plant) -> Bool {
        stalls.contains { $0.plant == plant && $0.duration != nil }
    }

    /// Why none of them was planted; nil if one was.
    private func obstacle(to plants: [Plant]) -> String? {
        guard !plants.contains(where: isPlanted) else { return nil }
        let reasons = stalls.filter { plants.contains($0.plant) }.compactMap(\.obstacle)
        return reasons.first ?? "no stall was planted"
    }

    private func stacks(of plants: [Plant], as guarantee: Guarantee) -> Finding {
        if let obstacle = obstacle(to: plants) { return Finding(guarantee, .untried, obstacle) }
        var problems: [String] = []
        for plant in plants where isPlanted(plant) {
            let found = reports(of: plant)
            if found.isEmpty {
                problems.append("no report of \(plant.function)")
            } else if !found.contains(where: { $0.shows(plant.function) }) {
                let failure = found.lazy.flatMap(\.samples).compactMap(\.failure).first
                problems.append("no stack of \(plant.function)" + (failure.map { ": \($0)" } ?? ""))
            } else if found.count > 1 {
                problems.append("\(found.count) reports of \(plant.function)")
            }
        }
        return finding(guarantee, problems, of: plants.count(where: isPlanted))
    }

    private func finding(_ guarantee: Guarantee, _ problems: [String], of count: Int) -> Finding {
        guard !problems.isEmpty else { return Finding(guarantee, .works) }
        return Finding(
            guarantee, problems.count < count ? .limited : .fails, problems.joined(separator: "; "))
    }

    private var undisturbed: Finding {
        // Without any report the agent did nothing.
        guard let interruptions, !reports.isEmpty else {
            return Finding(.undisturbed, .untried, "there is no report")
        }
        return interruptions == 0
            ? Finding(.undisturbed, .works)
            : Finding(.undisturbed, .fails, "\(interruptions) waits ended with EINTR")
    }

    private var causes: Finding {
        let plants: [Plant] = [.sleep, .cpu, .lock, .ipc, .network].filter(isPlanted)
        guard !plants.isEmpty else { return Finding(.causes, .untried, obstacle(to: [.sleep])) }
        let problems = plants.compactMap { plant -> String? in
            guard let report = reports(of: plant).first else {
                return "no report of \(plant.function)"
            }
            let cause = report.cause?.cause ?? .unknown
            // Beside other load it is right that the thread lacked a CPU.
            let isRight = cause == plant.cause || plant == .cpu && report.lackedCPU
            return isRight
                ? nil : "\(plant.function) is said to be \(cause.word), not \(plant.cause.word)"
        }
        if problems.isEmpty, let reason = obstacle(to: [.network]) {
            return Finding(.causes, .works, "network was not tried: \(reason)")
        }
        return finding(.causes, problems, of: plants.count)
    }

    private var holders: Finding {
        guard isPlanted(.lock) else { return Finding(.holders, .untried, obstacle(to: [.lock])) }
        guard let report = reports(of: .lock).first else {
            return Finding(.holders, .fails, "no report of \(Plant.lock.function)")
        }
        guard let holder = report.cause?.holder else {
            return Finding(.holders, .fails, "no holder is named")
        }
        let thread = report.threads.first { $0.thread == holder.thread }
        guard let thread, thread.frames.contains(where: { $0.isFunction(Plant.holder) }) else {
            return Finding(.holders, .limited, "the holder has no stack")
        }
        return Finding(.holders, .works)
    }

    /// A queue's and a program's stalls are noticed by looks, a task's by its own marks.
    private static let tolerance = Duration.milliseconds(20)

    private var durations: Finding {
        let compared = stalls.filter { ![.killed, .stopped].contains($0.plant) }.compactMap {
            stall -> (Plant, Duration)? in
            guard let duration = stall.duration, let report = reports(of: stall.plant).first
            else { return nil }
            return (stall.plant, report.duration - duration)
        }
        guard !compared.isEmpty else { return Finding(.durations, .untried, "there is no report") }
        let wrong = compared.filter { abs($0.1) > Self.tolerance }.map { plant, difference in
            let milliseconds = Int((abs(difference) / .milliseconds(1)).rounded())
            return
                "\(plant.function) \(milliseconds) ms too \(difference > .zero ? "long" : "short")"
        }
        return finding(.durations, wrong, of: compared.count)
    }

    private func abs(_ duration: Duration) -> Duration { max(duration, .zero - duration) }

    private var stops: Finding {
        // Without any report nothing is shown by the lack of one.
        guard isPlanted(.stopped), !reports(of: .killed).isEmpty else {
            return Finding(.stops, .untried, obstacle(to: [.stopped]))
        }
        let wrong = reports(of: .stopped).contains { $0.verdict == .stalled }
        return wrong
            ? Finding(.stops, .fails, "the time that it was stopped is reported as a stall")
            : Finding(.stops, .works)
    }

    private var kills: Finding {
        guard let report = reports(of: .killed).first else {
            return isPlanted(.stopped)
                ? Finding(.kills, .fails, "no report of \(Plant.killed.function)")
                : Finding(.kills, .untried, obstacle(to: [.stopped]))
        }
        guard report.state == .hang else {
            return Finding(.kills, .fails, "it is not known that the process was killed")
        }
        return report.shows(Plant.killed.function)
            ? Finding(.kills, .works)
            : Finding(.kills, .limited, "no stack of \(Plant.killed.function)")
    }

    private var falseAlarms: Finding {
        guard !reports.isEmpty else { return Finding(.falseAlarms, .untried, "there is no report") }
        let expected = Set(Plant.allCases.map(\.target))
        let others = reports.filter {
            $0.run.app == Self.app && $0.verdict == .stalled && !expected.contains($0.loop)
        }
        guard let other = others.first else { return Finding(.falseAlarms, .works) }
        return Finding(.falseAlarms, .fails, "\(others.count) reports, of '\(other.loop)' first")
    }
}

extension StallReport {
    fileprivate var lackedCPU: Bool {
        [.starved, .throttled].contains(verdict)
            || [.starved, .throttled].contains(cause?.cause ?? .unknown)
    }

    fileprivate func shows(_ function: String) -> Bool {
        samples.contains { $0.frames.contains { $0.isFunction(function) } }
    }
}

extension Frame {
    fileprivate func isFunction(_ name: String) -> Bool { function == name }
}
