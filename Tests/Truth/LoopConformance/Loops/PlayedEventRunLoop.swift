internal import Glibc
internal import StallModel
internal import StallRunLoop

/// Runs scenarios on EventRunLoop. Whatever it is given is kept together with a ``Probe``, which touches the loop when it is
/// let go of.
package final class PlayedEventRunLoop: PlayedLoop {
    private let loop: EventRunLoop

    private init(_ loop: EventRunLoop) { self.loop = loop }

    /// Whether a probe is let go of under the lock, and another one never, so that the counts can be seen to fail.
    package nonisolated(unsafe) static var isSabotaged = false

    /// A handler with what it holds.
    private func kept<Handler>(_ handler: Handler) -> Unchecked<(handler: Handler, probe: Probe)> {
        Unchecked((handler, Probe(loop)))
    }

    package static var current: any PlayedLoop { PlayedEventRunLoop(.current) }

    private final class Observer: PlayedItem {
        let observer: LoopObserver
        init(_ observer: LoopObserver) { self.observer = observer }
        var isValid: Bool { observer.isValid }
        func invalidate() { observer.invalidate() }
    }

    private final class Source: PlayedSource {
        let source: LoopSource
        init(_ source: LoopSource) { self.source = source }
        var isValid: Bool { source.isValid }
        var isSignalled: Bool { source.isSignalled }
        func invalidate() { source.invalidate() }
        func signal() { source.signal() }
    }

    private final class Descriptor: PlayedSource {
        let source: DescriptorSource
        init(_ source: DescriptorSource) { self.source = source }
        var isValid: Bool { source.isValid }
        var isSignalled: Bool { false }
        func invalidate() { source.invalidate() }
        /// A descriptor is signalled by the kernel alone.
        func signal() {}
    }

    private final class Timer: PlayedTimer {
        let timer: LoopTimer
        init(_ timer: LoopTimer) { self.timer = timer }
        var isValid: Bool { timer.isValid }
        var interval: Double { timer.interval.map { $0 / .seconds(1) } ?? 0 }
        var tolerance: Double {
            get { timer.tolerance / .seconds(1) }
            set { timer.tolerance = .seconds(newValue) }
        }
        func invalidate() { timer.invalidate() }
        func setNextFire(in seconds: Double) {
            timer.nextFire = monotonicNow() + .seconds(seconds)
        }
    }

    package func observer(
        _ activities: UInt, repeats: Bool, order: Int,
        _ handler: @escaping (any PlayedItem, UInt) -> Void
    ) -> any PlayedItem {
        let call = kept(handler)
        return Observer(
            LoopObserver(
                activities: LoopActivity(rawValue: activities), repeats: repeats, order: order
            ) { observer, activity in call.value.handler(Observer(observer), activity.rawValue) })
    }

    package func source(
        order: Int, scheduling: ((Bool, String) -> Void)?, _ handler: @escaping () -> Void
    ) -> any PlayedSource {
        let call = kept(handler)
        let trace = scheduling.map { Unchecked($0) }
        return Source(
            LoopSource(
                order: order, onSchedule: { trace?.value(true, $1.rawValue) },
                onCancel: { trace?.value(false, $1.rawValue) }
            ) { _ in call.value.handler() })
    }

    package func descriptor(
        _ descriptor: CInt, takes: Bool, _ handler: @escaping () -> Void
    ) -> any PlayedSource {
        let call = kept(handler)
        return Descriptor(
            DescriptorSource(descriptor: descriptor) { source, _ in
                var count: UInt64 = 0
                if takes { _ = read(source.descriptor, &count, 8) }
                call.value.handler()
            })
    }

    package func timer(
        in seconds: Double, every interval: Double, _ handler: @escaping (any PlayedTimer) -> Void
    ) -> any PlayedTimer {
        let call = kept(handler)
        return Timer(
            LoopTimer(
                at: monotonicNow() + .seconds(seconds),
                every: interval > 0 ? .seconds(interval) : nil
            ) { timer in call.value.handler(Timer(timer)) })
    }

    package func add(_ item: any PlayedItem, _ mode: String) {
        switch item {
        case let item as Observer: loop.add(item.observer, toMode: LoopMode(mode))
        case let item as Source: loop.add(item.source, toMode: LoopMode(mode))
        case let item as Descriptor: try! loop.add(item.source, toMode: LoopMode(mode))
        case let item as Timer: loop.add(item.timer, toMode: LoopMode(mode))
        default: fatalError("an item of another loop")
        }
    }

    package func remove(_ item: any PlayedItem, _ mode: String) {
        switch item {
        case let item as Observer: loop.remove(item.observer, fromMode: LoopMode(mode))
        case let item as Source: loop.remove(item.source, fromMode: LoopMode(mode))
        case let item as Descriptor: loop.remove(item.source, fromMode: LoopMode(mode))
        case let item as Timer: loop.remove(item.timer, fromMode: LoopMode(mode))
        default: fatalError("an item of another loop")
        }
    }

    package func contains(_ item: any PlayedItem, _ mode: String) -> Bool {
        switch item {
        case let item as Observer: loop.contains(item.observer, inMode: LoopMode(mode))
        case let item as Source: loop.contains(item.source, inMode: LoopMode(mode))
        case let item as Descriptor: loop.contains(item.source, inMode: LoopMode(mode))
        case let item as Timer: loop.contains(item.timer, inMode: LoopMode(mode))
        default: fatalError("an item of another loop")
        }
    }

    package func addCommonMode(_ mode: String) { loop.addCommonMode(LoopMode(mode)) }

    package func perform(_ modes: [String], _ block: @escaping () -> Void) {
        let call = kept(block)
        loop.perform(inModes: modes.map { LoopMode($0) }) { call.value.handler() }
        if Self.isSabotaged {
            Self.isSabotaged = false
            Probe.sabotage(loop)
        }
    }

    package func run(_ mode: String, _ seconds: Double, returnAfterSourceHandled: Bool) -> Int {
        loop.run(
            mode: LoopMode(mode), for: .seconds(seconds),
            returnAfterSourceHandled: returnAfterSourceHandled
        ).rawValue
    }

    package func run() { loop.run() }
    package func wakeUp() { loop.wakeUp() }
    package func stop() { loop.stop() }
    package var isWaiting: Bool { loop.isWaiting }
    package var currentMode: String? { loop.currentMode?.rawValue }
}

private func monotonicNow() -> MonotonicInstant {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return MonotonicInstant(nanoseconds: UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec))
}
