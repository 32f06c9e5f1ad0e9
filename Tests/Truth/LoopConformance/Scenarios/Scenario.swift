// A row of the golden table: what happens, on which loop it was recorded, and whether we follow.

internal import Foundation

/// One named scenario. The trace uses E entry, T beforeTimers, S beforeSources, W beforeWaiting, A afterWaiting, X
/// exit; `@` is milliseconds, rounded to 10.
package struct Scenario: Sendable, CustomStringConvertible {
    package let id: String
    package let title: String
    /// Needs the main thread.
    package var isMain = false
    /// The trace may differ by one wake-up that serves nothing: a token that the real loop left pending.
    package var allowsSpuriousWakeUp = false
    /// Where the Linux CFRunLoop is wrong: why, and the trace that we owe instead.
    package var better: (reason: String, trace: String)?
    package let play: @Sendable (Stage) -> Void

    package init(
        _ id: String, _ title: String, isMain: Bool = false, allowsSpuriousWakeUp: Bool = false,
        better: (reason: String, trace: String)? = nil, play: @escaping @Sendable (Stage) -> Void
    ) {
        self.id = id
        self.title = title
        self.isMain = isMain
        self.allowsSpuriousWakeUp = allowsSpuriousWakeUp
        self.better = better
        self.play = play
    }

    package var description: String { "\(id) \(title)" }

    /// The whole table, in the order of the facts it was recorded for.
    package static let all: [Scenario] =
        entryScenarios + sourceScenarios + timerScenarios + blockScenarios + stopScenarios
        + nestedScenarios + observerScenarios + descriptorScenarios + wakeUpScenarios
        + dispatchScenarios + threadScenarios + combinedScenarios
}

/// How one scenario went.
package enum Verdict: Sendable {
    case agrees
    case better(String)
    case differs(ours: [String], real: [String])
}

/// A verdict, and the number of repetitions before it.
package struct Play: Sendable {
    package var verdict: Verdict
    package var retries: Int
    /// How many of the runs that did not agree had threads that waited for a CPU, by the kernel's accounting.
    package var disturbed: Int
}

extension Scenario {
    /// Runs the scenario on both loops and compares their traces, and the real one with the recorded one. Repeats with
    /// longer steps before it reports a difference: only the order of events is specified, and a busy machine can
    /// change that of events 10 ms apart. Five runs that differ are a difference. Runs whose threads waited for a CPU
    /// long enough to change the order, by the kernel's accounting, do not count; but 25 of both kinds do.
    ///
    /// `perform` runs a body on a thread that may run loops, and waits for it.
    package func compare(perform: (@escaping @Sendable () -> Void) -> Void) -> Play {
        let scales = [1.0, 1, 2, 4, 8, 16, 32]
        var (plays, disturbed) = (0, 0)
        while true {
            let scale = scales[min(plays, scales.count - 1)]
            let real = play(on: PlayedCFRunLoop.self, scale: scale, perform: perform)
            let ours = play(on: PlayedEventRunLoop.self, scale: scale, perform: perform)
            let verdict = verdict(ours: ours.trace, real: real.trace)
            guard case .differs = verdict else {
                return Play(verdict: verdict, retries: plays, disturbed: disturbed)
            }
            plays += 1
            if max(ours.queued, real.queued) > Self.mostQueued * scale { disturbed += 1 }
            if plays - disturbed >= 5 || plays >= 25 {
                return Play(verdict: verdict, retries: plays - 1, disturbed: disturbed)
            }
        }
    }

    /// Seconds that a thread of a run at scale 1 may wait for a CPU: less than half a step of the trace.
    package static var mostQueued: Double { 0.004 }

    private func verdict(ours: [String], real: [String]) -> Verdict {
        let recorded = GoldenTable.traces[id].map(Trace.tokens) ?? real
        guard Trace.agree(real, recorded, allowsSpuriousWakeUp: allowsSpuriousWakeUp) else {
            return .differs(ours: recorded, real: real)
        }
        if let better {
            if Trace.agree(ours, Trace.tokens(better.trace), allowsSpuriousWakeUp: false) {
                return .better(better.reason)
            }
        } else if Trace.agree(ours, real, allowsSpuriousWakeUp: allowsSpuriousWakeUp) {
            return .agrees
        }
        return .differs(ours: ours, real: real)
    }

    package func trace(
        on type: any PlayedLoop.Type, scale: Double,
        perform: (@escaping @Sendable () -> Void) -> Void
    ) -> [String] {
        play(on: type, scale: scale, perform: perform).trace
    }

    /// The trace of one run, and the longest wait for a CPU of a thread of the process, in seconds.
    private func play(
        on type: any PlayedLoop.Type, scale: Double,
        perform: (@escaping @Sendable () -> Void) -> Void
    ) -> (trace: [String], queued: Double) {
        let queueing = Queueing()
        let result = Unchecked(Box<[String]>([]))
        let type = Unchecked(type)
        perform {
            let stage = Stage(type.value.current, scale: scale)
            // The real loop can sleep forever on a busy machine: in row N2, if the outer run's timeout elapses while
            // the nested one runs, nothing wakes it again. A scenario takes some tenths of a second.
            let isOver = DispatchSemaphore(value: 0)
            Thread {
                var patience = 5 * scale
                while isOver.wait(timeout: .now() + patience) == .timedOut {
                    stage.loop.stop()
                    patience = 0.1
                }
            }.start()
            play(stage)
            isOver.signal()
            result.value.value = stage.trace
            Queueing.noteEndOfThread()
        }
        return (result.value.value, queueing.mostSeconds)
    }
}

final class Box<Value> {
    var value: Value
    init(_ value: Value) { self.value = value }
}
