// Dispatch, operation queues, lazy globals, time.

import CStallSites
import Foundation

@inline(never) func readSerially(_ queue: DispatchQueue) { sink &+= queue.sync { sink &+ 1 } & 1 }

@inline(never) func readBehindBarrier(_ queue: DispatchQueue) { queue.sync { sink &+= 2 } }

@inline(never) func writeWithBarrier(_ queue: DispatchQueue) {
    queue.sync(flags: .barrier) { sink &+= 3 }
}

@inline(never) func readTargeted(_ queue: DispatchQueue) {
    queue.sync { sink &+= 5 }
    sink ^= 8
}

@inline(never) func awaitPermit(_ semaphore: DispatchSemaphore) {
    semaphore.wait()
    sink &+= 1
}

@inline(never) func awaitPermitBriefly(_ semaphore: DispatchSemaphore) {
    if semaphore.wait(timeout: .now() + 5) == .success { sink &+= 1 }
}

@inline(never) func awaitGroup(_ group: DispatchGroup) {
    group.wait()
    sink &+= 1
}

@inline(never) func awaitItem(_ item: DispatchWorkItem) {
    item.wait()
    sink &+= 1
}

@inline(never) func awaitOperations(_ queue: OperationQueue) {
    queue.waitUntilAllOperationsAreFinished()
    sink &+= 1
}

/// A queue whose item runs until the stall has lasted long enough.
private func busy(_ queue: DispatchQueue, _ visit: Visit, flags: DispatchWorkItemFlags = []) {
    visit.hold(inside: { body in
        let done = DispatchSemaphore(value: 0)
        queue.async(flags: flags) {
            body()
            done.signal()
        }
        done.wait()
    })
}

let dispatchSites: [Site] = [
    Site("queue.sync", in: "readSerially(_:)", for: [.lock]) { visit in
        let queue = DispatchQueue(label: "site.serial")
        busy(queue, visit)
        return { readSerially(queue) }
    },
    Site("queue.sync behind a barrier", in: "readBehindBarrier(_:)", for: [.lock]) { visit in
        let queue = DispatchQueue(label: "site.concurrent", attributes: .concurrent)
        busy(queue, visit, flags: .barrier)
        return { readBehindBarrier(queue) }
    },
    Site("barrier behind a barrier", in: "writeWithBarrier(_:)", for: [.lock]) { visit in
        let queue = DispatchQueue(label: "site.writers", attributes: .concurrent)
        busy(queue, visit, flags: .barrier)
        return { writeWithBarrier(queue) }
    },
    Site("queue.sync with a busy target", in: "readTargeted(_:)", for: [.lock]) { visit in
        let target = DispatchQueue(label: "site.target")
        let queue = DispatchQueue(label: "site.child", target: target)
        busy(target, visit)
        return { readTargeted(queue) }
    },
    Site("dispatch semaphore", in: "awaitPermit(_:)", for: [.lock]) { visit in
        let semaphore = DispatchSemaphore(value: 0)
        visit.later { semaphore.signal() }
        return { awaitPermit(semaphore) }
    },
    Site("dispatch semaphore with a limit", in: "awaitPermitBriefly(_:)", for: [.lock]) { visit in
        let semaphore = DispatchSemaphore(value: 0)
        visit.later { semaphore.signal() }
        return { awaitPermitBriefly(semaphore) }
    },
    Site("dispatch group", in: "awaitGroup(_:)", for: [.lock]) { visit in
        let group = DispatchGroup()
        group.enter()
        visit.later { group.leave() }
        return { awaitGroup(group) }
    },
    Site("work item", in: "awaitItem(_:)", for: [.lock]) { visit in
        let item = DispatchWorkItem { usleep(stallMicroseconds) }
        visit.later(0) { DispatchQueue.global().async(execute: item) }
        return { awaitItem(item) }
    },
    Site("operation queue", in: "awaitOperations(_:)", for: [.lock]) { visit in
        let queue = OperationQueue()
        let done = DispatchSemaphore(value: 0)
        queue.addOperation { done.wait() }
        visit.later { done.signal() }
        return { awaitOperations(queue) }
    },
]

// MARK: - Initialized once

nonisolated(unsafe) var lazyVisit: Visit?
/// Ran by the thread that comes first; the site comes second.
private func slowly() -> Int {
    lazyBody?()
    return 4
}
nonisolated(unsafe) var lazyBody: (() -> Void)?

let lazyTable: Int = slowly()

enum Registry {
    static let shared: Int = slowly()
}

final class Catalog: Sendable {
    static let standard = Catalog()
    let size: Int
    init() { size = slowly() }
}

@inline(never) func readLazyTable() { sink &+= lazyTable }
@inline(never) func readRegistry() { sink &+= Registry.shared }
@inline(never) func readCatalog() { sink &+= Catalog.standard.size }

private func lazily(_ visit: Visit, _ touch: @escaping () -> Void) {
    visit.hold(inside: { body in
        lazyBody = body
        touch()
    })
}

let lazySites: [Site] = [
    Site("lazy global", in: "readLazyTable()", "lazyTable.accessor", for: [.lock]) { visit in
        lazily(visit) { sink &+= lazyTable }
        return { readLazyTable() }
    },
    Site("static let", in: "readRegistry()", "Registry.shared.accessor", for: [.lock]) { visit in
        lazily(visit) { sink &+= Registry.shared }
        return { readRegistry() }
    },
    Site("static let of a class", in: "readCatalog()", "Catalog.standard.accessor", for: [.lock]) {
        visit in
        lazily(visit) { sink &+= Catalog.standard.size }
        return { readCatalog() }
    },
    Site(
        "lazy global, run by the site", in: "init all", "varinit in Settings.all",
        "Settings.all.accessor", "readSettings()", for: [.sleep]
    ) { _ in
        { readSettings() }
    },
    Site("dispatch_once", in: "c_read_once", for: [.lock]) { visit in
        visit.hold(inside: { body in
            callback = body
            c_read_once(runCallback)
        })
        return { c_read_once(runCallback) }
    },
    Site("pthread_once", in: "c_read_pthread_once", for: [.lock]) { visit in
        visit.hold(
            inside: { body in
                callback = body
                c_read_pthread_once(runCallback)
            }, namesHolder: false)
        return { c_read_pthread_once(runCallback) }
    },
    Site("static local of C++", in: "cxx::Codec::instance", for: [.lock]) { visit in
        visit.hold(
            inside: { body in
                callback = body
                cxx_static_local(runCallback)
            }, namesHolder: false)
        return { cxx_static_local(runCallback) }
    },
    Site("std::call_once", in: "cxx::load_plugins", for: [.lock]) { visit in
        visit.hold(
            inside: { body in
                callback = body
                cxx_call_once(runCallback)
            }, namesHolder: false)
        return { cxx_call_once(runCallback) }
    },
].map(\.once)

nonisolated(unsafe) var callback: (() -> Void)?
let runCallback: @convention(c) () -> Void = { callback?() }

enum Settings {
    static let all: Int = {
        usleep(stallMicroseconds)
        return sink
    }()
}

@inline(never) func readSettings() { sink &+= Settings.all & 1 }

// MARK: - Time

@inline(never) func napShortly() {
    usleep(stallMicroseconds)
    sink &+= 1
}

@inline(never) func napPrecisely() {
    var time = timespec(tv_sec: 0, tv_nsec: Int(stallMicroseconds) * 1000)
    nanosleep(&time, nil)
    sink &+= 2
}

@inline(never) func napUntil() {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    time.tv_nsec += Int(stallMicroseconds) * 1000
    if time.tv_nsec >= 1_000_000_000 {
        (time.tv_sec, time.tv_nsec) = (time.tv_sec + 1, time.tv_nsec - 1_000_000_000)
    }
    while clock_nanosleep(CLOCK_MONOTONIC, 1, &time, nil) != 0 {}
    sink &+= 3
}

@inline(never) func napThread() {
    Thread.sleep(forTimeInterval: stallSeconds)
    sink &+= 4
}

@inline(never) func napInPoll() {
    poll(nil, 0, Int32(stallMicroseconds / 1000))
    sink &+= 5
}

@inline(never) func napInSelect() {
    var time = timeval(tv_sec: 0, tv_usec: Int(stallMicroseconds))
    select(0, nil, nil, nil, &time)
    sink &+= 6
}

@inline(never) func napOnTimer(_ timer: Int32) {
    var count: UInt64 = 0
    read(timer, &count, 8)
    sink &+= Int(count)
}

@inline(never) func napOnCondition(_ condition: NSCondition) {
    condition.lock()
    _ = condition.wait(until: Date(timeIntervalSinceNow: stallSeconds))
    condition.unlock()
    sink &+= 1
}

@inline(never) func retryThreeTimes() {
    for attempt in 1...3 {
        usleep(stallMicroseconds / 3)
        sink &+= attempt
    }
}

let timeSites: [Site] = [
    Site("usleep", in: "napShortly()", for: [.sleep]) { _ in { napShortly() } },
    Site("nanosleep", in: "napPrecisely()", for: [.sleep]) { _ in { napPrecisely() } },
    Site("clock_nanosleep", in: "napUntil()", for: [.sleep]) { _ in { napUntil() } },
    Site("Thread.sleep", in: "napThread()", for: [.sleep]) { _ in { napThread() } },
    Site("poll of nothing", in: "napInPoll()", for: [.sleep]) { _ in { napInPoll() } },
    Site("select of nothing", in: "napInSelect()", for: [.sleep]) { _ in { napInSelect() } },
    Site("timerfd", in: "napOnTimer(_:)", for: [.sleep]) { visit in
        let timer = site_timer_in(stallMicroseconds)
        visit.atEnd { close(timer) }
        return {
            site_timer_set(timer, stallMicroseconds)
            napOnTimer(timer)
        }
    },
    Site("condition that nobody signals", in: "napOnCondition(_:)", for: [.sleep]) { _ in
        let condition = NSCondition()
        return { napOnCondition(condition) }
    },
    Site("three naps", in: "retryThreeTimes()", for: [.sleep]) { _ in { retryThreeTimes() } },
]
