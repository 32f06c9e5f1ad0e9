// A watched loop of a simulated machine: its thread, what it publishes, and what the watchdog learns of it.

internal import CLinux
internal import StallDetection
internal import StallModel
internal import TestSupport

/// A loop that waits, serves callouts, and notes what each was. Instants and lengths are nanoseconds.
final class SimulatedLoop: @unchecked Sendable {
    // Unchecked because one thread runs everything.
    private enum State { case sleeping, ready, running }
    private enum Step {
        case sleep(UInt64)
        case compute(UInt64)
        /// Reads the clock, and publishes that instant with the next step.
        case readClock
        case publish(LoopStatus, isIteration: Bool)
    }

    unowned let machine: SimulatedMachine
    let threshold: UInt64
    private let pointer: UnsafeMutablePointer<stall_beacon>
    private(set) var watched: WatchedLoop! = nil
    private var judge = Judge()

    private var state = State.sleeping
    /// Since when time is to be added to the account, and when the state ends.
    private var since: UInt64
    private(set) var until: UInt64
    private var steps: ArraySlice<Step> = []
    /// The rest of a computation.
    private var left: UInt64 = 0
    // The kernel's counters. It adds a wait for a CPU when it is over.
    private var used: UInt64 = 0
    private var delayed: UInt64 = 0
    private var readySince: UInt64 = 0
    private var waits = Stretches()
    /// The thread's own time, and time in which the machine was paused.
    private var account = Account()
    private var clock: (reading: UInt64, account: Account)
    /// The present span: since when it lasts, and the account at that time.
    private var span: (began: UInt64, account: Account, readBefore: UInt64)?
    /// When the watchdog last read the thread's counters, the time before, and first in this span.
    private var reading: (last: UInt64, before: UInt64) = (0, 0)
    private var firstReading: UInt64?
    /// When it was read first behind the last span.
    private var readingBehind: UInt64?
    /// The last span.
    private var ended: Judge.Span?

    struct Account {
        var own: UInt64 = 0
        var paused: UInt64 = 0
    }

    init(on machine: SimulatedMachine, threshold: Duration) {
        self.machine = machine
        guard let pointer = stall_beacon_create() else { fatalError("no memory") }
        self.pointer = pointer
        self.threshold = UInt64(threshold.nanoseconds)
        (since, until) = (machine.now, machine.now + 1)
        clock = (machine.now, account)
        watched = WatchedLoop(
            name: "simulated", beacon: LoopBeacon(pointer),
            policies: ModePolicies(DetectionPolicy(threshold: threshold)), responder: self)
    }

    deinit { stall_beacon_release(pointer) }

    // MARK: The thread

    /// The state has ended.
    func moveOn() {
        settle(at: until)
        switch state {
        case .sleeping: becomeReady(at: until)
        case .ready:
            delayed += until - readySince
            waits.end(at: until)
            run()
        case .running:
            guard left == 0 else { return becomeReady(at: until) }
            run()
        }
    }

    /// - Parameter began: Since when it waits for a CPU, if that is earlier.
    private func becomeReady(at instant: UInt64, since began: UInt64? = nil) {
        (state, since, readySince) = (.ready, instant, began ?? instant)
        waits.begin(at: readySince)
        until = instant + machine.delay()
    }

    /// The thread has a CPU: it continues until it computes or sleeps.
    private func run() {
        let now = until
        while left == 0 {
            guard let step = steps.popFirst() else {
                plan()
                continue
            }
            switch step {
            case .sleep(let length):
                (state, since, until) = (.sleeping, now, now + length)
                return
            case .compute(let length): left = length
            case .readClock: clock = (now, account)
            case .publish(let status, let isIteration): publish(status, isIteration)
            }
        }
        let slice = min(left, UInt64.random(in: machine.weather.slice, using: &machine.random))
        left -= slice
        (state, since, until) = (.running, now, now + slice)
    }

    /// Adds the time that has passed to the accounts.
    private func settle(at instant: UInt64) {
        let passed = instant - since
        since = instant
        if state == .running { used += passed }
        if state != .ready { account.own += passed }
    }

    /// All threads are kept from running from now on.
    func suspend(at now: UInt64) {
        settle(at: min(now, until))
    }

    /// They have been for `length`, until now.
    func resume(after length: UInt64, _ kind: Interruption.Kind) {
        let now = machine.now
        defer { since = max(since, now) }
        switch (kind, state) {
        case (.stop, .running):
            left += until - since
            becomeReady(at: now)
        case (.stop, .ready):
            delayed += since - readySince
            waits.end(at: since)
            becomeReady(at: now)
        case (.stop, .sleeping):
            if until <= now { becomeReady(at: now) }
        case (.throttle, .running):
            left += until - since
            becomeReady(at: now, since: since)
        case (.throttle, .ready): until = max(until, now + machine.delay())
        case (.throttle, .sleeping):
            account.own += min(now, until) - since
            guard until <= now else { return }
            becomeReady(at: now, since: until)
        case (.pause, .running):
            account.paused += length
            until += length
        case (.pause, .ready): until += length
        case (.pause, .sleeping):
            account.paused += length
            if until <= now { becomeReady(at: now) }
        }
    }

    // MARK: What it does

    private func publish(_ status: LoopStatus, _ isIteration: Bool) {
        // What follows a span shortly is needed to judge it.
        judgeEnded()
        if let span {
            ended = Judge.Span(
                began: span.began, ended: clock.reading, left: until, threshold: threshold,
                own: clock.account.own - span.account.own,
                paused: clock.account.paused - span.account.paused,
                unread: span.readBefore..<max(span.readBefore, firstReading ?? .max))
        }
        span = status == .busy ? (clock.reading, clock.account, reading.last) : nil
        (firstReading, readingBehind) = (nil, nil)
        if isIteration {
            stall_beacon_publish_iteration(pointer, clock.reading)
        } else if status == .busy {
            stall_beacon_publish_awake(pointer, clock.reading)
        } else {
            stall_beacon_publish(pointer, status.rawValue, clock.reading)
        }
    }

    /// What was found of the loop, which ends here.
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
            in: before + threshold / 2..<span.ended + threshold / 4)
        let late = machine.waits.time(in: before..<span.ended)
        let unread = span.unread.clamped(to: 0..<span.ended + late)
        // What is read of a thread is of some instants, tens of microseconds apart.
        span.unknown =
            100_000 + late + waits.time(endingIn: unread)
            + waits.time(endingIn: span.ended..<max(span.ended, readingBehind ?? machine.now))
        judge.note(span)
    }

    /// A wait, and callouts until the next one.
    private func plan() {
        let pause = machine.random.chance(0.02) ? 5_000_000_000 : threshold / 2
        var steps: [Step] = [
            .sleep(machine.random.exponential(pause)), .readClock,
            .publish(.busy, isIteration: false),
        ]
        for number in 0..<Int.random(in: 1...3, using: &machine.random) {
            if number > 0 { steps += [.readClock, .publish(.busy, isIteration: true)] }
            addWork(to: &steps)
        }
        steps += [.readClock, .publish(.waiting, isIteration: false)]
        // A thread may lose its CPU between reading the clock and publishing what it read.
        if machine.random.chance(0.05) { steps.insert(.sleep(0), at: steps.endIndex - 1) }
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
            steps.append(machine.random.chance(0.5) ? .compute(length) : .sleep(length))
        }
        steps.append(machine.random.chance(0.5) ? .compute(rest) : .sleep(rest))
    }

    // MARK: The kernel's evidence

    private var cpuTime: Duration {
        .nanoseconds(Int64(used + (state == .running ? machine.now - since : 0)))
    }
}

extension SimulatedLoop: StallResponder {
    func evidence(isSuspect: Bool) -> ThreadEvidence {
        var evidence = ThreadEvidence()
        if isSuspect {
            machine.spend(1000)
            let before = cpuTime
            machine.spend(6000)
            let sleeps = state == .sleeping
            machine.spend(1000)
            evidence.cpuTime = cpuTime
            evidence.state = UInt8(ascii: sleeps ? "S" : "R")
            evidence.waitsForCPU = !sleeps && before == cpuTime
        } else {
            machine.spend(1000)
            evidence.cpuTime = cpuTime
        }
        machine.spend(5000)
        evidence.runDelay = .nanoseconds(Int64(delayed))
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
        if state == .ready {
            machine.wait(atMost: UInt64(limit.nanoseconds)) { state != .ready }
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
