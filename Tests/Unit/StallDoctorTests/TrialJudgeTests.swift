import StallModel
import TestSupport
import Testing

@testable import StallDoctor

/// Goal: `doctor` says of each promise what the reports show, and nothing else.
/// Method: made-up reports of planted stalls, all right but for one thing.
@Suite struct TrialJudgeTests {
    static let plants: [Plant] = [
        .sleep, .cpu, .lock, .ipc, .network, .loop, .task, .queue, .waits, .killed,
    ]
    static let stalls = (plants + [.stopped]).filter { $0 != .killed }
        .map { PlantedStall($0, duration: .milliseconds(150)) }

    static func frames(_ function: String) -> [Frame] {
        var frame = Frame(CodeLocation(CodeAddress(1, .returnAddress), in: nil))
        frame.function = function
        return [frame]
    }

    static func report(of plant: Plant) -> StallReport {
        var generator = ReportGenerator(
            seed: 1, app: plant == .waits ? "stallctl" : TrialJudge.app)
        var report = generator.report(state: plant == .killed ? .hang : .ended)
        report.loop = plant == .waits ? "main" : plant.target
        report.duration = .milliseconds(151)
        report.verdict = .stalled
        report.samples = [
            Sample(
                offset: .zero, weight: .zero, thread: ThreadID(rawValue: 1), method: nil,
                frames: frames(plant.function))
        ]
        report.cause = StallCause(plant.cause, confidence: 1)
        if plant == .lock {
            let holder = ThreadID(rawValue: 2)
            report.cause?.holder = LockHolder(thread: holder, name: nil, isDeadlock: false)
            report.threads = [
                ThreadSnapshot(
                    thread: holder, name: nil, role: .holder, method: nil,
                    frames: frames(Plant.holder))
            ]
        }
        return report
    }

    static func verdicts(
        _ stalls: [PlantedStall] = stalls, interruptions: Int? = 0, lateness: Duration = .zero,
        _ change: (inout [Plant: [StallReport]]) -> Void
    ) -> [Guarantee: Verdict] {
        var reports = Dictionary(uniqueKeysWithValues: plants.map { ($0, [report(of: $0)]) })
        change(&reports)
        let all = plants.flatMap { reports[$0] ?? [] } + (reports[.stopped] ?? [])
        let judge = TrialJudge(stalls, all, interruptions: interruptions, lateness: lateness)
        let findings = judge.findings.filter { $0.verdict != .works }
        return Dictionary(uniqueKeysWithValues: findings.map { ($0.guarantee, $0.verdict) })
    }

    @Test func `all is well`() {
        #expect(Self.verdicts { _ in } == [:])
    }

    @Test func `a missing report is a broken guarantee`() {
        #expect(Self.verdicts { $0[.loop] = [] } == [.eventLoops: .fails])
        #expect(Self.verdicts { $0[.sleep] = [] } == [.blocked: .limited, .causes: .limited])
        #expect(Self.verdicts { $0[.killed] = [] } == [.kills: .fails, .stops: .untried])
        #expect(Self.verdicts { $0[.waits] = [] } == [.programs: .fails])
    }

    @Test func `a stack has the planted function`() {
        #expect(Self.verdicts { $0[.task]![0].samples = [] } == [.tasks: .fails])
        #expect(
            Self.verdicts { $0[.cpu]![0].samples[0].frames = Self.frames("main") }
                == [.running: .fails])
    }

    @Test func `a wait that a signal ended is a broken guarantee`() {
        #expect(Self.verdicts(interruptions: 1) { _ in } == [.undisturbed: .fails])
        #expect(Self.verdicts(interruptions: nil) { _ in } == [.undisturbed: .untried])
        #expect(TrialFact.interrupted.number(in: TrialFact.interrupted.line(3)) == 3)
        #expect(TrialFact.interrupted.number(in: "sleep 3") == nil)
    }

    @Test func `where threads run late, only what was seen counts`() {
        let late = Duration.milliseconds(40)
        #expect(Self.verdicts(lateness: late) { _ in } == [:])
        #expect(Self.verdicts(lateness: late) { $0[.loop] = [] } == [.eventLoops: .untried])
        #expect(
            Self.verdicts(interruptions: 1, lateness: late) { $0[.killed] = [] }
                == [.undisturbed: .fails, .kills: .untried, .stops: .untried])
        let judge = TrialJudge(Self.stalls, [], interruptions: 0, lateness: late)
        #expect(
            judge.findings.first { $0.guarantee == .queues }?.detail
                == "the CPUs are overloaded: a thread ran 40 ms late, and there was no report of \(Plant.queue.function)"
        )
    }

    @Test func `lines of a log that differ in their time say the same`() {
        #expect(StallTrial.saysSame("10:00:01 warning: refused", "10:00:02 warning: refused"))
        #expect(!StallTrial.saysSame("10:00:01 warning: refused", "10:00:01 warning: lost"))
        #expect(!StallTrial.saysSame("one", "other"))
    }

    @Test func `one stall is one report`() {
        #expect(Self.verdicts { $0[.queue]! += $0[.queue]! } == [.queues: .fails])
    }

    @Test func `cause, holder and duration are the planted ones`() {
        #expect(Self.verdicts { $0[.ipc]![0].cause = nil } == [.causes: .limited])
        #expect(Self.verdicts { $0[.lock]![0].cause?.holder = nil } == [.holders: .fails])
        #expect(Self.verdicts { $0[.lock]![0].threads = [] } == [.holders: .limited])
        #expect(
            Self.verdicts { $0[.sleep]![0].duration = .milliseconds(180) }
                == [.durations: .limited])
    }

    @Test func `the time of a stop is no stall, under another verdict it is`() {
        #expect(
            Self.verdicts { $0[.stopped] = [Self.report(of: .stopped)] } == [.stops: .fails])
        let verdicts = Self.verdicts {
            $0[.stopped] = [Self.report(of: .stopped)]
            $0[.stopped]![0].verdict = .stopped
        }
        #expect(verdicts == [:])
    }

    @Test func `a process that was killed left a hang`() {
        #expect(
            Self.verdicts { $0[.killed]![0].outcome = StallOutcome(.open) } == [.kills: .fails])
    }

    @Test func `what was not planted was not tried`() {
        var stalls = Self.stalls.filter { ![.network, .queue].contains($0.plant) }
        stalls.append(PlantedStall(.network, obstacle: "bind: no"))
        let verdicts = Self.verdicts(stalls) {
            $0[.network] = []
            $0[.queue] = []
        }
        #expect(verdicts == [.queues: .untried])
        let judge = TrialJudge(
            stalls, Self.plants.map(Self.report), interruptions: 0, lateness: .zero)
        #expect(
            judge.findings.first { $0.guarantee == .causes }?.detail
                == "network was not tried: bind: no")
    }

    @Test func `a report of something else is a false alarm`() {
        let verdicts = Self.verdicts {
            var other = Self.report(of: .sleep)
            other.loop = "main"
            $0[.sleep]!.append(other)
        }
        #expect(verdicts == [.falseAlarms: .fails])
    }

    @Test(arguments: stalls + [PlantedStall(.network, obstacle: "bind: no")])
    func `a line of a planting process is read as it was written`(stall: PlantedStall) {
        #expect(PlantedStall(line: stall.line) == stall)
    }

    @Test(arguments: ["", "sleep", "sleep x", "sleep -1", "nothing 3", "stored"])
    func `other lines are none`(line: String) {
        #expect(PlantedStall(line: line) == nil)
    }

    @Test func `of two trials the better one counts`() {
        let (good, bad) = (Finding(.tasks, .works), Finding(.tasks, .fails, "no report"))
        #expect(good.better(or: bad) == good)
        #expect(bad.better(or: good) == good)
        #expect(Finding(.tasks, .untried).better(or: bad) == bad)
    }
}
