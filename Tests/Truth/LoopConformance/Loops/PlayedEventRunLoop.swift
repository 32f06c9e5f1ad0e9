internal import Glibc
internal import StallModel
internal import StallRunLoop

/// Runs scenarios on EventRunLoop.
package final class PlayedEventRunLoop: PlayedLoop {
    private let loop: EventRunLoop

    private init(_ loop: EventRunLoop) { self.loop = loop }

    package static var current: any PlayedLoop { PlayedEventRunLoop(.current) }

    private final class Observer: PlayedItem {
        var observer: LoopObserver!
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
        var timer: LoopTimer!
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
        let played = Observer()
        let call = Unchecked((played, handler))
        played.observer = LoopObserver(
            activities: LoopActivity(rawValue: activities), repeats: repeats, order: order
        ) { _, activity in call.value.1(call.value.0, activity.rawValue) }
        return played
    }

    package func source(
        order: Int, scheduling: ((Bool, String) -> Void)?, _ handler: @escaping () -> Void
    ) -> any PlayedSource {
        let call = Unchecked(handler)
        let trace = scheduling.map { Unchecked($0) }
        return Source(
            LoopSource(
                order: order, onSchedule: { trace?.value(true, $1.rawValue) },
                onCancel: { trace?.value(false, $1.rawValue) }
            ) { _ in call.value() })
    }

    package func descriptor(
        _ descriptor: CInt, takes: Bool, _ handler: @escaping () -> Void
    ) -> any PlayedSource {
        let call = Unchecked(handler)
        return Descriptor(
            DescriptorSource(descriptor: descriptor) { source, _ in
                var count: UInt64 = 0
                if takes { _ = read(source.descriptor, &count, 8) }
                call.value()
            })
    }

    package func timer(
        in seconds: Double, every interval: Double, _ handler: @escaping (any PlayedTimer) -> Void
    ) -> any PlayedTimer {
        let played = Timer()
        let call = Unchecked((played, handler))
        played.timer = LoopTimer(
            at: monotonicNow() + .seconds(seconds), every: interval > 0 ? .seconds(interval) : nil
        ) { _ in call.value.1(call.value.0) }
        return played
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
        let call = Unchecked(block)
        loop.perform(inModes: modes.map { LoopMode($0) }) { call.value() }
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
