// A thread of a simulated machine, and the counters that the kernel keeps of it.

internal import TestSupport

/// A thread that computes and sleeps, and waits for a CPU before it does. Instants and lengths are nanoseconds.
final class SimulatedThread {
    enum State { case sleeping, ready, running }
    /// What a thread does that has a CPU and has computed all that it had to.
    enum Act {
        case compute(UInt64)
        case sleep(UInt64)
    }
    /// Time that the kernel does not count as such.
    struct Account {
        /// Time in which the thread computed or slept.
        var own: UInt64 = 0
        /// Time in which it would have, if the machine had not been paused.
        var paused: UInt64 = 0
    }

    private unowned let machine: SimulatedMachine
    private let nextAct: (_ now: UInt64) -> Act
    private(set) var state = State.sleeping
    /// When the state ends.
    private(set) var until: UInt64
    /// Since when time is to be added to the account.
    private var since: UInt64
    private var readySince: UInt64 = 0
    /// The rest of a computation.
    private var left: UInt64 = 0
    private var used: UInt64 = 0
    /// Waits for a CPU. The kernel adds one when it is over.
    private(set) var delayed: UInt64 = 0
    private(set) var waits = Stretches()
    private(set) var account = Account()

    /// A thread that wakes up at once.
    ///
    /// - Parameter nextAct: Decides what it does, at an instant at which it has a CPU.
    init(on machine: SimulatedMachine, _ nextAct: @escaping (_ now: UInt64) -> Act) {
        self.machine = machine
        self.nextAct = nextAct
        (since, until) = (machine.now, machine.now + 1)
    }

    var cpuTime: UInt64 { used + (state == .running ? machine.now - since : 0) }

    /// The state has ended.
    func moveOn() {
        settle(at: until)
        switch state {
        case .sleeping: becomeReady(at: until)
        case .ready:
            delayed += until - readySince
            waits.end(at: until)
            run(at: until)
        case .running:
            guard left == 0 else { return becomeReady(at: until) }
            run(at: until)
        }
    }

    /// - Parameter began: Since when it waits for a CPU, if that is earlier.
    private func becomeReady(at instant: UInt64, since began: UInt64? = nil) {
        (state, since, readySince) = (.ready, instant, began ?? instant)
        waits.begin(at: readySince)
        until = instant + machine.delay()
    }

    /// The thread has a CPU: it continues until it computes or sleeps.
    private func run(at now: UInt64) {
        while left == 0 {
            switch nextAct(now) {
            case .compute(let length): left = length
            case .sleep(let length):
                (state, since, until) = (.sleeping, now, now + length)
                return
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

    /// No thread runs from now on.
    func suspend(at now: UInt64) { settle(at: min(now, until)) }

    /// No thread has run for `length`, until now.
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
            if until <= now { becomeReady(at: now, since: until) }
        case (.pause, .running):
            account.paused += length
            until += length
        case (.pause, .ready): until += length
        case (.pause, .sleeping):
            account.paused += length
            if until <= now { becomeReady(at: now) }
        }
    }
}
