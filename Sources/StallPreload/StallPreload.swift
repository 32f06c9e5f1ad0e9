// libstallwatch-agent.so: the agent in a program that was not built with it. libstallwatch-preload.so (CStallPreload)
// loads it and decides which threads are loops; here their waits are watched.

internal import CBlockingCalls
internal import CEpollDoor
package import CStallPreload
internal import Logging
internal import StallAgent
internal import StallBlocking
internal import StallDoor
internal import Synchronization

/// The monitor of the process, retained for good. A number, because a lock could be held forever in a forked child.
private let running = Atomic<UInt>(0)

private var monitor: StallMonitor? {
    UnsafeRawPointer(bitPattern: running.load(ordering: .acquiring)).map {
        Unmanaged<StallMonitor>.fromOpaque($0).takeUnretainedValue()
    }
}

/// Starts the agent, and fills in its functions. Not private, so that a release build exports it.
@_cdecl("stallwatch_preload_start")
package func start(
    _ interface: UInt32, _ settings: UnsafePointer<stall_preload_settings>?,
    _ agent: UnsafeMutablePointer<stall_preload_agent>?
) -> Bool {
    guard interface == UInt32(STALL_PRELOAD_INTERFACE), let settings, let agent else {
        return false
    }
    guard let started = try? StallMonitor.start(configuration(settings.pointee)),
        started.isWatching
    else { return false }
    forbidBlocking(settings.pointee, started)
    running.store(
        UInt(bitPattern: Unmanaged.passRetained(started).toOpaque()), ordering: .releasing)
    agent.initialize(
        to: stall_preload_agent(
            watch: watch, unwatch: unwatch, enter: stall_door_told_enter,
            leave: stall_door_told_leave, restart: restart,
            finish: { _ = monitor?.stop(within: .seconds(2)) }))
    return true
}

private func configuration(_ given: stall_preload_settings) -> StallMonitor.Configuration {
    var wanted = StallMonitor.Configuration(
        app: String(cString: given.app),
        version: given.version.map { String(cString: $0) } ?? "0",
        store: String(cString: given.store))
    wanted.settings = given.settings.map { String(cString: $0) }
    if given.threshold_ms != 0 { wanted.threshold = .milliseconds(given.threshold_ms) }
    if given.records_all_threads { wanted.threads = .all }
    // Standard error is the program's.
    if !given.logs {
        wanted.logger = Logger(label: "stallwatch", factory: { _ in SwiftLogNoOpLogHandler() })
    }
    return wanted
}

private func forbidBlocking(_ given: stall_preload_settings, _ monitor: StallMonitor) {
    guard let set = given.set_blocking else { return }
    let rules = given.allowed.map { String(cString: $0).split(separator: "\n").map(String.init) }
    stall_blocking_use(set)
    monitor.forbidBlocking(allowing: rules ?? [])
}

/// In a forked child.
private func restart(_ settings: UnsafePointer<stall_preload_settings>) -> Bool {
    guard let monitor, monitor.restartAfterFork() else { return false }
    forbidBlocking(settings.pointee, monitor)
    return true
}

private typealias IsOver = @convention(c) (UnsafeRawPointer) -> Bool

/// A loop of the preloaded object's. Its memory stays as long as the process.
private struct Loop: @unchecked Sendable {
    let isOver: IsOver
    let context: UnsafeRawPointer
}

private func watch(
    _ name: UnsafePointer<CChar>, _ isOver: IsOver, _ context: UnsafeRawPointer
) -> UnsafeMutableRawPointer? {
    let loop = Loop(isOver: isOver, context: context)
    return monitor?.watchToldWaits(as: String(cString: name)) { loop.isOver(loop.context) }
        .map { Unmanaged.passRetained($0).toOpaque() }
}

private func unwatch(_ watch: UnsafeMutableRawPointer) {
    Unmanaged<WatchedWaits>.fromOpaque(watch).takeRetainedValue().stop()
}
