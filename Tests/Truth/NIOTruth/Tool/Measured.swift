// What watching costs a server: CPU per request, and CPU nanoseconds per tick and job. scripts/nio-cost runs it.

import Foundation
import Hummingbird
import Logging
import NIOPosix
import StallAgent
import StallAgentNIO
import StallDoor
import Synchronization

private let served = Atomic<Int>(0)

private struct Counting<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        served.add(1, ordering: .relaxed)
        return try await next(request, context)
    }
}

private func cpuMicroseconds() -> Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(0) {
        $0 + Int($1.tv_sec) * 1_000_000 + Int($1.tv_usec)
    }
}

/// When a measured server ends.
enum MeasuredLength {
    case seconds(Double), requests(Int)

    /// `10` seconds, or `10000r` requests.
    init?(_ text: String) {
        if text.hasSuffix("r"), let count = Int(text.dropLast()) {
            self = .requests(count)
        } else if let seconds = Double(text) {
            self = .seconds(seconds)
        } else {
            return nil
        }
    }
}

/// How many times slower than usual the server runs, under Valgrind: its thresholds are as much longer, so that the
/// watchdog polls as often a request as it does otherwise.
private let slowness = Int(ProcessInfo.processInfo.environment["SLOWNESS"] ?? "") ?? 1

/// Serves `/plain` for some time, or some requests, from the first one on. Prints the requests, the CPU time, and the
/// stalls that were reported.
func serveMeasured(
    _ way: String, _ length: MeasuredLength, store: String, port: Int
) async throws -> Int32 {
    let stalls = Atomic<Int>(0)
    var monitor: StallMonitor?
    if way != "alone" {
        let started = try StallMonitor.start(.init(app: "cost", version: "1", store: store))
        started.watch(
            MultiThreadedEventLoopGroup.singleton, as: "http", threshold: threshold * slowness)
        started.watchTasks(threshold: .milliseconds(100) * slowness)
        started.onStall { report in
            guard report.verdict == .stalled else { return }
            stalls.add(1, ordering: .relaxed)
            print("stall: \(report.loop) for \(report.duration)")
        }
        monitor = started
    }
    let router = Router()
    router.add(middleware: Counting())
    if way == "labelled", let monitor { router.add(middleware: Labels(monitor: monitor)) }
    router.get("/plain") { _, _ in "hello" }
    var logger = Logger(label: "server")
    logger.logLevel = .error
    let app = Application(
        router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)),
        logger: logger)
    let server = Task { try await app.runService() }
    print("serving")
    while served.load(ordering: .relaxed) == 0 { try await Task.sleep(for: .milliseconds(5)) }
    let (cpu, count, began) = (
        cpuMicroseconds(), served.load(ordering: .relaxed), ContinuousClock.now
    )
    switch length {
    case .seconds(let seconds): try await Task.sleep(for: .seconds(seconds))
    case .requests(let wanted):
        while served.load(ordering: .relaxed) < wanted { try await Task.sleep(for: .seconds(1)) }
    }
    let used = cpuMicroseconds() - cpu
    let requests = served.load(ordering: .relaxed) - count
    let elapsed = began.duration(to: .now) / .seconds(1)
    server.cancel()
    monitor?.stop()
    print(
        String(
            format: "requests=%d cpu_us=%d cpu_us_per_request=%.3f cpu_percent=%.0f stalls=%d",
            requests, used, Double(used) / Double(max(1, requests)),
            Double(used) / elapsed / 10_000, stalls.load(ordering: .relaxed)))
    return 0
}

/// Prints the CPU nanoseconds of one tick or one job. One way a process: a hook that was used once leaves traces.
func printCost(of what: String, _ way: String, store: String) throws {
    var monitor: StallMonitor?
    if way != "alone" { monitor = try .start(.init(app: "cost", version: "1", store: store)) }
    let nanoseconds = what == "job" ? jobCost(monitor) : tickCost(monitor)
    monitor?.stop()
    print(String(format: "%.1f", nanoseconds))
}

private func threadNanoseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

// Swift's Glibc has no epoll.
@_silgen_name("epoll_create1") private func epollCreate(_ flags: Int32) -> Int32
@_silgen_name("epoll_ctl") private func epollControl(
    _ set: Int32, _ operation: Int32, _ descriptor: Int32, _ event: UnsafeMutableRawPointer
) -> Int32
@_silgen_name("epoll_wait") private func epollWait(
    _ set: Int32, _ events: UnsafeMutableRawPointer, _ limit: Int32, _ timeout: Int32
) -> Int32

/// One wait that returns at once, as in a loop that always has an event.
private func tickCost(_ monitor: StallMonitor?) -> Double {
    let used = Atomic<Int>(0)
    let isDone = DispatchSemaphore(value: 0)
    let rounds = 1_000_000
    Thread.detachNewThread {
        var ends: [Int32] = [0, 0]
        pipe(&ends)
        write(ends[1], "x", 1)
        // A struct epoll_event: EPOLLIN.
        let event = UnsafeMutableRawPointer.allocate(byteCount: 16, alignment: 8)
        event.initializeMemory(as: UInt32.self, repeating: 0, count: 4)
        event.storeBytes(of: 1, as: UInt32.self)
        let set = epollCreate(0)
        guard epollControl(set, 1, ends[0], event) == 0 else { fatalError("epoll_ctl \(errno)") }
        let waits = monitor?.watchWaits(ofCurrentThreadAs: "loop")
        Thread.sleep(forTimeInterval: 0.05)
        let before = threadNanoseconds()
        for _ in 0..<rounds where epollWait(set, event, 1, -1) != 1 { fatalError("epoll_wait") }
        used.store(threadNanoseconds() - before, ordering: .relaxed)
        waits?.stop()
        isDone.signal()
    }
    isDone.wait()
    return Double(used.load(ordering: .relaxed)) / Double(rounds)
}

/// Eight tasks that do nothing but yield: each yield is one job. The CPU time of the process, the agent's included.
private func jobCost(_ monitor: StallMonitor?) -> Double {
    monitor?.watchTasks()
    Thread.sleep(forTimeInterval: 0.2)
    let rounds = 100_000
    let isDone = DispatchSemaphore(value: 0)
    let before = cpuMicroseconds()
    Task.detached {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<rounds { await Task.yield() } }
            }
        }
        isDone.signal()
    }
    isDone.wait()
    return Double(cpuMicroseconds() - before) * 1000 / Double(8 * rounds)
}
