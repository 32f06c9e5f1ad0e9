// Plants stalls with known causes, and compares the agent's causes with them.
//
//     cause-truth run DIRECTORY ROUNDS       every plant ROUNDS times; prints the confusion matrix and, last, the result
//     cause-truth cost DIRECTORY LOOKS        what reading a blocked thread's evidence costs the watchdog
//     cause-truth stopped STORE ROUNDS       a child of it: stalls once for each line that it reads, to be suspended
//
// Exit status 1 if a bar of docs/truth.md is missed.

import Foundation
import StallAgent
import StallCause
import StallModel
import StallArchive
import StallQuery
import Synchronization

nonisolated(unsafe) var scratch = "/tmp"

/// A stall that was planted, by the label its report carries.
struct Planted: Sendable {
    var plant: Plant
    var outcome: Outcome
}

/// Runs plants on threads that mark their work.
final class Field: Sendable {
    let monitor: StallMonitor
    let planted = Mutex<[String: Planted]>([:])
    private let counter = Atomic<Int>(0)

    init(_ monitor: StallMonitor) { self.monitor = monitor }

    /// Plants until it succeeds on a machine that may be busy with other things; false when it cannot.
    func plant(_ plant: Plant, on thread: WatchedThread) -> Bool {
        for _ in 0..<8 {
            let number = counter.add(1, ordering: .relaxed).newValue
            let label = "\(plant.name) #\(number)"
            thread.activity = label
            thread.begin()
            let outcome = plant.stall()
            thread.end()
            thread.activity = nil
            guard let outcome else { return false }
            guard !outcome.isSpoiled else { continue }
            planted.withLock { $0[label] = Planted(plant: plant, outcome: outcome) }
            return true
        }
        return false
    }

    /// Each plant `rounds` times, spread over this many threads.
    func plantAll(_ plants: [Plant], rounds: Int, threads: Int) {
        let jobs = Mutex((0..<rounds).flatMap { _ in plants })
        let group = DispatchGroup()
        for index in 0..<threads {
            group.enter()
            let worker = Thread { [self] in
                let watched = monitor.watchCurrentThread(as: "field \(index)")
                while let plant = jobs.withLock({ $0.popLast() }) {
                    if !self.plant(plant, on: watched) {
                        print("not planted: \(plant.name)")
                    }
                }
                group.leave()
            }
            worker.stackSize = 1 << 20
            worker.start()
        }
        group.wait()
    }

    /// Deadlocks, which stay.
    func plantForEver(_ plants: [Plant], rounds: Int) {
        for plant in (0..<rounds).flatMap({ _ in plants }) {
            let number = counter.add(1, ordering: .relaxed).newValue
            let label = "\(plant.name) #\(number)"
            planted.withLock { $0[label] = Planted(plant: plant, outcome: Outcome()) }
            Thread.detachNewThread { [monitor] in
                let watched = monitor.watchCurrentThread(as: "circle \(number)")
                watched.activity = label
                watched.begin()
                _ = plant.stall()
            }
        }
        sleep(3)
    }
}

@main
struct CauseTruth {
    static func main() throws {
        setvbuf(stdout, nil, Int32(_IOLBF), 0)
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let rounds = Int(arguments[3]) else {
            FileHandle.standardError.write(Data("usage: cause-truth run DIRECTORY ROUNDS\n".utf8))
            exit(64)
        }
        if arguments[1] == "stopped" { return try beStopped(store: arguments[2], rounds: rounds) }
        if arguments[1] == "cost" { return measureCost(looks: rounds) }
        scratch = arguments[2]
        let store = scratch + "/truth.sqlite"
        // Where it is allowed, other programs of the machine stay out of the way.
        let group = open("/proc/self/autogroup", O_WRONLY)
        if group >= 0 {
            write(group, "-19", 3)
            close(group)
        }
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, -19)
        beSilentNameserver()
        let field = Field(try .start(configuration(store)))
        field.plantAll(
            Plant.locks + Plant.waits + Plant.files + Plant.calls.filter { $0.pace != .alone },
            rounds: rounds, threads: 12)
        field.plantAll(
            Plant.work + Plant.calls.filter { $0.pace == .alone }, rounds: rounds, threads: 1)
        field.plantForEver(Plant.deadlocks, rounds: max(1, rounds / 3))
        field.monitor.stop()
        var planted = field.planted.withLock { $0 }
        var reports = try ReportStore.open(path: store).reports(ReportFilter())
        let stopped = scratch + "/stopped.sqlite"
        try stopChild(store: stopped, rounds: rounds)
        for number in 0..<rounds {
            planted["stopped #\(number)"] = Planted(plant: .stopped, outcome: Outcome())
        }
        reports += try ReportStore.open(path: stopped).reports(ReportFilter())
        let score = Score(planted, reports)
        score.print()
        // Some threads are locked forever.
        exit(score.isGoodEnough ? 0 : 1)
    }

    /// If port 53 is free and allowed: DNS requests to this machine are accepted and never answered.
    static func beSilentNameserver() {
        let server = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
        _ = withLoopback(port: 53) { bind(server, $0, $1) }
    }

    static func configuration(_ store: String) -> StallMonitor.Configuration {
        var configuration = StallMonitor.Configuration(
            app: "truth", version: "1", store: store, threshold: .milliseconds(100))
        configuration.limits = .none
        return configuration
    }

    /// The cost of one reading of evidence, on threads blocked in each kind of wait. The thread itself is not
    /// disturbed.
    static func measureCost(looks: Int) {
        let process = ProcessStateReader(ControlGroup())
        let waits = ["mutex", "read from TCP", "usleep", "poll of TCP"]
        for plant in Plant.locks + Plant.waits where waits.contains(plant.name) {
            let state = CostState()
            let thread = Thread {
                state.id.store(threadID(), ordering: .releasing)
                while !state.isOver.load(ordering: .acquiring) { _ = plant.stall() }
                state.id.store(0, ordering: .releasing)
            }
            thread.start()
            usleep(50_000)
            var reader = ThreadStateReader(
                ThreadID(rawValue: state.id.load(ordering: .acquiring)))
            var costs: [Duration] = []
            for _ in 0..<looks {
                let began = ContinuousClock.now
                var (wait, counters) = reader.snapshot()
                wait.unreadable.formUnion(process.snapshot(&counters))
                costs.append(ContinuousClock.now - began)
                usleep(500)
            }
            state.isOver.store(true, ordering: .releasing)
            while state.id.load(ordering: .acquiring) != 0 { usleep(1000) }
            costs.sort()
            let microseconds = [costs[looks / 2], costs[looks * 95 / 100]].map {
                String(format: "%.1f", $0 / .microseconds(1))
            }
            print("\(plant.name): p50 \(microseconds[0]) us, p95 \(microseconds[1]) us")
        }
    }

    /// A process that is stopped in the middle of its work.
    static func beStopped(store: String, rounds: Int) throws {
        // Long enough to be suspected, too short to be a stall of its own: what makes it one is being stopped.
        let field = Field(try .start(configuration(store)))
        let watched = field.monitor.watchCurrentThread(
            as: "stopped", threshold: .milliseconds(300))
        for number in 0..<rounds {
            watched.activity = "stopped #\(number)"
            print("working")
            watched.begin()
            usleep(250_000)
            watched.end()
            watched.activity = nil
            usleep(20_000)
        }
        field.monitor.stop()
    }

    static func stopChild(store: String, rounds: Int) throws {
        let child = Process()
        child.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        child.arguments = ["stopped", store, String(rounds)]
        let output = Pipe()
        child.standardOutput = output
        try child.run()
        var count = 0
        while case let data = output.fileHandleForReading.availableData, !data.isEmpty {
            count += 1
            usleep(200_000)
            kill(child.processIdentifier, SIGSTOP)
            usleep(700_000)
            kill(child.processIdentifier, SIGCONT)
        }
        child.waitUntilExit()
    }
}

/// Shared with the measured thread.
private final class CostState: Sendable {
    let id = Atomic<Int32>(0)
    let isOver = Atomic<Bool>(false)
}

extension Plant {
    static let stopped = Plant(name: "stopped", cause: .stopped, pace: .alone) { nil }
}
