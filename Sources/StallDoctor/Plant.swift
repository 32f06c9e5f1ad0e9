// The planted stalls, with the expected contents of their reports.

internal import CLinux
package import StallModel

/// A stall of known function and cause.
package enum Plant: String, CaseIterable, Sendable {
    case sleep, cpu, lock, ipc, network, loop, task, queue, waits, stopped, killed

    /// The target's name in its report.
    package var target: String { self == .task ? "tasks" : rawValue }

    /// The function that has to be on its stack.
    package var function: String {
        switch self {
        case .sleep: "sleepForDoctor()"
        case .cpu: "computeForDoctor()"
        case .lock: "PlantedMutex.waitForDoctorsLock()"
        case .ipc: "readFromDoctorsPipe(_:)"
        case .network: "receiveForDoctor(_:)"
        case .loop: "workInDoctorsLoop()"
        case .task: "blockDoctorsTask()"
        case .queue: "blockDoctorsQueue()"
        case .waits: "workBetweenDoctorsWaits()"
        case .stopped: "workWhileStopped()"
        case .killed: "stallUntilKilled()"
        }
    }

    package var cause: CauseClass {
        switch self {
        case .cpu: .cpu
        case .lock: .lock
        case .ipc: .ipc
        case .network: .network
        case .stopped: .stopped
        default: .sleep
        }
    }

    /// The function that the holder of the lock is in.
    package static let holder = "PlantedMutex.holdForDoctor(_:)"
}

/// A process that plants stalls in itself.
package enum PlantingProcess: String, CaseIterable, Sendable {
    /// With the agent: what ends by itself.
    case recovers
    /// With the agent: it is stopped from outside for a while, and then killed.
    case dies
    /// Without an agent of its own: an event loop, for the one that `stallctl run` loads.
    case waits

    package static let threshold = Duration.milliseconds(50)

    /// Its store, in the folder.
    package var storeName: String { "\(rawValue).sqlite" }

    /// Runs it in this process, which has no other purpose. Prints a line for each plant: its name and how long it
    /// lasted in nanoseconds, or its name, a minus sign and why it could not be planted.
    ///
    /// - Parameters:
    ///   - folder: For the store. Exists.
    ///   - patience: 1, or more for a process that has too little of a CPU for the usual time.
    package func run(inFolder folder: String, patience: Int) throws {
        stall_end_with_parent()
        // With a tenth of a CPU nothing of the agent runs for 90 ms at a time.
        if patience > 1 { plantedTime = plantedTime * 2 }
        switch self {
        case .recovers: try runRecovering(storePath: folder + "/" + storeName, patience)
        case .dies: try runDying(storePath: folder + "/" + storeName)
        case .waits: runWaiting(patience)
        }
    }
}

/// The last lines of ``PlantingProcess/recovers``: a word and a number.
package enum TrialFact: String {
    /// How many of its waits a signal ended.
    case interrupted
    /// How late a thread ran at worst, in nanoseconds.
    case late

    package func line(_ number: Int) -> String { "\(rawValue) \(number)" }

    package func number(in line: some StringProtocol) -> Int? {
        let words = line.split(separator: " ")
        return words.count == 2 && words[0] == rawValue ? Int(words[1]) : nil
    }
}

/// A line of a planting process's output.
package struct PlantedStall: Equatable, Sendable {
    package var plant: Plant
    /// As its own thread measured it; nil if it was not planted.
    package var duration: Duration?
    /// Why it was not planted.
    package var obstacle: String?

    package init(_ plant: Plant, duration: Duration) {
        self.plant = plant
        self.duration = duration
    }

    package init(_ plant: Plant, obstacle: String) {
        self.plant = plant
        self.obstacle = obstacle
    }

    package init?(line: some StringProtocol) {
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, let plant = Plant(rawValue: String(words[0])) else { return nil }
        if words[1] == "-" {
            self.init(plant, obstacle: words.count == 3 ? String(words[2]) : "")
        } else if let nanoseconds = Int64(words[1]), nanoseconds >= 0 {
            self.init(plant, duration: .nanoseconds(nanoseconds))
        } else {
            return nil
        }
    }

    package var line: String {
        "\(plant.rawValue) "
            + (duration.map { "\(Int64($0 / .nanoseconds(1)))" } ?? "- \(obstacle ?? "")")
    }
}
