internal import CoreFoundation
internal import Foundation

/// Runs scenarios on the CFRunLoop of the toolchain's Foundation: the oracle. How many of its handlers are let go of is
/// counted by a ``Probe`` with each.
package final class PlayedCFRunLoop: PlayedLoop {
    private let loop: CFRunLoop

    private init(_ loop: CFRunLoop) { self.loop = loop }

    package static var current: any PlayedLoop { PlayedCFRunLoop(CFRunLoopGetCurrent()) }

    private final class Observer: PlayedItem {
        var observer: CFRunLoopObserver!
        var isValid: Bool { CFRunLoopObserverIsValid(observer) }
        func invalidate() { CFRunLoopObserverInvalidate(observer) }
    }

    fileprivate final class Source: PlayedSource {
        var source: CFRunLoopSource!
        let handler: () -> Void
        private let probe = Probe(Probe.real)
        let scheduling: ((Bool, String) -> Void)?
        let descriptor: CInt
        init(
            _ descriptor: CInt, _ scheduling: ((Bool, String) -> Void)?,
            _ handler: @escaping () -> Void
        ) {
            self.descriptor = descriptor
            self.scheduling = scheduling
            self.handler = handler
        }
        var isValid: Bool { CFRunLoopSourceIsValid(source) }
        var isSignalled: Bool { sourceIsSignalled(source) }
        func invalidate() { CFRunLoopSourceInvalidate(source) }
        func signal() { CFRunLoopSourceSignal(source) }
    }

    private final class Timer: PlayedTimer {
        var timer: CFRunLoopTimer!
        var isValid: Bool { CFRunLoopTimerIsValid(timer) }
        var interval: Double { CFRunLoopTimerGetInterval(timer) }
        var tolerance: Double {
            get { CFRunLoopTimerGetTolerance(timer) }
            set { CFRunLoopTimerSetTolerance(timer, newValue) }
        }
        func invalidate() { CFRunLoopTimerInvalidate(timer) }
        func setNextFire(in seconds: Double) {
            CFRunLoopTimerSetNextFireDate(timer, CFAbsoluteTimeGetCurrent() + seconds)
        }
    }

    package func observer(
        _ activities: UInt, repeats: Bool, order: Int,
        _ handler: @escaping (any PlayedItem, UInt) -> Void
    ) -> any PlayedItem {
        let played = Observer()
        played.observer = CFRunLoopObserverCreateWithHandler(nil, activities, repeats, order) {
            [probe = Probe(Probe.real)] _, activity in
            withExtendedLifetime(probe) { handler(played, UInt(activity.rawValue)) }
        }
        return played
    }

    package func source(
        order: Int, scheduling: ((Bool, String) -> Void)?, _ handler: @escaping () -> Void
    ) -> any PlayedSource {
        let played = Source(-1, scheduling, handler)
        var context = CFRunLoopSourceContext()
        // Leaked: a scenario's source lives as long as its process.
        context.info = Unmanaged.passRetained(played).toOpaque()
        context.perform = { player($0).handler() }
        if scheduling != nil {
            context.schedule = { player($0).scheduling?(true, name(of: $2)) }
            context.cancel = { player($0).scheduling?(false, name(of: $2)) }
        }
        played.source = CFRunLoopSourceCreate(nil, order, &context)
        return played
    }

    package func descriptor(
        _ descriptor: CInt, takes: Bool, _ handler: @escaping () -> Void
    ) -> any PlayedSource {
        let played = Source(descriptor, nil, handler)
        var context = CFRunLoopSourceContext1()
        context.version = 1
        context.info = Unmanaged.passRetained(played).toOpaque()
        context.getPort = { player($0).descriptor }
        context.perform = { player($0).handler() }
        played.source = withUnsafeMutablePointer(to: &context) {
            $0.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
        return played
    }

    package func timer(
        in seconds: Double, every interval: Double, _ handler: @escaping (any PlayedTimer) -> Void
    ) -> any PlayedTimer {
        let played = Timer()
        played.timer = CFRunLoopTimerCreateWithHandler(
            nil, CFAbsoluteTimeGetCurrent() + seconds, interval, 0, 0
        ) { [probe = Probe(Probe.real)] _ in withExtendedLifetime(probe) { handler(played) } }
        return played
    }

    package func add(_ item: any PlayedItem, _ mode: String) {
        switch item {
        case let item as Observer: CFRunLoopAddObserver(loop, item.observer, cfMode(mode))
        case let item as Source: CFRunLoopAddSource(loop, item.source, cfMode(mode))
        case let item as Timer: CFRunLoopAddTimer(loop, item.timer, cfMode(mode))
        default: fatalError("an item of another loop")
        }
    }

    package func remove(_ item: any PlayedItem, _ mode: String) {
        switch item {
        case let item as Observer: CFRunLoopRemoveObserver(loop, item.observer, cfMode(mode))
        case let item as Source: CFRunLoopRemoveSource(loop, item.source, cfMode(mode))
        case let item as Timer: CFRunLoopRemoveTimer(loop, item.timer, cfMode(mode))
        default: fatalError("an item of another loop")
        }
    }

    package func contains(_ item: any PlayedItem, _ mode: String) -> Bool {
        switch item {
        case let item as Observer: CFRunLoopContainsObserver(loop, item.observer, cfMode(mode))
        case let item as Source: CFRunLoopContainsSource(loop, item.source, cfMode(mode))
        case let item as Timer: CFRunLoopContainsTimer(loop, item.timer, cfMode(mode))
        default: fatalError("an item of another loop")
        }
    }

    package func addCommonMode(_ mode: String) { CFRunLoopAddCommonMode(loop, cfMode(mode)) }

    package func perform(_ modes: [String], _ perform: @escaping () -> Void) {
        let block = { [probe = Probe(Probe.real)] in withExtendedLifetime(probe) { perform() } }
        if modes.count == 1 {
            CFRunLoopPerformBlock(loop, cfMode(modes[0]), block)
        } else {
            var values: [UnsafeRawPointer?] = modes.map {
                UnsafeRawPointer(Unmanaged.passRetained(cfMode($0)).toOpaque())
            }
            var callbacks = kCFTypeArrayCallBacks
            CFRunLoopPerformBlock(
                loop, CFArrayCreate(nil, &values, values.count, &callbacks), block)
        }
    }

    package func run(_ mode: String, _ seconds: Double, returnAfterSourceHandled: Bool) -> Int {
        Int(CFRunLoopRunInMode(cfMode(mode), seconds, returnAfterSourceHandled).rawValue)
    }

    package func run() { CFRunLoopRun() }
    package func wakeUp() { CFRunLoopWakeUp(loop) }
    package func stop() { CFRunLoopStop(loop) }
    package var isWaiting: Bool { CFRunLoopIsWaiting(loop) }
    package var currentMode: String? { CFRunLoopCopyCurrentMode(loop).map { name(of: $0) } }
}

private func player(_ info: UnsafeMutableRawPointer?) -> PlayedCFRunLoop.Source {
    Unmanaged<PlayedCFRunLoop.Source>.fromOpaque(info!).takeUnretainedValue()
}

private func cfMode(_ name: String) -> CFString {
    switch name {
    case "default": kCFRunLoopDefaultMode
    case "common": kCFRunLoopCommonModes
    default: unsafeBitCast(NSString(string: name), to: CFString.self)
    }
}

private func name(of mode: CFString?) -> String {
    guard let mode else { return "nil" }
    if CFEqual(mode, kCFRunLoopDefaultMode) { return "default" }
    return unsafeBitCast(mode, to: NSString.self) as String
}

/// Exported, but missing in the toolchain's header.
@_silgen_name("CFRunLoopSourceIsSignalled")
private func sourceIsSignalled(_ source: CFRunLoopSource) -> Bool
