// The environment of a scenario: one loop, its trace, and a scaled clock. Scenarios give times in milliseconds; `scale`
// stretches them if the machine is too busy for the finest steps, and the trace has unscaled times.

internal import Foundation

package final class Stage: @unchecked Sendable {
    package let loop: any PlayedLoop
    private let scale: Double
    private let start = DispatchTime.now().uptimeNanoseconds
    private let lock = NSLock()
    private var tokens: [String] = []

    package init(_ loop: any PlayedLoop, scale: Double) {
        self.loop = loop
        self.scale = scale
    }

    package var trace: [String] { lock.withLock { tokens } }

    /// Adds one or more tokens, separated by spaces, to the trace.
    package func log(_ text: String) { lock.withLock { tokens += Trace.tokens(text) } }

    /// Milliseconds since the scenario began, rounded to 10.
    package var now: Int {
        Int((Double(DispatchTime.now().uptimeNanoseconds - start) / 1e7 / scale).rounded()) * 10
    }

    /// An observer of all activities that logs each one's letter.
    @discardableResult
    package func watch(_ mode: String = "default") -> any PlayedItem {
        let observer = loop.observer(0x0fff_ffff, repeats: true, order: 0) {
            [unowned self] _, activity in
            log(Stage.letter(activity))
        }
        loop.add(observer, mode)
        return observer
    }

    package static func letter(_ activity: UInt) -> String {
        [1: "E", 2: "T", 4: "S", 32: "W", 64: "A", 128: "X"][activity] ?? "?"
    }

    package func observer(
        _ activities: UInt, repeats: Bool = true, order: Int = 0,
        _ handler: @escaping (any PlayedItem, UInt) -> Void
    ) -> any PlayedItem {
        loop.observer(activities, repeats: repeats, order: order, handler)
    }

    package func source(_ order: Int = 0, _ handler: @escaping () -> Void = {}) -> any PlayedSource
    {
        loop.source(order: order, scheduling: nil, handler)
    }

    /// A source that logs when it is scheduled and cancelled.
    package func tracedSource() -> any PlayedSource {
        loop.source(
            order: 0,
            scheduling: { [self] in log("\($0 ? "schedule" : "cancel")(\($1))") }, {})
    }

    /// An idle source that keeps a mode alive.
    @discardableResult
    package func keep(_ mode: String = "default") -> any PlayedSource {
        let source = source { [self] in log("keep!") }
        loop.add(source, mode)
        return source
    }

    package func timer(
        _ milliseconds: Double, every interval: Double = 0,
        _ handler: @escaping (any PlayedTimer) -> Void
    ) -> any PlayedTimer {
        loop.timer(in: milliseconds / 1000 * scale, every: interval / 1000 * scale, handler)
    }

    package func redate(_ timer: any PlayedTimer, _ milliseconds: Double) {
        timer.setNextFire(in: milliseconds / 1000 * scale)
    }

    /// Milliseconds to the loop's seconds, stretched.
    package func seconds(_ milliseconds: Double) -> Double { milliseconds / 1000 * scale }

    /// Runs `body` and sorts what it logs: the order of a set is unspecified.
    package func logSorted(_ body: () -> Void) {
        let before = trace.count
        body()
        lock.withLock { tokens[before...].sort() }
    }

    /// Runs once in the default mode.
    package func run(_ milliseconds: Double, once: Bool = false) {
        run("default", milliseconds, once: once)
    }

    /// Runs once and logs the result with the elapsed time.
    package func run(_ mode: String, _ milliseconds: Double, once: Bool = false) {
        let began = DispatchTime.now().uptimeNanoseconds
        let result = loop.run(mode, milliseconds / 1000 * scale, returnAfterSourceHandled: once)
        let elapsed = Double(DispatchTime.now().uptimeNanoseconds - began) / 1e7 / scale
        let name = ["?", "finished", "stopped", "timedOut", "handledSource"][result]
        log("=\(name)@\(Int(elapsed.rounded()) * 10)")
    }

    package func pause(_ milliseconds: Double) { usleep(UInt32(milliseconds * 1000 * scale)) }

    /// Runs `body` on another thread, `milliseconds` from now. Join it before the scenario ends.
    package func after(_ milliseconds: Double, _ body: @escaping () -> Void) -> Helper {
        Helper { [self] in
            pause(milliseconds)
            body()
        }
    }

    /// A thread that can be joined.
    package final class Helper {
        private let done = DispatchSemaphore(value: 0)

        init(_ body: @escaping () -> Void) {
            let call = Unchecked(body)
            let done = done
            let thread = Thread {
                call.value()
                Queueing.noteEndOfThread()
                done.signal()
            }
            thread.start()
        }

        package func join() { done.wait() }
    }

    /// A non-blocking eventfd; lives as long as the process.
    package func eventDescriptor(_ value: UInt32 = 0) -> CInt { makeEventDescriptor(value) }

    package func write(_ descriptor: CInt) {
        var one: UInt64 = 1
        _ = Foundation.write(descriptor, &one, 8)
    }
}
