// Plays the phases of an agent's life under strace, for scripts/system-calls.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop

/// Starts an agent, is idle, stalls for each kind of wait, stops it, starts another one and exits with it.
///
/// Between the marks `start`, `started`, `computing`, `computed`, `stop` and `stopped` the main thread makes no system
/// call of its own.
func playCalls(_ directory: String) throws {
    let stage = Stage(directory)
    EventRunLoop.main.run(until: .now + .milliseconds(10))
    let waits = try Waits(directory)
    mark("start")
    let monitor = try StallMonitor.start(stage.configuration { $0.threads = .all })
    monitor.watch(EventRunLoop.main, as: "main")
    mark("started")
    stage.rest(.milliseconds(500))
    nameThreads()
    mark("idle")
    stage.rest(.seconds(1))
    mark("stalls")
    stage.stall(monitor)
    stage.stall(monitor) {
        mark("computing")
        host_spin(300_000_000)
        mark("computed")
    }
    for wait in waits.all { stage.stall(monitor, wait) }
    mark("stop")
    monitor.stop(within: .seconds(5))
    mark("stopped")
    try playOptions(stage)
    mark("stopped")
    var configuration = stage.configuration()
    configuration.store += "2"
    let last = try StallMonitor.start(configuration)
    last.watch(EventRunLoop.main, as: "main")
    stage.settle()
    nameThreads()
    mark("exit")
    exit(0)
}

/// What is only there for apps that ask for it: settings, callbacks, queues, systemd.
private func playOptions(_ stage: Stage) throws {
    var configuration = stage.configuration()
    configuration.store += "1"
    configuration.settings = stage.directory + "/settings.json"
    setenv("NOTIFY_SOCKET", stage.directory + "/notify", 1)
    let queue = DispatchQueue(label: "queue")
    mark("options")
    let monitor = try StallMonitor.start(configuration)
    monitor.onStall { _ in }
    monitor.watch(EventRunLoop.main, as: "main")
    monitor.watch(queue, as: "queue")
    monitor.notifiesSystemd()
    mark("optionsOn")
    stage.settle()
    nameThreads()
    try "{\"threshold_ms\": 90}".write(
        toFile: stage.directory + "/settings.json", atomically: true, encoding: .utf8)
    queue.async {
        mark("mine")
        usleep(300_000)
    }
    stage.stall(monitor)
    stage.rest(.milliseconds(200))
    mark("optionsOff")
    monitor.stop(within: .seconds(5))
}

/// A system call that strace shows and that does nothing.
private func mark(_ name: String) { _ = access("/host-safety-mark/" + name, F_OK) }

/// Marks what the threads are called; strace does not see names that another thread gives.
private func nameThreads() {
    for task in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? [] {
        let name = try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
        mark("thread/\(task)/" + (name ?? "").trimmingCharacters(in: .whitespacesAndNewlines))
    }
}

/// Waits of 250 ms, one for each way in which the agent looks into a wait.
private struct Waits {
    let all: [@Sendable () -> Void]

    init(_ directory: String) throws {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        let pipe = (read: ends[0], write: ends[1])
        let first = open(directory + "/lock", O_RDWR | O_CREAT, 0o600)
        let second = open(directory + "/lock", O_RDWR)
        let socket = connectedSocket()
        let mutex = NSLock()
        all = [
            {
                after { _ = write(pipe.write, "x", 1) }
                var byte: UInt8 = 0
                _ = read(pipe.read, &byte, 1)
            },
            {
                mutex.lock()
                after { mutex.unlock() }
                mutex.lock()
                mutex.unlock()
            },
            {
                host_lock_file(first, Int16(F_WRLCK), false)
                after { host_lock_file(first, Int16(F_UNLCK), false) }
                host_lock_file(second, Int16(F_WRLCK), true)
            },
            {
                var request = pollfd(fd: pipe.read, events: Int16(POLLIN), revents: 0)
                _ = poll(&request, 1, 250)
            },
            {
                var (readers, limit) = (fd_set(), timeval(tv_sec: 0, tv_usec: 250_000))
                _ = select(1, &readers, nil, nil, &limit)
            },
            {
                host_wait_in_epoll(250)
            },
            {
                var byte: UInt8 = 0
                _ = recv(socket, &byte, 1, 0)
            },
        ]
    }
}

private func after(_ body: @escaping @Sendable () -> Void) {
    Thread.detachNewThread {
        mark("mine")
        usleep(250_000)
        body()
    }
}

/// One of the internet whose `recv` waits 250 ms.
private func connectedSocket() -> Int32 {
    let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(9).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            _ = connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    var limit = timeval(tv_sec: 0, tv_usec: 250_000)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    return socket
}
