// What a simulated machine does to its threads.

internal import Glibc
internal import TestSupport

/// What keeps every thread from running for a while.
struct Interruption: Sendable {
    enum Kind: CaseIterable, Sendable {
        /// SIGSTOP, a freezer or a debugger: the process is stopped, which the suspension probe shows.
        case stop
        /// The control group has used up its CPU quota: threads that would run wait for a CPU; others sleep on.
        case throttle
        /// The virtual machine is paused, which its kernel does not count.
        case pause
    }
    var kind: Kind
    var from, to: UInt64
}

/// How long threads wait for a CPU, and what interrupts all of them.
package struct Weather: Sendable {
    package var name: String
    /// Waits for a CPU are mostly this long, in nanoseconds.
    var usualDelay: ClosedRange<UInt64> = 4_000...60_000
    /// This share of them lasts longer, on average this long.
    var longShare = 0.01
    var longDelay: UInt64 = 1_000_000
    /// How long a thread computes before another one gets its CPU.
    var slice: ClosedRange<UInt64> = 3_000_000...30_000_000
    /// How probable it is that the watchdog loses its CPU behind something that it asks of the kernel.
    var preemption = 0.000_5
    /// Interruptions, on average so far apart.
    var interruptions: [Interruption.Kind] = []
    var interval: UInt64 = 0
    var lengths: ClosedRange<UInt64> = 0...0

    static let calm = Weather(name: "calm")
    static let busy = Weather(
        name: "busy", longShare: 0.3, longDelay: 3_000_000, slice: 1_000_000...6_000_000,
        preemption: 0.01)
    static let starved = Weather(
        name: "starved", longShare: 0.5, longDelay: 40_000_000, slice: 2_000_000...4_000_000,
        preemption: 0.02)
    static let stops = Weather(
        name: "stops", interruptions: [.stop], interval: 900_000_000,
        lengths: 1_000_000...2_000_000_000)
    static let quota = Weather(
        name: "quota", interruptions: [.throttle], interval: 30_000_000,
        lengths: 10_000_000...90_000_000)
    static let pauses = Weather(
        name: "pauses", interruptions: [.pause], interval: 2_000_000_000,
        lengths: 1_000_000...3_000_000_000)
    static let everything = Weather(
        name: "everything", longShare: 0.2, longDelay: 10_000_000, slice: 2_000_000...10_000_000,
        preemption: 0.01, interruptions: Interruption.Kind.allCases, interval: 700_000_000,
        lengths: 1_000_000...500_000_000)
    package static let all = [calm, busy, starved, stops, quota, pauses, everything]

    func delay(_ random: inout SeededGenerator) -> UInt64 {
        random.chance(longShare)
            ? random.exponential(longDelay) : UInt64.random(in: usualDelay, using: &random)
    }

    func interruption(after instant: UInt64, _ random: inout SeededGenerator) -> Interruption {
        guard let kind = interruptions.randomElement(using: &random) else {
            return Interruption(kind: .stop, from: .max, to: .max)
        }
        let from = instant + random.exponential(interval)
        return Interruption(
            kind: kind, from: from, to: from + UInt64.random(in: lengths, using: &random))
    }
}

extension SeededGenerator {
    mutating func chance(_ probability: Double) -> Bool {
        Double.random(in: 0..<1, using: &self) < probability
    }

    /// Exponentially distributed, at most ten times the mean.
    mutating func exponential(_ mean: UInt64) -> UInt64 {
        let share = min(10, -log(1 - Double.random(in: 0..<1, using: &self)))
        return UInt64(share * Double(mean))
    }
}
