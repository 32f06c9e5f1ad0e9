// CFRunLoop with many items. The loop ends with its thread, and its items with it.

import CPeers
import CoreFoundation
import Foundation

private func mode(_ isCommon: Bool) -> CFRunLoopMode {
    isCommon ? kCFRunLoopCommonModes : kCFRunLoopDefaultMode
}

private func play<Item>(
    _ present: Int, _ count: Int, make: (Int) -> Item, change: ((Item) -> Void)? = nil,
    remove: (Item) -> Void
) -> load_costs {
    var items = (0..<present).map(make)
    var costs = load_costs()
    items.reserveCapacity(present + count)
    costs.add = cpu(count) { for index in present..<present + count { items.append(make(index)) } }
    if let change {
        let some = items.shuffled().prefix(count)
        costs.change = cpu(count) { some.forEach(change) }
    }
    let some = items.shuffled().prefix(count)
    costs.remove = cpu(count) { some.forEach(remove) }
    return costs
}

/// The first ones in the order in which they fire: it keeps them in an array, and others would be moved each time.
func timersCF(_ present: Int, _ count: Int, _ isCommon: Bool) -> load_costs {
    let loop = CFRunLoopGetCurrent()!
    let start = CFAbsoluteTimeGetCurrent() + 1e6
    return play(present, count) { index in
        let delay = index < present ? Double(index) : Double(random(below: present))
        let timer = CFRunLoopTimerCreateWithHandler(nil, start + delay, 0, 0, 0) { _ in }!
        CFRunLoopAddTimer(loop, timer, mode(isCommon))
        return timer
    } change: {
        CFRunLoopTimerSetNextFireDate($0, start + Double(random(below: present)))
    } remove: {
        CFRunLoopTimerInvalidate($0)
    }
}

private func makeSourceCF(_ perform: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?)
    -> CFRunLoopSource
{
    var context = CFRunLoopSourceContext()
    context.perform = perform
    return CFRunLoopSourceCreate(nil, 0, &context)!
}

func sourcesCF(_ present: Int, _ count: Int, _ isCommon: Bool) -> load_costs {
    let loop = CFRunLoopGetCurrent()!
    return play(present, count) { _ in
        let source = makeSourceCF { _ in }
        CFRunLoopAddSource(loop, source, mode(isCommon))
        return source
    } remove: {
        CFRunLoopSourceInvalidate($0)
    }
}

private func makeObserverCF() -> CFRunLoopObserver {
    CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.beforeSources.rawValue, true, 0) {
        _, _ in
    }!
}

func observersCF(_ present: Int, _ count: Int, _ isCommon: Bool) -> load_costs {
    let loop = CFRunLoopGetCurrent()!
    return play(present, count) { _ in
        let observer = makeObserverCF()
        CFRunLoopAddObserver(loop, observer, mode(isCommon))
        return observer
    } remove: {
        CFRunLoopObserverInvalidate($0)
    }
}

private nonisolated(unsafe) var left = 0
private nonisolated(unsafe) var signalled: [CFRunLoopSource] = []

/// One iteration of sources that signal themselves.
private func iterate(_ ready: Int, _ count: Int) -> Double {
    let loop = CFRunLoopGetCurrent()!
    left = count
    // One perform signals all: a handler does not know its source.
    let first = makeSourceCF { _ in
        for source in signalled { CFRunLoopSourceSignal(source) }
        left -= 1
        if left == 0 { CFRunLoopStop(CFRunLoopGetCurrent()) }
    }
    signalled = [first] + (1..<max(1, ready)).map { _ in makeSourceCF { _ in } }
    for source in signalled {
        CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
        CFRunLoopSourceSignal(source)
    }
    defer { signalled = [] }
    return cpu(count) { CFRunLoopRun() }
}

func readyCF(_ size: Int, _ count: Int) -> Double { iterate(size, count) }

func idleCF(_ size: Int, _ count: Int) -> Double {
    let loop = CFRunLoopGetCurrent()!
    for _ in 0..<size { CFRunLoopAddSource(loop, makeSourceCF { _ in }, kCFRunLoopDefaultMode) }
    return iterate(1, count)
}

func waitingCF(_ size: Int, _ count: Int) -> Double {
    let loop = CFRunLoopGetCurrent()!
    let never = CFStringCreateWithCString(nil, "never run", CFStringBuiltInEncodings.UTF8.rawValue)
    for _ in 0..<size { CFRunLoopPerformBlock(loop, never) {} }
    return iterate(1, count)
}

func observedCF(_ size: Int, _ count: Int) -> Double {
    let loop = CFRunLoopGetCurrent()!
    for _ in 0..<size { CFRunLoopAddObserver(loop, makeObserverCF(), kCFRunLoopDefaultMode) }
    return iterate(1, count)
}

func sleepCF(_ size: Int, _ sleeps: Int) -> Double {
    let loop = CFRunLoopGetCurrent()!
    let start = CFAbsoluteTimeGetCurrent() + 1e6
    for index in 0..<size {
        let timer = CFRunLoopTimerCreateWithHandler(nil, start + Double(index), 0, 0, 0) { _ in }!
        CFRunLoopTimerSetTolerance(timer, 60)
        CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode)
    }
    return cpu(sleeps) {
        for _ in 0..<sleeps { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, false) }
    }
}
