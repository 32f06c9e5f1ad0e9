// The examination's measurement: stalls are planted in children, and their stores are ingested, as a user's would be.

internal import Glibc

/// The results of the child processes.
package struct StallTrial {
    /// The planted stalls, as their own threads measured them.
    package private(set) var stalls: [PlantedStall] = []
    /// How many waits a signal ended; nil if that is not known.
    package private(set) var interruptions: Int?
    /// How late a thread of the stalling process ran at worst.
    package private(set) var lateness = Duration.zero
    /// Lines of the agents' logs.
    package private(set) var agentLines: [String] = []
    /// Children that failed, with the reason: `stallctl ingest`, `unable to open ...`.
    package private(set) var failures: [(part: String, reason: String)] = []

    /// - Parameters:
    ///   - folder: For the stores; they are left there. The central one is ``centralStore``.
    ///   - limit: When children are killed.
    ///   - patience: How many times as long it may take.
    ///   - whileBlocked: Called with the id of a process that is blocked in ``Plant/killed``'s function.
    package init(
        inFolder folder: String, limit: Duration = .seconds(30), patience: Int = 1,
        whileBlocked: (Int32) -> Void
    ) throws(TrialError) {
        let deadline = monotonicTime() + limit
        func planting(_ kind: PlantingProcess) -> [String] {
            [
                "doctor", "--plant", kind.rawValue, "--plant-folder", folder,
                "--plant-patience", "\(patience)",
            ]
        }
        // Their status is of interest, also where the caller ignores it.
        signal(SIGCHLD, SIG_DFL)
        let recovers = try TrialProcess(arguments: planting(.recovers), folder: folder)
        let dies = try TrialProcess(arguments: planting(.dies), folder: folder)
        let waits = try TrialProcess(
            arguments: [
                "run", "--store", folder + "/" + PlantingProcess.waits.storeName,
                "--threshold", "50ms", "--", TrialProcess.program,
            ] + planting(.waits), folder: folder)
        if dies.awaitStop(until: deadline) {
            usleep(200_000)
            kill(dies.id, SIGCONT)
            if dies.awaitLine("stored", until: deadline) { whileBlocked(dies.id) }
        }
        dies.kill()
        finish(dies, as: "the process to be killed", by: deadline, isKilled: true)
        finish(recovers, as: "the stalling process", by: deadline)
        for process in [dies, recovers] {
            for line in process.errorLines
            where !agentLines.contains(where: { Self.saysSame($0, line) }) {
                agentLines.append(line)
            }
        }
        finish(waits, as: "stallctl run", by: deadline)
        // It runs the program even where it cannot watch it.
        failures += waits.errorLines.map { ("stallctl run", $0) }
        let ingest = try TrialProcess(
            arguments: ["ingest", "--store", folder + "/" + Self.centralStore]
                + PlantingProcess.allCases.map { folder + "/" + $0.storeName }
                .filter { access($0, F_OK) == 0 }, folder: folder)
        finish(ingest, as: "stallctl ingest", by: monotonicTime() + limit)
    }

    /// Apart from the time, which is the first word.
    static func saysSame(_ one: String, _ other: String) -> Bool {
        func text(_ line: String) -> Substring { line.drop { $0 != " " } }
        return one == other || text(one) == text(other) && !text(one).isEmpty
    }

    package static let centralStore = "central.sqlite"

    private mutating func finish(
        _ process: TrialProcess, as part: String, by deadline: Duration, isKilled: Bool = false
    ) {
        if let reason = process.end(by: deadline), !isKilled || reason != TrialProcess.killed {
            failures.append((part, reason))
        }
        stalls += process.lines.compactMap { PlantedStall(line: $0) }
        for line in process.lines {
            if let count = TrialFact.interrupted.number(in: line) { interruptions = count }
            if let late = TrialFact.late.number(in: line) { lateness = .nanoseconds(late) }
        }
    }

    /// Deletes the folder and its files.
    package static func clean(_ folder: String) {
        guard let entries = opendir(folder) else { return }
        while let entry = readdir(entries) {
            withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) {
                    _ = unlinkat(dirfd(entries), $0, 0)
                }
            }
        }
        closedir(entries)
        rmdir(folder)
    }
}
