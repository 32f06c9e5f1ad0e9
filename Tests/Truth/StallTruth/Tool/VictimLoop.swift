// A watched loop that records what it did: each callout records its own begin and end, and what was planned.
//
//     driver thread: choose an item -> put it on the loop as some kind of callout -> wait for its end -> pause

import CLinux
import CMishaps
import Foundation
import StallAgent

/// One thing that a loop was made to do. Times are the victim's own.
struct Episode {
    var loop: String
    var threshold: Duration
    var isStall: Bool
    /// Wall clock and duration, in microseconds.
    var start: Int64
    var duration: Int64
    /// The same, on the monotonic clock.
    var began: UInt64
    /// The part of the duration in which its thread queued for a CPU, by the kernel's account.
    var queued: Int64
}

/// The ways in which a loop calls an app's code.
enum CalloutKind: CaseIterable {
    case block, timer, source, descriptor, observer, nestedRun, mainQueue
}

/// What was done to all victims of this process. The truth.
final class Truth: @unchecked Sendable {
    // Unchecked because `lock` guards all that changes.
    private let lock = NSLock()
    private var all: [Episode] = []
    private var healthyCount = 0
    private var allStops: [Range<UInt64>] = []
    private var allOversleeps: [Double] = []

    func note(_ episode: Episode) { lock.withLock { all.append(episode) } }
    /// The process was stopped then, in microseconds of CLOCK_MONOTONIC.
    func note(stops: [Range<UInt64>]) { lock.withLock { allStops += stops } }
    var stops: [Range<UInt64>] { lock.withLock { allStops } }
    /// A sleep of no victim's ended so much later than it should have, in milliseconds.
    func note(oversleep: Double) { lock.withLock { allOversleeps.append(oversleep) } }
    var oversleeps: [Double] { lock.withLock { allOversleeps } }
    func countHealthy(_ count: Int) { lock.withLock { healthyCount += count } }
    var episodes: [Episode] { lock.withLock { all } }
    var healthyItems: Int { lock.withLock { healthyCount } }
}

/// What a driver does with its loop until the time is up.
struct Diet {
    /// Stalls are this many times the threshold; empty for a loop that never stalls.
    var stalls: ClosedRange<Double>? = 1...10
    /// Healthy items between two stalls.
    var healthyItems = 6
    /// The longest healthy item, as a share of the threshold.
    var healthyShare = 0.45
    /// A share of healthy items computes; the others sleep.
    var computing = 0.05
    /// A share of stalls computes.
    var computingStalls = 0.0
    var pause: ClosedRange<Double> = 0.5...8
}

final class VictimLoop: @unchecked Sendable {
    // Unchecked because one driver at a time uses it.
    let name: String
    let threshold: Duration
    let loop: EventRunLoop
    private let truth: Truth
    private let pipe: (read: CInt, write: CInt)
    private var random = SystemRandomNumberGenerator()
    private let privateMode: LoopMode = "private"

    init(name: String, threshold: Duration, loop: EventRunLoop, truth: Truth) {
        self.name = name
        self.threshold = threshold
        self.loop = loop
        self.truth = truth
        var ends: [CInt] = [0, 0]
        precondition(Glibc.pipe(&ends) == 0)
        pipe = (ends[0], ends[1])
    }

    deinit {
        close(pipe.read)
        close(pipe.write)
    }

    /// Feeds the loop until `deadline` (monotonic nanoseconds).
    func drive(until deadline: UInt64, _ diet: Diet) {
        while monotonic() < deadline {
            for _ in 0..<diet.healthyItems where monotonic() < deadline {
                healthyItem(diet)
                usleep(UInt32(Double.random(in: diet.pause) * 1000))
            }
            guard let stalls = diet.stalls, monotonic() < deadline else { continue }
            let length = threshold * Double.random(in: stalls)
            let computes = Double.random(in: 0..<1) < diet.computingStalls
            item(lasting: length, isStall: true, computes: computes)
            usleep(UInt32(Double.random(in: diet.pause) * 1000))
        }
    }

    private func healthyItem(_ diet: Diet) {
        switch Int.random(in: 0..<20) {
        case 0:
            // Waiting in a private mode inside of a callout is waiting.
            runOnLoop(.block) { [self] in
                loop.add(LoopSource { _ in }, toMode: privateMode)
                loop.run(mode: privateMode, for: threshold * 2)
            }
            truth.countHealthy(1)
        case 1...6:
            for _ in 0..<20 { loop.post(inMode: .common) { usleep(50) } }
            runOnLoop(.block) {}
            truth.countHealthy(21)
        default:
            let computes = Double.random(in: 0..<1) < diet.computing
            let length = threshold * Double.random(in: 0.02...diet.healthyShare)
            item(lasting: length, isStall: false, computes: computes)
            truth.countHealthy(1)
        }
    }

    /// One callout of this duration, by its own clock, which records its actual duration.
    func item(lasting length: Duration, isStall: Bool, computes: Bool) {
        let kinds = CalloutKind.allCases.filter { $0 != .mainQueue || loop === EventRunLoop.main }
        noteOnLoop(kinds.randomElement(using: &random)!, isStall: isStall) { began in
            if computes {
                let limit = mishap_thread_cpu_ns() + UInt64(length / .nanoseconds(1))
                while mishap_thread_cpu_ns() < limit {}
            } else {
                let end = began + UInt64(length / .nanoseconds(1))
                while monotonic() < end { usleep(UInt32((end - min(end, monotonic())) / 1000 + 1)) }
            }
        }
    }

    /// Runs `body` on the loop in a callout of this kind that notes how long it took. `body` is given the time when it
    /// began.
    func noteOnLoop(_ kind: CalloutKind, isStall: Bool, _ body: @escaping (UInt64) -> Void) {
        runOnLoop(kind) { [self] in
            // The clocks come first and last: what is read between them is time of the callout, as the agent sees it.
            let (wall, began) = (wallClock(), monotonic())
            let queuedBefore = runDelay()
            body(began)
            let queued = runDelay() - queuedBefore
            let taken = Int64(monotonic() - began) / 1000
            truth.note(
                Episode(
                    loop: name, threshold: threshold, isStall: isStall, start: wall,
                    duration: taken, began: began / 1000, queued: queued))
        }
    }

    /// Runs `body` on the loop in a callout of this kind, and waits for the end of the callout.
    func runOnLoop(_ kind: CalloutKind, _ body: @escaping () -> Void) {
        let done = DispatchSemaphore(value: 0)
        let work = {
            body()
            done.signal()
        }
        switch kind {
        case .block:
            loop.post(inMode: .default, unsafeBitCast(work, to: (@Sendable () -> Void).self))
        case .timer: loop.add(LoopTimer(after: .milliseconds(1)) { _ in work() }, toMode: .default)
        case .source:
            let source = LoopSource { source in
                source.invalidate()
                work()
            }
            loop.add(source, toMode: .default)
            source.signal()
            loop.wakeUp()
        case .descriptor:
            let source = DescriptorSource(descriptor: pipe.read) { [pipe] source, _ in
                var byte: UInt8 = 0
                _ = read(pipe.read, &byte, 1)
                source.invalidate()
                work()
            }
            _ = try? loop.add(source, toMode: .default)
            var byte: UInt8 = 1
            _ = write(pipe.write, &byte, 1)
        case .observer:
            // A later wake-up is dropped while the loop is about to check anyway.
            let observer = LoopObserver(repeats: false) { _, _ in work() }
            loop.add(observer, toMode: .default)
            loop.wakeUp()
        case .nestedRun:
            loop.post(
                inMode: .default,
                unsafeBitCast(
                    { [self] in
                        loop.add(
                            LoopTimer(after: .milliseconds(2)) { _ in work() }, toMode: privateMode)
                        loop.run(mode: privateMode, for: .milliseconds(3))
                    }, to: (@Sendable () -> Void).self))
        case .mainQueue:
            DispatchQueue.main.async(execute: unsafeBitCast(work, to: (@Sendable () -> Void).self))
        }
        done.wait()
    }
}

func monotonic() -> UInt64 { clock(CLOCK_MONOTONIC) }

/// Microseconds since 1970.
func wallClock() -> Int64 { Int64(clock(CLOCK_REALTIME) / 1000) }

/// For how many microseconds the calling thread has queued for a CPU in its life.
func runDelay() -> Int64 {
    let text = try? String(contentsOfFile: "/proc/thread-self/schedstat", encoding: .utf8)
    let nanoseconds = text?.split(separator: " ").dropFirst().first.flatMap { Int64($0) }
    return (nanoseconds ?? 0) / 1000
}

private func clock(_ id: CInt) -> UInt64 {
    var time = timespec()
    clock_gettime(id, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

extension VictimLoop {
    /// Makes the loop iterate without ever waiting, in callouts of a millisecond.
    func spin(forSeconds seconds: Double, countingIn truth: Truth) {
        let end = monotonic() + UInt64(seconds * 1e9)
        let source = LoopSource { [loop] source in
            let limit = mishap_thread_cpu_ns() + 1_000_000
            while mishap_thread_cpu_ns() < limit {}
            truth.countHealthy(1)
            guard monotonic() < end else { return source.invalidate() }
            source.signal()
            loop.wakeUp()
        }
        loop.add(source, toMode: .default)
        source.signal()
        loop.wakeUp()
    }
}

extension StallMonitor.Configuration {
    /// Every stall must be reported, however many there are at one location.
    mutating func prepareForTruth() { limits = .none }
}
