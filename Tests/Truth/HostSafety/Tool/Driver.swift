// Runs plays one after the other, each in its own process, and judges them from outside.

import Foundation
import StallModel
import StallArchive
import StallQuery

struct Verdict {
    var plays = 0
    var crashed = 0
    var hung = 0
    var successorsKilled = 0
    var blind = 0
    var stopLate = 0
    /// Descriptors of the app that the agent closed or wrote.
    var descriptorsTouched = 0
    /// How often the app found no free descriptor.
    var openFailed = 0
    var exitLate = 0
    /// Waits of the app that a capture ended, and how many it was tried on.
    var interrupted = (ended: 0, of: 0)

    var faults: Int {
        crashed + hung + successorsKilled + blind + stopLate + descriptorsTouched + openFailed
            + exitLate
    }
    var isGood: Bool { faults == 0 }
    var line: String {
        "host safety plays=\(plays) crashed=\(crashed) hung=\(hung) "
            + "successors_killed=\(successorsKilled) blind=\(blind) stop_late=\(stopLate) "
            + "descriptors_touched=\(descriptorsTouched) app_open_failed=\(openFailed) "
            + "exit_late=\(exitLate) eintr=\(interrupted.ended) of=\(interrupted.of)"
    }

    /// Counts what a play printed. Returns whether the line is a fault.
    mutating func count(_ line: Substring) -> Bool {
        let words = line.split(separator: " ")
        func number(at index: Int) -> Int { words.count > index ? Int(words[index]) ?? 0 : 0 }
        if line.contains("late=1") {
            stopLate += 1
        } else if line.hasPrefix("crashed") {
            crashed += 1
        } else if line.hasPrefix("hung") {
            hung += 1
        } else if line.hasPrefix("blind") {
            blind += 1
        } else if line.hasPrefix("successor killed") {
            successorsKilled += 1
        } else if line.hasPrefix("descriptors touched") {
            descriptorsTouched += number(at: 2)
            return number(at: 2) > 0
        } else if line.hasPrefix("open failed") {
            openFailed += 1
        } else if line.hasPrefix("exit late") {
            exitLate += 1
        } else if line.hasPrefix("eintr") {
            interrupted.ended += number(at: 1)
            interrupted.of += number(at: 3)
            return false
        } else {
            return false
        }
        return true
    }
}

/// Runs plays until the time is over, each kind at least once.
func drive(seconds: Int, only: String?) -> Bool {
    var verdict = Verdict()
    let root = NSTemporaryDirectory() + "host-safety-\(getpid())"
    let end = ContinuousClock.now + .seconds(seconds)
    let skipped = (ProcessInfo.processInfo.environment["HOST_SAFETY_SKIP"] ?? "").split(
        separator: ",")
    let all = Play.all.filter {
        !$0.isInner && (only == nil || $0.name == only) && !skipped.contains(Substring($0.name))
    }
    var round = 0
    repeat {
        for play in round == 0 ? all : all.shuffled() {
            if round > 0, ContinuousClock.now >= end { break }
            judge(play, root + "/\(round)-\(play.name)", &verdict)
        }
        round += 1
    } while ContinuousClock.now < end
    if verdict.isGood { try? FileManager.default.removeItem(atPath: root) }
    print(verdict.line)
    return verdict.isGood
}

private func judge(_ play: Play, _ directory: String, _ verdict: inout Verdict) {
    try? FileManager.default.createDirectory(
        atPath: directory + "/elsewhere", withIntermediateDirectories: true)
    verdict.plays += 1
    let process = Process()
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = ["play", play.name, directory]
    process.environment = ProcessInfo.processInfo.environment.merging(play.environment) { $1 }
    let output = directory + "/output"
    _ = FileManager.default.createFile(atPath: output, contents: nil)
    process.standardOutput = FileHandle(forWritingAtPath: output)
    process.standardError = process.standardOutput
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    guard (try? process.run()) != nil else {
        verdict.crashed += 1
        return
    }
    var faults: [String] = []
    if ended.wait(timeout: .now() + 60) == .timedOut {
        // And its children: Foundation waits for all that have inherited its socket. They are in the play's group.
        kill(-process.processIdentifier, SIGKILL)
        kill(process.processIdentifier, SIGKILL)
        _ = ended.wait(timeout: .now() + 10)
        verdict.hung += 1
        faults.append("hung")
    } else if process.terminationReason == .uncaughtSignal {
        let isSuccessor = process.terminationStatus == SIGPROF
        if isSuccessor { verdict.successorsKilled += 1 } else { verdict.crashed += 1 }
        faults.append("signal \(process.terminationStatus)")
    } else if process.terminationStatus != 0 {
        verdict.crashed += 1
        faults.append("status \(process.terminationStatus)")
    }
    let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
    for line in text.split(separator: "\n") {
        if verdict.count(line) { faults.append(String(line)) }
        if line.hasPrefix("skipped") { print("\(play.name): \(line)") }
    }
    let missing = missingStalls(directory)
    // Where nothing can be stored, an agent that says so has said enough.
    if missing > 0, !(play.mayLose && text.contains("flushed=0") || play.mayLose) {
        verdict.blind += missing
        faults.append("\(missing) stalls neither reported nor counted")
    }
    let unseen = missingCalls(directory)
    if !unseen.isEmpty {
        verdict.blind += unseen.count
        faults.append("calls not reported: \(unseen.joined(separator: ", "))")
    }
    guard !faults.isEmpty else { return }
    print("\(play.name): \(faults.joined(separator: ", ")); see \(directory)")
    print(text.suffix(2000))
}

/// Planned stalls that are neither in the store nor counted there.
private func missingStalls(_ directory: String) -> Int {
    let labels = lines(of: directory + "/plan")
    guard !labels.isEmpty else { return 0 }
    let (reports, counted) = stored(directory)
    let found = Set(reports.filter { $0.verdict != .blocking }.compactMap { $0.activity })
    return max(0, labels.filter { !found.contains($0) }.count - counted)
}

/// Planned calls that are not in the store. Counted ones are no excuse: a play makes these when there is room.
private func missingCalls(_ directory: String) -> [String] {
    let calls = lines(of: directory + "/calls")
    guard !calls.isEmpty else { return [] }
    var reports = stored(directory).reports.filter { $0.verdict == .blocking }
    return calls.filter { call in
        let words = call.split(separator: " ").map(String.init)
        let index = reports.firstIndex { report in
            let name = report.cause?.evidence.first {
                $0.name == EvidenceName.blockingCall.rawValue
            }
            return name?.value == words[0]
                && report.samples.contains { sample in
                    sample.frames.contains { $0.function?.contains(words[1]) == true }
                }
        }
        if let index { reports.remove(at: index) }
        return index == nil
    }
}

extension ReportStore {
    /// Without the calls of a program where blocking is forbidden.
    func stalls() throws -> [StallReport] {
        try reports(ReportFilter()).filter { $0.verdict != .blocking }
    }
}

private func lines(of path: String) -> [String] {
    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
}

/// The reports of a play, and how many were lost and counted. A forked child has a store of its own.
private func stored(_ directory: String) -> (reports: [StallReport], counted: Int) {
    var result: (reports: [StallReport], counted: Int) = ([], 0)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    for name in names where name.hasPrefix("store") && name.hasSuffix(".sqlite") {
        guard let store = try? ReportStore.open(path: directory + "/" + name),
            let reports = try? store.reports(ReportFilter()), let status = try? store.status()
        else { continue }
        result.reports += reports
        result.counted += status.losses.values.reduce(0, +)
    }
    return result
}
