// A watched loop of a simulated machine: its thread, what it publishes, and what the watchdog learns of it.

internal import CLinux
internal import StallDetection
internal import StallModel
internal import TestSupport

/// A loop that waits, serves callouts, and notes what each was. Instants and lengths are nanoseconds.
final class SimulatedLoop: @unchecked Sendable {
    // Unchecked because one thread runs everything.
    private enum Step {
        case act(SimulatedThread.Act)
        /// Reads the clock, and publishes that instant with the next step.
        case readClock
        case publish(LoopStatus, isIteration: Bool)
    }

    private unowned let machine: SimulatedMachine
    private let threshold: UInt64
    private let pointer: UnsafeMutablePointer<stall_beacon>
    private(set) var thread: SimulatedThread! = nil
    private(set) var watched: WatchedLoop! = nil
    private var judge = Judge()
    private var steps: ArraySlice<Step> = []
    private var clock: (reading: UInt64, account: SimulatedThread.Account)
    /// The present span: since when it lasts, the account at that time, and when the thread and the suspension probe had
    /// been read last.
    private var span:
        (began: UInt64, account: SimulatedThread.Account, readBefore: UInt64, probedBefore: UInt64)?
    /// When the watchdog last read the thread's counters, the time before, and first in this span.
    private var reading: (last: UInt64, before: UInt64) = (0, 0)
    private var firstReading: UInt64?
    /// The last span, and when the thread was read first behind it.
    private var ended: Judge.Span?
    private var readingBehind: UInt64?

    init(on machine: SimulatedMachine, threshold: Duration) {
        self.machine = machine
        guard let pointer = stall_beacon_create() else { fatalError("no memory") }
        self.pointer = pointer
        self.threshold = UInt64(threshold.nanoseconds)
        clock = (machine.now, SimulatedThread.Account())
        thread = SimulatedThread(on: machine) { [unowned self] in nextAct(at: $0) }
        watched = WatchedLoop(
            name: "simulated", beacon: LoopBeacon(pointer),
            policies: ModePolicies(DetectionPolicy(threshold: threshold)), responder: self)
    }

    deinit { stall_beacon_release(pointer) }

    // MARK: The loop

    private func nextAct(at now: UInt64) -> SimulatedThread.Act {
        while true {
            switch steps.popFirst() {
            case .act(let act): return act
            case .readClock: clock = (now, thread.account)
            case .publish(let status, let isIteration): publish(status, isIteration, at: now)
            case nil: plan()
            }
        }
    }

    private func publish(_ status: LoopStatus, _ isIteration: Bool, at now: UInt64) {
        // A span is judged with the waits that follow it.
        judgeEnded()
        if let span {
            ended = Judge.Span(
                began: span.began, ended: clock.reading, left: now, threshold: threshold,
                own: clock.account.own - span.account.own,
                paused: clock.account.paused - span.account.paused,
                unread: span.readBefore..<max(span.readBefore, firstReading ?? .max),
                probedBefore: span.probedBefore)
        }
        span =
            status == .busy
            ? (clock.reading, clock.account, reading.last, machine.lastProbeReading) : nil
        (firstReading, readingBehind) = (nil, nil)
        if isIteration {
            stall_beacon_publish_iteration(pointer, clock.reading)
        } else if status == .busy {
            stall_beacon_publish_awake(pointer, clock.reading)
        } else {
            stall_beacon_publish(pointer, status.rawValue, clock.reading)
        }
    }

    /// Judges the loop, which ends here.
    func findings(isSabotaged: Bool) -> Findings {
        judgeEnded()
        // It refers to the loop.
        watched = nil
        return judge.findings(until: machine.end, isSabotaged: isSabotaged)
    }

    private func judgeEnded() {
        guard var span = ended.take() else { return }
        let before = span.began - min(span.began, threshold)
        span.suspensions = machine.suspensions.count(
            in: min(span.probedBefore, before + threshold / 2)..<span.ended + threshold / 4)
        let late = machine.waits.time(in: before..<span.ended)
        let unread = span.unread.clamped(to: 0..<span.ended + late)
        // The readings of a thread are of some instants, tens of microseconds apart.
        span.unknown =
            200_000 + late + thread.waits.time(endingIn: unread)
            + thread.waits.time(
                endingIn: span.ended..<max(span.ended, readingBehind ?? machine.now))
        judge.note(span)
    }

    /// A wait, and callouts until the next one.
    private func plan() {
        let pause = machine.random.chance(0.02) ? 5_000_000_000 : threshold / 2
        var steps: [Step] = [
            .act(.sleep(machine.random.exponential(pause))), .readClock,
            .publish(.busy, isIteration: false),
        ]
        for number in 0..<Int.random(in: 1...3, using: &machine.random) {
            if number > 0 { steps += [.readClock, .publish(.busy, isIteration: true)] }
            addWork(to: &steps)
        }
        steps += [.readClock, .publish(.waiting, isIteration: false)]
        // A thread may lose its CPU between reading the clock and publishing what it read.
        if machine.random.chance(0.05) { steps.insert(.act(.sleep(0)), at: steps.endIndex - 1) }
        self.steps = steps[...]
    }

    /// A callout: mostly short, sometimes long, rarely near the threshold.
    private func addWork(to steps: inout [Step]) {
        let share =
            switch Int.random(in: 0..<20, using: &machine.random) {
            case 0: Double.random(in: 0.9...1.1, using: &machine.random)
            case 1, 2: Double.random(in: 1.1...8, using: &machine.random)
            default: Double.random(in: 0...0.45, using: &machine.random)
            }
        var rest = UInt64(share * Double(threshold))
        for part in 0..<Int.random(in: 1...4, using: &machine.random) {
            let length = part == 3 ? rest : UInt64.random(in: 0...rest, using: &machine.random)
            rest -= length
            steps.append(.act(machine.random.chance(0.5) ? .compute(length) : .sleep(length)))
        }
        steps.append(.act(machine.random.chance(0.5) ? .compute(rest) : .sleep(rest)))
    }
}

extension SimulatedLoop: StallResponder {
    /// Reads whether the thread has ended.
    func correct(_ reading: LoopReading, at now: MonotonicInstant) -> Bool {
        machine.spend(8000)
        return true
    }

    func collectLateStack() -> Bool {
        machine.spend(1000)
        return false
    }

    func evidence(isSuspect: Bool) -> ThreadEvidence {
        var evidence = ThreadEvidence()
        machine.spend(1000)
        evidence.cpuTime = .nanoseconds(Int64(thread.cpuTime))
        if isSuspect {
            let before = thread.cpuTime
            machine.spend(6000)
            let sleeps = thread.state == .sleeping
            machine.spend(1000)
            evidence.cpuTime = .nanoseconds(Int64(thread.cpuTime))
            evidence.state = UInt8(ascii: sleeps ? "S" : "R")
            evidence.waitsForCPU = !sleeps && before == thread.cpuTime
        }
        machine.spend(5000)
        evidence.runDelay = .nanoseconds(Int64(thread.delayed))
        machine.spend(5000)
        evidence.throttleCount = machine.throttleCount
        reading = (machine.now, reading.last)
        firstReading = firstReading ?? machine.now
        readingBehind = readingBehind ?? machine.now
        return evidence
    }

    func takeSample(_ kind: IncidentKind, of reading: LoopReading, within limit: Duration) {
        machine.spend(20_000)
        // A thread that waits for a CPU answers when it has one.
        if thread.state == .ready {
            machine.wait(atMost: UInt64(limit.nanoseconds)) { thread.state != .ready }
        }
        machine.spend(50_000)
    }

    func stallChanged(_ incident: StallIncident) {
        machine.spend(10_000)
        judge.note(incident)
    }

    func measured(from first: LoopCounters, to last: LoopCounters) -> Bool {
        judge.note(LoopMeasure(from: first, to: last))
        // It was no poll.
        reading.last = reading.before
        return true
    }
}
