// Loops that have many items already: what one more costs, and what the others cost an iteration or a sleep. CPU time of the
// loop's thread, in nanoseconds. Making an item counts as part of adding it, for NIO makes it in the same call.

import CPeers
import Foundation
import StallRunLoop

/// What one contestant's loop does with many items.
struct LoadedLoop {
    let name: String
    /// The largest size to run; beyond it a round would take minutes, or more descriptors than there are.
    var limit = 1_000_000
    /// An operation costs so much at large sizes that few are enough.
    var isLinear = false
    /// Items that are there, items that are added, changed and removed.
    let costs: (_ present: Int, _ count: Int) -> load_costs
}

extension Bench {
    mutating func load(sizes: [Int]) {
        for size in sizes {
            loadItems("timer", size, change: "re-date", timerLoops)
            loadItems("source", size, sourceLoops)
            loadItems("observer", size, observerLoops)
            loadItems("descriptor", size, descriptorLoops)
            compare("iteration, idle sources", size: size, idleContestants(size))
            compare("iteration, waiting blocks", size: size, waitingContestants(size))
            compare("sleep, tolerant timers", size: size, sleepContestants(size))
        }
        for size in [1, 10, 100, 1_000] {
            compare("iteration, signalled sources", size: size, readyContestants(size))
            compare("iteration, observers", size: size, observedContestants(size))
        }
    }

    private mutating func loadItems(
        _ item: String, _ size: Int, change: String? = nil, _ loops: [LoadedLoop]
    ) {
        let phases =
            ["\(item) add", "\(item) invalidate"] + (change.map { ["\(item) \($0)"] } ?? [])
        let contestants = loops.filter { size <= $0.limit }.map { loop in
            GroupedContestant(name: loop.name) {
                let costs = onThread { loop.costs(size, loop.isLinear ? 200 : 2_000) }
                return [costs.add, costs.remove, costs.change]
            }
        }
        compare(phases, size: size, contestants)
    }
}

/// Numbers without a system call for each. One thread measures at a time.
private nonisolated(unsafe) var state: UInt64 = 88_172_645_463_325_252
func random(below limit: Int) -> Int {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return Int(state >> 8) % limit
}

/// Nanoseconds of CPU that each of `count` steps takes.
func cpu(_ count: Int, _ body: () -> Void) -> Double {
    let began = load_cpu_ns()
    body()
    return Double(load_cpu_ns() - began) / Double(count)
}

private nonisolated(unsafe) let timerLoops =
    [
        LoadedLoop(name: "EventRunLoop default") { ourTimers($0, $1, .default) },
        LoadedLoop(name: "EventRunLoop common") { ourTimers($0, $1, .common) },
        LoadedLoop(name: "libuv") { load_uv_timers(UInt32($0), UInt32($1)) },
        LoadedLoop(name: "GLib") { load_glib_timers(UInt32($0), UInt32($1)) },
        LoadedLoop(name: "SwiftNIO", isLinear: true) { loadTimersNIO($0, $1) },
    ] + coreFoundationLoops(limit: 100_000, timersCF)

private nonisolated(unsafe) let sourceLoops =
    [
        LoadedLoop(name: "EventRunLoop default") { ourSources($0, $1, .default) },
        LoadedLoop(name: "EventRunLoop common") { ourSources($0, $1, .common) },
        LoadedLoop(name: "libuv, asyncs") { load_uv_sources(UInt32($0), UInt32($1)) },
        LoadedLoop(name: "GLib") { load_glib_sources(UInt32($0), UInt32($1)) },
    ] + coreFoundationLoops(limit: 1_000_000, sourcesCF)

private nonisolated(unsafe) let observerLoops =
    [
        LoadedLoop(name: "EventRunLoop default") { ourObservers($0, $1, .default) },
        LoadedLoop(name: "EventRunLoop common") { ourObservers($0, $1, .common) },
        LoadedLoop(name: "libuv, prepares") { load_uv_observers(UInt32($0), UInt32($1)) },
    ] + coreFoundationLoops(limit: 10_000, observersCF)

private nonisolated(unsafe) let descriptorLoops = [
    LoadedLoop(name: "EventRunLoop default", limit: mostDescriptors) {
        ourDescriptors($0, $1, .default)
    },
    LoadedLoop(name: "EventRunLoop common", limit: mostDescriptors) {
        ourDescriptors($0, $1, .common)
    },
    LoadedLoop(name: "libuv", limit: mostDescriptors) { present, count in
        withDescriptors(present + count) {
            load_uv_descriptors($0, UInt32(present), UInt32(count))
        }
    },
    LoadedLoop(name: "GLib", limit: min(10_000, mostDescriptors)) { present, count in
        withDescriptors(present + count) {
            load_glib_descriptors($0, UInt32(present), UInt32(count))
        }
    },
]

/// As many as this process may have, less some for everything else. A million needs `ulimit -n 1048576`.
private let mostDescriptors: Int = {
    var limit = rlimit(rlim_cur: 1_048_576, rlim_max: 1_048_576)
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    if setrlimit(resource, &limit) != 0 {
        getrlimit(resource, &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }
    return Int(limit.rlim_cur) - 3_000
}()

private func coreFoundationLoops(
    limit: Int, _ costs: @escaping (Int, Int, Bool) -> load_costs
) -> [LoadedLoop] {
    [
        LoadedLoop(name: "CFRunLoop default", limit: limit, isLinear: true) {
            costs($0, $1, false)
        },
        LoadedLoop(name: "CFRunLoop common", limit: limit, isLinear: true) { costs($0, $1, true) },
    ]
}

/// Duplicates of one descriptor that is never ready, closed afterwards.
func withDescriptors(_ count: Int, _ body: (UnsafePointer<CInt>) -> load_costs) -> load_costs {
    let first = peers_eventfd()
    let descriptors = [first] + (1..<max(2, count)).map { _ in dup(first) }
    defer { for descriptor in descriptors { close(descriptor) } }
    precondition(descriptors.allSatisfy { $0 >= 0 })
    return body(descriptors)
}
