// FewItems CASE COUNT [ITEMS]: COUNT operations of one kind on a loop that has ITEMS items. Counted by scripts/count-instructions, which
// builds it against two states of the run loop: it uses what both have.

import Glibc
import StallModel
import StallRunLoop

let name = CommandLine.arguments[1]
let count = Int(CommandLine.arguments[2])!
let items = CommandLine.arguments.count > 3 ? Int(CommandLine.arguments[3])! : 10
let mode: LoopMode = name.hasSuffix("common") ? .common : .default
/// A process with one thread has cheaper reference counts; no app has one.
let other = try! LoopThread(name: "other")
let loop = EventRunLoop.current

func pipeEnds() -> [CInt] {
    var ends: [CInt] = [0, 0]
    pipe(&ends)
    return ends
}

func addIdleSources(_ count: Int) {
    for _ in 0..<count { loop.add(LoopSource { _ in }, toMode: mode) }
}

func laterTimers(_ count: Int, after seconds: Int) -> [LoopTimer] {
    (0..<count).map { LoopTimer(after: .seconds(seconds + $0)) { _ in } }
}

/// Runs until a source has been served `count` times that signals itself.
func serveOneSource() {
    nonisolated(unsafe) var left = count
    let source = LoopSource { source in
        left -= 1
        if left > 0 { source.signal() } else { loop.stop() }
    }
    loop.add(source, toMode: .default)
    source.signal()
    loop.run()
}

/// All sources are served in an iteration; the last one signals them again.
func serveAllSources() {
    nonisolated(unsafe) var left = count / items
    nonisolated(unsafe) var sources: [LoopSource] = []
    sources = (0..<items).map { number in
        LoopSource { _ in
            guard number == items - 1 else { return }
            left -= 1
            if left > 0 { for source in sources { source.signal() } } else { loop.stop() }
        }
    }
    for source in sources { loop.add(source, toMode: .default) }
    for source in sources { source.signal() }
    loop.run()
}

/// Every iteration drains as many blocks.
func drain(_ blocks: Int) {
    nonisolated(unsafe) var left = count / blocks
    func again() {
        left -= 1
        guard left > 0 else { return loop.stop() }
        for _ in 0..<blocks - 1 { loop.post {} }
        loop.post(again)
    }
    loop.post(again)
    loop.run()
}

func fireOneTimer() {
    // A variable that a closure captures is checked for exclusive access, which would count as the loop's work.
    nonisolated(unsafe) let left = UnsafeMutablePointer<Int>.allocate(capacity: 1)
    left.initialize(to: count)
    for timer in laterTimers(items - 1, after: 1_000) { loop.add(timer, toMode: .default) }
    loop.schedule(every: .nanoseconds(1)) { _ in
        left.pointee -= 1
        if left.pointee == 0 { loop.stop() }
    }
    loop.run()
}

func serveOneDescriptor() throws {
    nonisolated(unsafe) var left = count
    let ready = pipeEnds()
    for descriptor in [ready[0]] + (0..<items - 1).map({ _ in pipeEnds()[0] }) {
        let source = DescriptorSource(descriptor: descriptor) { _, _ in
            left -= 1
            if left == 0 { loop.stop() }
        }
        try loop.add(source, toMode: .default)
    }
    write(ready[1], "x", 1)
    loop.run()
}

switch name {
case "signal":
    addIdleSources(items - 1)
    serveOneSource()
case "signal-all": serveAllSources()
case "timer-make": for number in 0..<count { _ = laterTimers(1, after: number) }
case "timer-add-default", "timer-add-common":
    for timer in laterTimers(items, after: 1_000) { loop.add(timer, toMode: mode) }
    for timer in laterTimers(count, after: 2_000) {
        loop.add(timer, toMode: mode)
        timer.invalidate()
    }
case "timer-redate":
    let timers = laterTimers(items, after: 1_000)
    for timer in timers { loop.add(timer, toMode: .default) }
    let first = timers[0].nextFire
    for number in 0..<count { timers[number % items].nextFire = first + .seconds(number % 7) }
case "timer-fire": fireOneTimer()
case "source-make": for _ in 0..<count { _ = LoopSource { _ in } }
case "source-default", "source-common":
    addIdleSources(items)
    for _ in 0..<count {
        let source = LoopSource { _ in }
        loop.add(source, toMode: mode)
        source.invalidate()
    }
case "observer-default", "observer-common":
    for number in 0..<items + count {
        let observer = LoopObserver(activities: .exit) { _, _ in }
        loop.add(observer, toMode: mode)
        if number >= items { observer.invalidate() }
    }
case "descriptor-default", "descriptor-common":
    let last = pipeEnds()[0]
    for number in 0..<items + count {
        let descriptor = number < items ? pipeEnds()[0] : last
        let source = DescriptorSource(descriptor: descriptor) { _, _ in }
        try loop.add(source, toMode: mode)
        if number >= items { source.invalidate() }
    }
case "idle-sources":
    addIdleSources(items)
    drain(1)
case "posts": drain(items)
case "waiting-blocks":
    for _ in 0..<items { loop.perform(inMode: "other") {} }
    serveOneSource()
case "observers":
    for _ in 0..<items {
        loop.add(LoopObserver(activities: .beforeTimers) { _, _ in }, toMode: .default)
    }
    serveOneSource()
case "tolerance-sleep":
    for number in 0..<items {
        loop.add(
            LoopTimer(after: .seconds(1_000 + number), tolerance: .seconds(60)) { _ in },
            toMode: .default)
    }
    for _ in 0..<count { loop.run(mode: .default, for: .microseconds(1)) }
case "timer-sleep":
    nonisolated(unsafe) var left = count
    loop.schedule(every: .microseconds(200)) { _ in
        left -= 1
        if left == 0 { loop.stop() }
    }
    loop.run()
case "descriptor-event": try serveOneDescriptor()
default: fatalError("there is no case \(name)")
}
