// One play: a process with its own store and known stalls.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop

/// The environment of a play.
final class Stage {
    let directory: String
    let store: String
    /// How long `stop` may take.
    var stopLimit = Duration.seconds(3)
    private(set) var planned = 0
    private let plan: Int32

    init(_ directory: String) {
        self.directory = directory
        store = directory + "/store.sqlite"
        plan = open(directory + "/plan", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
    }

    func configuration(_ change: (inout StallMonitor.Configuration) -> Void = { _ in })
        -> StallMonitor.Configuration
    {
        var configuration = StallMonitor.Configuration(app: "host-safety", version: "1")
        configuration.store = store
        configuration.threshold = .milliseconds(100)
        configuration.callbackDeadline = .milliseconds(500)
        change(&configuration)
        return configuration
    }

    /// A monitor that watches the main thread's loop, in the middle of its life.
    func start(_ change: (inout StallMonitor.Configuration) -> Void = { _ in }) throws
        -> StallMonitor
    {
        let monitor = try StallMonitor.start(configuration(change))
        monitor.watch(EventRunLoop.main, as: "main")
        #if BLOCKING
        forbidBlocking(monitor)
        #endif
        settle()
        return monitor
    }

    func settle() { rest(.milliseconds(150)) }

    func rest(_ time: Duration) {
        EventRunLoop.main.run(until: .now + time)
    }

    /// A stall of the main loop that must be in the store, or counted.
    func stall(_ monitor: StallMonitor, for time: Duration = .milliseconds(250)) {
        stall(monitor) {
            host_rest(
                UInt64(time.components.seconds) * 1_000_000_000
                    + UInt64(time.components.attoseconds / 1_000_000_000))
        }
    }

    func stall(_ monitor: StallMonitor, _ body: @escaping @Sendable () -> Void) {
        let label = "planned \(getpid()) \(planned)"
        planned += 1
        let delay = runDelay()
        EventRunLoop.main.perform { monitor.withActivity(label, body) }
        settle()
        // One that waited for a CPU for long may be no stall of its own doing.
        guard runDelay() - delay < .milliseconds(50) else { return }
        // Written at its end: a play that ends before has not stalled.
        _ = (label + "\n").withCString { write(plan, $0, strlen($0)) }
    }

    /// A call that blocks where that is forbidden: it must be in the store, with the function that made it.
    func planCall(_ name: String, in function: String) {
        let line = "\(name) \(function)\n"
        let plan = open(directory + "/calls", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
        _ = line.withCString { write(plan, $0, strlen($0)) }
        close(plan)
    }

    /// Stops the monitor and records the duration.
    func stop(_ monitor: StallMonitor, within limit: Duration? = nil) {
        let limit = limit ?? stopLimit
        let (began, delay) = (ContinuousClock.now, runDelay())
        let flushed = monitor.stop(within: limit)
        // What this thread waited for a CPU is not the agent's.
        let took = began.duration(to: .now) - (runDelay() - delay)
        let late = took > limit + .milliseconds(300)
        print("stopped late=\(late ? 1 : 0) flushed=\(flushed ? 1 : 0) took=\(took)")
    }
}

/// How long the calling thread has waited for a CPU so far; zero if the kernel does not provide it.
private func runDelay() -> Duration {
    let text = try? String(contentsOfFile: "/proc/thread-self/schedstat", encoding: .utf8)
    let numbers = text?.split(separator: " ") ?? []
    return numbers.count > 1 ? .nanoseconds(Int64(numbers[1]) ?? 0) : .zero
}

/// A kind of play.
struct Play {
    let name: String
    /// Its subject causes losses that cannot be stored: there, `stop` must report them.
    var mayLose = false
    /// Only run by another play.
    var isInner = false
    /// Environment that it needs from its beginning.
    var environment: [String: String] = [:]
    let body: (Stage) throws -> Void

    static let all =
        lifecycles + forks + hosts + identities + targets + files
        + faults + exits + signals + copies + descriptors + schedules + environments
        + limits + pages + strangers + handlers + crowds + calls

    #if !BLOCKING
    private static let calls: [Play] = []
    #endif
}

/// The machine does not allow a play.
struct Skipped: Error { let reason: String }

func runPlay(_ name: String, _ directory: String) -> Int32 {
    guard let play = Play.all.first(where: { $0.name == name }) else { return 64 }
    host_touch_large_variable()
    do {
        try play.body(Stage(directory))
        return 0
    } catch let skipped as Skipped {
        print("skipped \(skipped.reason)")
        return 0
    } catch {
        print("\(name): \(error)")
        return 1
    }
}
