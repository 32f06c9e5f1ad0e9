// The parts of the suite. Each runs in its own process, which the agent watches.

import CLinux
import CMishaps
import Foundation
import StallAgent
import StallModel

/// What a part does with its process: it fills `truth`, for about `seconds`.
struct Part {
    var name: String
    /// Its stalls count for the error bars: nothing else is going on.
    var measuresErrors = false
    /// Run only if requested by name: it checks stacks, not which stalls are found.
    var isExtra = false
    /// It judges its stalls itself: they are other processes'.
    var problems: ((Stage) -> [String?])?
    /// What it plants besides stalls: reports with the first of these verdicts must appear, the others may.
    var verdicts: [StallVerdict] = []
    /// The main thread runs this, and returns when the part is over.
    var play: (Stage) -> Void
}

/// A process with an agent and victims in it.
final class Stage: @unchecked Sendable {
    // Unchecked because parts use it from one thread, and victims touch `truth` only.
    /// Started when a part first needs it: by then its process is in its final control group.
    private(set) lazy var monitor = try! StallMonitor.start(configuration)
    private let configuration: StallMonitor.Configuration
    let truth = Truth()
    let seconds: Double
    private(set) var notes: [String] = []
    /// The machine does not support what the part tests.
    private(set) var isUnplayed = false
    private var threads: [LoopThread] = []
    private var victims: [VictimLoop] = []
    private var isMainUsed = false

    init(store: String, seconds: Double) {
        var configuration = StallMonitor.Configuration(
            app: "truth", version: "1", store: store, symbolizes: false)
        configuration.prepareForTruth()
        self.configuration = configuration
        self.seconds = seconds
    }

    /// The machine does not allow what the part is about.
    func cannotPlay(_ reason: String) {
        notes.append(reason)
        isUnplayed = true
    }

    /// Watched loops with threads of their own.
    @discardableResult
    func addVictims(_ count: Int, threshold: Duration) -> [VictimLoop] {
        let new = (0..<count).map { index -> VictimLoop in
            let thread = try! LoopThread(name: "victim")
            threads.append(thread)
            let name = "\(Int(threshold / .milliseconds(1)))-\(victims.count + index)"
            return watched(
                VictimLoop(name: name, threshold: threshold, loop: thread.loop, truth: truth))
        }
        victims += new
        return new
    }

    /// The main thread's loop, for callouts of the main queue.
    func addMain(threshold: Duration) {
        isMainUsed = true
        victims.append(
            watched(VictimLoop(name: "main", threshold: threshold, loop: .main, truth: truth)))
    }

    private func watched(_ victim: VictimLoop) -> VictimLoop {
        monitor.watch(victim.loop, as: victim.name, threshold: victim.threshold)
        return victim
    }

    /// Feeds all victims at once until the time is up; `meanwhile` runs beside them.
    func drive(_ diet: Diet = Diet(), meanwhile: @escaping () -> Void = {}) {
        let deadline = monotonic() + UInt64(seconds * 1e9)
        let group = DispatchGroup()
        func start(_ body: @escaping () -> Void) {
            group.enter()
            Thread {
                body()
                group.leave()
            }.start()
        }
        usleep(50_000)
        start(meanwhile)
        for victim in victims { start { victim.drive(until: deadline, diet) } }
        if isMainUsed {
            Thread {
                group.wait()
                EventRunLoop.main.stop()
            }.start()
            EventRunLoop.main.run()
        } else {
            group.wait()
        }
    }

    var isOver: Bool { monotonic() >= end }
    private lazy var end = monotonic() + UInt64(seconds * 1e9)
}

extension Stage {
    /// Sleeps as the watchdog does, and notes how late that ends.
    fileprivate func sleepBesides() {
        stall_thread_wake_on_time()
        while !isOver {
            let due = monotonic() + 20_000_000
            var time = timespec(tv_sec: Int(due / 1_000_000_000), tv_nsec: Int(due % 1_000_000_000))
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil)
            truth.note(oversleep: Double(monotonic() - due) / 1e6)
        }
    }

    /// SIGSTOP and SIGCONT again and again, with a note of when.
    fileprivate func playStops(_ diet: Diet) {
        addVictims(2, threshold: .milliseconds(50))
        addVictims(2, threshold: .milliseconds(250))
        drive(diet) { [self] in
            noteStops(by: Helper("stopper", getpid(), Int(seconds * 1000), readsOutput: true))
        }
    }

    /// Watched queues with short items only, in a process that is stopped again and again.
    fileprivate func driveQueues(_ count: Int, threshold: Duration) {
        let deadline = monotonic() + UInt64(seconds * 1e9)
        let victims = (0..<count).map {
            VictimQueue(name: "queue-\($0)", threshold: threshold, truth: truth)
        }
        for victim in victims {
            monitor.watch(victim.queue, as: victim.name, threshold: threshold)
        }
        let group = DispatchGroup()
        for victim in victims {
            group.enter()
            Thread {
                victim.drive(until: deadline)
                group.leave()
            }.start()
        }
        noteStops(by: Helper("stopper", getpid(), Int(seconds * 1000), readsOutput: true))
        group.wait()
    }

    /// Processes that end during a stall or after one: what is wrong for each, or nil.
    fileprivate func playEnds() -> [String?] {
        let directory = FileManager.default.temporaryDirectory.appending(path: "ends-\(UUID())")
        try? FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var problems: [String?] = []
        while problems.isEmpty || !isOver {
            for way in WayOut.all {
                let problem = Result {
                    try way.check(milliseconds: .random(in: 300...1500), directory: directory)
                }
                switch problem {
                case .success(let problem):
                    problems.append(
                        isSabotaged && problems.count % 20 == 0
                            ? "\(way.name): left out" : problem)
                case .failure(let error): problems.append("\(way.name): \(error)")
                }
            }
        }
        return problems
    }

    /// Uses a helper's record of when it stopped this process. False if it could not.
    @discardableResult
    fileprivate func noteStops(by helper: Helper) -> Bool {
        let times = helper.output().split(whereSeparator: \.isWhitespace).compactMap { UInt64($0) }
        truth.note(
            stops: stride(from: 0, to: times.count - 1, by: 2).map { times[$0]..<times[$0 + 1] })
        return helper.waitForEnd()
    }
}

/// Short callouts and waits, none a stall.
private let healthy = Diet(stalls: nil, healthyShare: 0.45, computing: 0.3, pause: 0.1...2)

let parts: [Part] = [
    Part(name: "unloaded", measuresErrors: true) { stage in
        stage.addVictims(20, threshold: .milliseconds(50))
        stage.addVictims(24, threshold: .milliseconds(250))
        stage.addVictims(19, threshold: .milliseconds(1000))
        stage.addMain(threshold: .milliseconds(250))
        stage.drive { stage.sleepBesides() }
    },
    Part(name: "idle") { stage in
        let victims = [50, 250, 1000].flatMap { stage.addVictims(4, threshold: .milliseconds($0)) }
        usleep(UInt32(stage.seconds * 1e6))
        stage.truth.countHealthy(victims.count)
    },
    Part(name: "spinning", verdicts: [.saturated]) { stage in
        for victim in stage.addVictims(2, threshold: .milliseconds(50)) {
            victim.spin(forSeconds: stage.seconds, countingIn: stage.truth)
        }
        usleep(UInt32(stage.seconds * 1e6 + 100_000))
    },
    Part(name: "hogs", verdicts: [.starved]) { stage in
        let hogs = (0..<4 * sysconf(CInt(_SC_NPROCESSORS_ONLN))).map { _ in Helper("hog") }
        stage.addVictims(3, threshold: .milliseconds(50))
        stage.addVictims(3, threshold: .milliseconds(250))
        stage.drive(healthy)
        hogs.forEach { $0.end() }
    },
    Part(name: "hogs-stalls", verdicts: [.starved]) { stage in
        let hogs = (0..<4 * sysconf(CInt(_SC_NPROCESSORS_ONLN))).map { _ in Helper("hog") }
        stage.addVictims(4, threshold: .milliseconds(50))
        stage.addVictims(4, threshold: .milliseconds(250))
        stage.drive(Diet(stalls: 2...6))
        hogs.forEach { $0.end() }
    },
    Part(name: "hogs-stacks", isExtra: true, verdicts: [.starved]) { stage in
        let hogs = (0..<9).map { _ in Helper("hog") }
        stage.addVictims(4, threshold: .milliseconds(50))
        stage.drive(
            Diet(stalls: 1.2...2.4, healthyItems: 1, computingStalls: 0.5, pause: 0.5...4))
        hogs.forEach { $0.end() }
    },
    Part(name: "sigstop", verdicts: [.stopped]) { $0.playStops(healthy) },
    Part(name: "sigstop-stalls", verdicts: [.stopped]) { $0.playStops(Diet(stalls: 2...8)) },
    Part(name: "debugger-all", verdicts: [.stopped, .debugger]) { stage in
        stage.addVictims(2, threshold: .milliseconds(50))
        stage.addVictims(2, threshold: .milliseconds(250))
        stage.drive(healthy) {
            let tracer = Helper(
                "tracer-all", getpid(), Int(stage.seconds * 1000), readsOutput: true)
            if !stage.noteStops(by: tracer) {
                stage.cannotPlay("ptrace is not allowed here")
            }
        }
    },
    Part(name: "breakpoint", verdicts: [.debugger]) { stage in
        let victims = stage.addVictims(2, threshold: .milliseconds(250))
        stage.drive(healthy) {
            let thread = Int(victims[0].loop.thread.rawValue)
            if !Helper("tracer-one", thread, Int(stage.seconds * 1000)).waitForEnd() {
                stage.cannotPlay("ptrace is not allowed here")
            }
        }
    },
    Part(name: "freeze", verdicts: [.stopped]) { stage in
        stage.addVictims(2, threshold: .milliseconds(50))
        stage.addVictims(2, threshold: .milliseconds(250))
        guard let group = ControlGroup(freezing: "stall-truth-\(getpid())") else {
            return stage.cannotPlay("no control group can be frozen here")
        }
        stage.drive(healthy) {
            stage.noteStops(
                by: Helper(
                    "freezer", getpid(), Int(stage.seconds * 1000), group.freezeFile,
                    readsOutput: true))
        }
        group.remove()
    },
    Part(name: "quota", verdicts: [.throttled]) { stage in
        guard let group = ControlGroup(limitingTo: 0.15, "stall-truth-\(getpid())") else {
            return stage.cannotPlay("no control group has a CPU quota here")
        }
        stage.addVictims(1, threshold: .milliseconds(50))
        stage.addVictims(1, threshold: .milliseconds(250))
        stage.drive(Diet(stalls: nil, healthyShare: 0.25, computing: 0.5, pause: 0.1...2))
        group.remove()
    },
    Part(name: "clock") { stage in
        stage.addVictims(4, threshold: .milliseconds(50))
        stage.addVictims(4, threshold: .milliseconds(250))
        stage.drive(Diet(stalls: 1...3)) {
            let end = monotonic() + UInt64(stage.seconds * 1e9)
            while monotonic() < end {
                mishap_shift_wall_clock(Int64.random(in: -24...24) * 3_600_000_000_000)
                usleep(7_000)
            }
            mishap_shift_wall_clock(0)
        }
    },
    Part(name: "fork") { stage in
        let victims = stage.addVictims(4, threshold: .milliseconds(50))
        stage.drive(Diet(stalls: 1...3)) {
            let end = monotonic() + UInt64(stage.seconds * 1e9)
            while monotonic() < end {
                // On a loaded machine the child takes long enough for a stall.
                victims.randomElement()!.noteOnLoop(.block, isStall: false) { _ in
                    waitpid(mishap_fork(0), nil, 0)
                }
                victims.randomElement()!.noteOnLoop(.timer, isStall: false) { _ in
                    _ = mishap_fork(300)
                }
                usleep(100_000)
            }
            while waitpid(-1, nil, 0) > 0 {}
        }
    },
    Part(name: "pool") { stage in
        let pool = VictimPool(threshold: .milliseconds(250), truth: stage.truth)
        stage.monitor.watchCooperativePool(threshold: .milliseconds(250))
        usleep(300_000)
        pool.drive(until: monotonic() + UInt64(stage.seconds * 1e9))
        usleep(300_000)
    },
    Part(name: "queues-stops", verdicts: [.stopped, .starved]) { stage in
        let hogs = (0..<4 * sysconf(CInt(_SC_NPROCESSORS_ONLN))).map { _ in Helper("hog") }
        stage.driveQueues(4, threshold: .milliseconds(100))
        hogs.forEach { $0.end() }
    },
    Part(name: "ends", problems: { $0.playEnds() }) { _ in },
    Part(name: "churn") { stage in
        let deadline = monotonic() + UInt64(stage.seconds * 1e9)
        DispatchQueue.concurrentPerform(iterations: 8) { column in
            var round = 0
            while monotonic() < deadline {
                // The last reference goes at the end of the round, and the thread with it.
                let thread = try! LoopThread(name: "short-lived")
                let victim = VictimLoop(
                    name: "churn-\(column)-\(round)", threshold: .milliseconds(50),
                    loop: thread.loop,
                    truth: stage.truth)
                stage.monitor.watch(victim.loop, as: victim.name, threshold: victim.threshold)
                victim.runOnLoop(.block) {}
                if round.isMultiple(of: 4) {
                    victim.item(lasting: .milliseconds(70), isStall: true, computes: false)
                } else {
                    victim.item(lasting: .milliseconds(5), isStall: false, computes: false)
                    stage.truth.countHealthy(1)
                }
                round += 1
            }
        }
    },
]
