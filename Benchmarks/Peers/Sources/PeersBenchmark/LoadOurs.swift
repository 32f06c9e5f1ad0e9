// EventRunLoop with many items.

import CPeers
import Foundation
import StallModel
import StallRunLoop

private func farAway() -> Duration { .seconds(1_000 + random(below: 1_000_000)) }

/// Makes and adds `present` items, and measures `count` more: made and added, changed, removed, in random order.
private func play<Item>(
    _ present: Int, _ count: Int, make: (Int) -> Item, change: ((Item) -> Void)? = nil,
    remove: (Item) -> Void
) -> load_costs {
    var items = (0..<present).map(make)
    items.reserveCapacity(present + count)
    var costs = load_costs()
    costs.add = cpu(count) { for index in present..<present + count { items.append(make(index)) } }
    if let change {
        let some = items.shuffled().prefix(count)
        costs.change = cpu(count) { some.forEach(change) }
    }
    let some = items.shuffled().prefix(count)
    costs.remove = cpu(count) { some.forEach(remove) }
    items.forEach(remove)
    return costs
}

func ourTimers(_ present: Int, _ count: Int, _ mode: LoopMode) -> load_costs {
    let loop = EventRunLoop.current
    loop.run(for: .zero)
    return play(present, count) { _ in
        let timer = LoopTimer(after: farAway()) { _ in }
        loop.add(timer, toMode: mode)
        return timer
    } change: { (timer: LoopTimer) in
        timer.nextFire = timer.nextFire + .seconds(1 + random(below: 1_000_000))
    } remove: {
        $0.invalidate()
    }
}

func ourSources(_ present: Int, _ count: Int, _ mode: LoopMode) -> load_costs {
    let loop = EventRunLoop.current
    return play(present, count) { _ in
        let source = LoopSource { _ in }
        loop.add(source, toMode: mode)
        return source
    } remove: {
        $0.invalidate()
    }
}

func ourObservers(_ present: Int, _ count: Int, _ mode: LoopMode) -> load_costs {
    let loop = EventRunLoop.current
    return play(present, count) { _ in
        let observer = LoopObserver(activities: .beforeWaiting) { _, _ in }
        loop.add(observer, toMode: mode)
        return observer
    } remove: {
        $0.invalidate()
    }
}

func ourDescriptors(_ present: Int, _ count: Int, _ mode: LoopMode) -> load_costs {
    let loop = EventRunLoop.current
    return withDescriptors(present + count) { descriptors in
        play(present, count) { index in
            let source = DescriptorSource(descriptor: descriptors[index]) { _, _ in }
            try! loop.add(source, toMode: mode)
            return source
        } remove: {
            $0.invalidate()
        }
    }
}

/// One iteration of a source that signals itself.
private func iterate(_ loop: EventRunLoop, _ count: Int) -> Double {
    nonisolated(unsafe) var left = count
    let source = LoopSource { source in
        left -= 1
        if left > 0 { source.signal() } else { loop.stop() }
    }
    loop.add(source, toMode: .default)
    source.signal()
    return cpu(count) { loop.run() }
}

/// As many iterations as cost about the same at every size where the cost grows with it.
func iterations(_ size: Int) -> Int { max(20, min(20_000, 20_000_000 / max(1, size))) }

func idleContestants(_ size: Int) -> [Contestant] {
    let count = iterations(size)
    return [
        Contestant(name: "EventRunLoop") {
            onThread {
                let loop = EventRunLoop.current
                let sources = (0..<size).map { _ in LoopSource { _ in } }
                for source in sources { loop.add(source, toMode: .default) }
                defer { for source in sources { source.invalidate() } }
                return iterate(loop, 20_000)
            }
        },
        Contestant(name: "libuv") { onThread { load_uv_idle(UInt32(size), 20_000) } },
        Contestant(name: "GLib") { onThread { load_glib_idle(UInt32(size), UInt32(count)) } },
        Contestant(name: "CFRunLoop") { onThread { idleCF(size, count) } },
    ]
}

func waitingContestants(_ size: Int) -> [Contestant] {
    [
        Contestant(name: "EventRunLoop") {
            onThread {
                let loop = EventRunLoop.current
                for _ in 0..<size { loop.perform(inMode: "never run") {} }
                loop.run(for: .zero)
                return iterate(loop, 20_000)
            }
        },
        Contestant(name: "CFRunLoop") { onThread { waitingCF(size, iterations(size)) } },
    ]
}

func sleepContestants(_ size: Int) -> [Contestant] {
    let sleeps = 50
    let ours = Contestant(name: "EventRunLoop") {
        onThread {
            let loop = EventRunLoop.current
            let timers = (0..<size).map { _ in
                LoopTimer(after: farAway(), tolerance: .seconds(60)) { _ in }
            }
            for timer in timers { loop.add(timer, toMode: .default) }
            defer { for timer in timers { timer.invalidate() } }
            loop.run(for: .zero)
            return cpu(sleeps) { for _ in 0..<sleeps { loop.run(for: .milliseconds(1)) } }
        }
    }
    let peers = [
        Contestant(name: "libuv, no tolerance") {
            onThread { load_uv_sleep(UInt32(size), UInt32(sleeps)) }
        },
        Contestant(name: "GLib, no tolerance") {
            onThread { load_glib_sleep(UInt32(size), UInt32(sleeps)) }
        },
    ]
    guard size <= 100_000 else { return [ours] + peers }
    return [ours] + peers + [Contestant(name: "CFRunLoop") { onThread { sleepCF(size, sleeps) } }]
}

/// All of `size` sources are signalled in each iteration.
func readyContestants(_ size: Int) -> [Contestant] {
    let count = max(100, 100_000 / size)
    return [
        Contestant(name: "EventRunLoop") {
            onThread {
                let loop = EventRunLoop.current
                nonisolated(unsafe) var left = count
                let sources = (0..<size).map { index in
                    LoopSource { source in
                        source.signal()
                        guard index == 0 else { return }
                        left -= 1
                        if left == 0 { loop.stop() }
                    }
                }
                for source in sources {
                    loop.add(source, toMode: .default)
                    source.signal()
                }
                defer { for source in sources { source.invalidate() } }
                return cpu(count) { loop.run() }
            }
        },
        Contestant(name: "libuv, idles") {
            onThread { load_uv_ready(UInt32(size), UInt32(count)) }
        },
        Contestant(name: "GLib") { onThread { load_glib_ready(UInt32(size), UInt32(count)) } },
        Contestant(name: "CFRunLoop") { onThread { readyCF(size, count) } },
    ]
}

/// Each iteration calls `size` observers.
func observedContestants(_ size: Int) -> [Contestant] {
    let count = max(100, 100_000 / size)
    return [
        Contestant(name: "EventRunLoop") {
            onThread {
                let loop = EventRunLoop.current
                let observers = (0..<size).map { _ in
                    LoopObserver(activities: .beforeSources) { _, _ in }
                }
                for observer in observers { loop.add(observer, toMode: .default) }
                defer { for observer in observers { observer.invalidate() } }
                return iterate(loop, count)
            }
        },
        Contestant(name: "CFRunLoop") { onThread { observedCF(size, count) } },
    ]
}
