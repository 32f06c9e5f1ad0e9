// A machine whose time the test owns: the threads of some loops, a watchdog, and all that can keep them from a CPU. One
// real thread runs everything. Whatever the watchdog asks of its kernel takes time, and meanwhile the others move on.

internal import CLinux
internal import StallDetection
internal import StallModel
internal import TestSupport

/// A simulated machine. Instants and lengths are nanoseconds.
package final class SimulatedMachine: @unchecked Sendable {
    // Unchecked because one thread runs everything.
    private(set) var now: UInt64 = 1_000_000_000
    /// When the simulation ends.
    let end: UInt64
    var random: SeededGenerator
    let weather: Weather
    private var threads: [SimulatedThread] = []
    /// What keeps all threads from running next.
    private var interruption: Interruption
    private(set) var throttleCount = 0
    private(set) var suspensions = Stretches()
    /// The watchdog's own counters.
    private var used: UInt64 = 0
    private var delayed: UInt64 = 0
    private(set) var waits = Stretches()
    /// The suspension probe has run since it was last read, and does so until then.
    private var wasProbeWoken = true
    private var probeIsAwakeUntil: UInt64 = 0
    private(set) var lastProbeReading: UInt64 = 0
    private var stop: () -> Void = {}

    package init(seed: UInt64, weather: Weather, lasting length: Duration) {
        random = SeededGenerator(seed: seed)
        self.weather = weather
        end = now + UInt64(length.nanoseconds)
        interruption = weather.interruption(after: now, &random)
    }

    /// Those of the loops of simulations.
    package static let thresholds: [Duration] = [
        .milliseconds(50), .milliseconds(100), .milliseconds(250), .seconds(1),
    ]

    /// Runs a watchdog of loops with these thresholds until the end.
    ///
    /// - Parameter isSabotaged: Some reports are left out, as a judge must notice.
    /// - Returns: What it made of them.
    package func run(thresholds: [Duration], isSabotaged: Bool = false) -> Findings {
        #if DEBUG || STALL_SIMULATION
        let loops = thresholds.map { SimulatedLoop(on: self, threshold: $0) }
        threads = loops.map(\.thread)
        Watchdog.run(loops.map(\.watched)) { stop in
            self.stop = stop
            return SimulatedKernel(machine: self)
        }
        (stop, threads) = ({}, [])
        return loops.reduce(into: Findings()) { $0 += $1.findings(isSabotaged: isSabotaged) }
        #else
        fatalError("simulations of release builds need -DSTALL_SIMULATION")
        #endif
    }

    /// How long a thread that has just become runnable waits for a CPU.
    func delay() -> UInt64 { weather.delay(&random) }

    // MARK: The watchdog

    /// The watchdog runs for this long, and may lose its CPU behind that.
    func spend(_ length: UInt64) {
        var left = length
        while interruption.from < now + left {
            let passed = interruption.from > now ? interruption.from - now : 0
            pass(until: now + passed)
            left -= passed
            used += passed
            let past = interruption
            interrupt()
            if past.kind == .throttle { delayed += past.to - past.from }
            if past.kind != .pause { waitForCPU(delay()) }
        }
        pass(until: now + left)
        used += left
        if random.chance(weather.preemption) { waitForCPU(delay()) }
    }

    private func waitForCPU(_ length: UInt64) {
        waits.begin(at: now)
        defer { waits.end(at: now) }
        var until = now + length
        while interruption.from < until {
            let past = interruption
            let passed = past.from > now ? past.from - now : 0
            pass(until: now + passed)
            delayed += passed
            interrupt()
            if past.kind != .stop { delayed += past.to - past.from }
            until = past.kind == .pause ? until + (past.to - past.from) : now + delay()
        }
        delayed += until - now
        pass(until: until)
    }

    /// The watchdog sleeps without using a CPU until something is true, or for this long.
    func wait(atMost length: UInt64, until isDone: () -> Bool) {
        let due = now + length
        while !isDone(), now < due { passToNext(before: due) }
        waitForCPU(delay())
    }

    fileprivate func sleep(on wakeup: UnsafeMutablePointer<stall_wakeup>, until due: UInt64?) {
        let due = min(due ?? .max, end)
        while wakeup.pointee.sleep != UInt32(STALL_WATCHDOG_AWAKE), now < due {
            let past = passToNext(before: due)
            if past?.kind == .throttle, now > due { delayed += now - due }
        }
        wakeup.pointee.sleep = UInt32(STALL_WATCHDOG_AWAKE)
        if now >= end { stop() }
        waitForCPU(delay())
    }

    fileprivate var ownCounters: OwnCounters {
        OwnCounters(
            cpuTime: .nanoseconds(Int64(used)), runDelay: .nanoseconds(Int64(delayed)))
    }

    fileprivate func takeProbeReading() -> Bool {
        defer { (wasProbeWoken, lastProbeReading) = (false, now) }
        return wasProbeWoken || now < probeIsAwakeUntil
    }

    // MARK: Time

    /// The thread whose state ends first.
    private var soonest: SimulatedThread {
        var soonest = threads[0]
        for thread in threads.dropFirst() where thread.until < soonest.until { soonest = thread }
        return soonest
    }

    /// Until something happens, at most until an instant.
    ///
    /// - Returns: The interruption that has happened.
    @discardableResult
    private func passToNext(before limit: UInt64) -> Interruption? {
        let next = soonest
        let past = interruption
        guard past.from <= min(next.until, limit) else {
            pass(until: max(now, min(next.until, limit)))
            return nil
        }
        pass(until: max(now, past.from))
        interrupt()
        return past
    }

    /// The loops' threads do what they do until an instant, behind no interruption.
    private func pass(until end: UInt64) {
        while case let next = soonest, next.until <= end {
            now = max(now, next.until)
            next.moveOn()
        }
        now = end
    }

    /// No thread runs for a while. It begins now, or has begun as late as its predecessor's end.
    private func interrupt() {
        let past = interruption
        for thread in threads { thread.suspend(at: now) }
        let length = past.to - past.from
        suspensions.begin(at: now)
        now += length
        suspensions.end(at: now)
        if past.kind == .throttle { throttleCount += 1 }
        if past.kind == .stop {
            wasProbeWoken = true
            probeIsAwakeUntil = now + delay()
        }
        for thread in threads { thread.resume(after: length, past.kind) }
        interruption = weather.interruption(after: now, &random)
    }
}

/// The simulated machine as the watchdog's kernel.
struct SimulatedKernel: WatchdogKernel {
    let machine: SimulatedMachine

    func now() -> MonotonicInstant {
        machine.spend(40)
        return MonotonicInstant(nanoseconds: machine.now)
    }

    func ownCounters() -> OwnCounters {
        machine.spend(5000)
        return machine.ownCounters
    }

    func wasProcessInterrupted() -> Bool {
        machine.spend(6000)
        defer { machine.spend(6000) }
        return machine.takeProbeReading()
    }

    func isCrashing(since progress: MonotonicInstant) -> Bool { false }
    var isExiting: Bool { false }

    func sleep(
        on wakeup: UnsafeMutablePointer<stall_wakeup>, _ kind: UInt32, until due: MonotonicInstant?
    ) {
        machine.sleep(on: wakeup, until: due?.nanoseconds)
    }
}
