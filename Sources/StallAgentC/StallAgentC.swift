// Implements stall_agent.h: converts between C's values and StallAgent's, and decides nothing. Public, so that a
// release build exports the functions.

public import CStallAgent
internal import Dispatch
internal import StallAgent
internal import StallDoor

@_cdecl("stall_agent_start")
public func start(
    _ configuration: UnsafePointer<stall_agent_configuration>?,
    _ error: UnsafeMutablePointer<CChar>?, _ capacity: Int
) -> OpaquePointer? {
    guard let given = configuration?.pointee else {
        write("there is no configuration", in: error, capacity)
        return nil
    }
    var wanted = StallMonitor.Configuration(
        app: text(given.app) ?? "", version: text(given.version) ?? "0")
    if let store = text(given.store) { wanted.store = store }
    if given.threshold_ms != 0 { wanted.threshold = .milliseconds(given.threshold_ms) }
    wanted.symbolizes = given.without_symbols == 0
    do {
        return try retained(StallMonitor.start(wanted))
    } catch let reason {
        write(reason.description, in: error, capacity)
        return nil
    }
}

@_cdecl("stall_agent_stop")
public func stop(_ agent: OpaquePointer?) {
    guard let agent else { return }
    let monitor = Unmanaged<StallMonitor>.fromOpaque(UnsafeRawPointer(agent)).takeRetainedValue()
    monitor.stop()
}

@_cdecl("stall_agent_watch_current_thread")
public func watchCurrentThread(
    _ agent: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ threshold: UInt32
) -> OpaquePointer? {
    guard let monitor: StallMonitor = borrowed(agent) else { return nil }
    return retained(
        monitor.watchCurrentThread(as: text(name) ?? "thread", threshold: duration(threshold)))
}

@_cdecl("stall_agent_watch_main_queue")
public func watchMainQueue(_ agent: OpaquePointer?, _ threshold: UInt32) {
    guard let monitor: StallMonitor = borrowed(agent) else { return }
    monitor.watch(DispatchQueue.main, as: "main-queue", threshold: duration(threshold))
}

/// `stall_agent_watch_waits`, after libstallwaits has made sure that it sees the waits.
@_cdecl("stall_agent_open_door")
public func openDoor(
    _ agent: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ threshold: UInt32
) -> OpaquePointer? {
    guard let monitor: StallMonitor = borrowed(agent) else { return nil }
    return retained(
        monitor.watchWaits(
            ofCurrentThreadAs: text(name) ?? "loop", threshold: duration(threshold)))
}

@_cdecl("stall_watched_waits_count")
public func count(_ waits: OpaquePointer?) -> UInt64 {
    (borrowed(waits) as WatchedWaits?)?.waitCount ?? 0
}

@_cdecl("stall_watched_waits_free")
public func free(waits: OpaquePointer?) {
    guard let waits else { return }
    let watch = Unmanaged<WatchedWaits>.fromOpaque(UnsafeRawPointer(waits)).takeRetainedValue()
    watch.stop()
}

@_cdecl("stall_begin")
public func begin(_ marks: OpaquePointer?) {
    (borrowed(marks) as WatchedThread?)?.begin()
}

@_cdecl("stall_end")
public func end(_ marks: OpaquePointer?) {
    (borrowed(marks) as WatchedThread?)?.end()
}

@_cdecl("stall_thread_marks_free")
public func free(_ marks: OpaquePointer?) {
    guard let marks else { return }
    Unmanaged<WatchedThread>.fromOpaque(UnsafeRawPointer(marks)).release()
}

@_cdecl("stall_set_activity")
public func setActivity(_ marks: OpaquePointer?, _ label: UnsafePointer<CChar>?) {
    (borrowed(marks) as WatchedThread?)?.activity = text(label)
}

private func retained(_ object: some AnyObject) -> OpaquePointer {
    OpaquePointer(Unmanaged.passRetained(object).toOpaque())
}

private func borrowed<Object: AnyObject>(_ handle: OpaquePointer?) -> Object? {
    handle.map { Unmanaged<Object>.fromOpaque(UnsafeRawPointer($0)).takeUnretainedValue() }
}

private func text(_ pointer: UnsafePointer<CChar>?) -> String? {
    pointer.map { String(cString: $0) }
}

private func duration(_ milliseconds: UInt32) -> Duration? {
    milliseconds == 0 ? nil : .milliseconds(milliseconds)
}

private func write(_ message: String, in buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int) {
    guard let buffer, capacity > 0 else { return }
    let bytes = message.utf8.prefix(capacity - 1)
    for (index, byte) in bytes.enumerated() { buffer[index] = CChar(bitPattern: byte) }
    buffer[bytes.count] = 0
}
