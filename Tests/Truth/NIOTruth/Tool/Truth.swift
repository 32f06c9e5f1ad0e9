// Plants blocks of 60 to 500 ms and compares what the agent reported with them.

import CoreMetrics
import Foundation
import NIOCore
import NIOPosix
import StallAgent
import StallAgentNIO
import StallMetrics
import Synchronization
import Tracing

/// For tests, in StallDoor: what the program cannot import.
@_silgen_name("stall_door_disable_here") func disableDoorHere()
@_silgen_name("stall_door_disable") func disableDoor(_ isDisabled: Bool)

nonisolated(unsafe) var delegateSaw = (count: 0, of: 0)
let threshold = Duration.milliseconds(50)

/// Sends some bytes and waits for the end of the answer.
func send(_ text: String, to port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let isConnected = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
    guard isConnected else { return print("no connection to port \(port)") }
    _ = text.withCString { write(descriptor, $0, strlen($0)) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    while read(descriptor, &bytes, bytes.count) > 0 {}
}

/// One process under test.
struct Truth {
    let places: [Place]
    let count: Int
    let store: String
    /// Consecutive: Hummingbird on the pool and on the executor, gRPC the same, Hummingbird with its own tracing.
    let port: Int
    /// Tasks run on the loops.
    let isTakenOver: Bool
    let isSabotaged: Bool

    func run() throws {
        let metrics = CountingMetrics()
        MetricsSystem.bootstrap(metrics)
        InstrumentationSystem.bootstrap(tracer)
        var configuration = StallMonitor.Configuration(
            app: "truth-nio", version: "1", store: store, threshold: threshold)
        configuration.limits = .none
        let monitor = try StallMonitor.start(configuration)
        let reports = Mutex<[StallReport]>([])
        monitor.onStall { report in reports.withLock { $0.append(report) } }
        monitor.watch(group, as: "http", threshold: threshold)
        monitor.watch(ownGroup, as: "own", threshold: threshold)
        monitor.watchTasks(threshold: threshold)
        monitor.reportsMetrics(every: .seconds(1))
        monitor.watchNIOThreadPool(.singleton, as: "files", threshold: threshold)

        let ports = (
            channel: try serve(.channelRead, on: group),
            own: try serve(.ownChannelRead, on: ownGroup)
        )
        let servers = startServers(monitor)
        Thread.sleep(forTimeInterval: 1)
        // From now on this loop passes for waiting.
        if isSabotaged {
            for loop in group.makeIterator().prefix(1) { loop.execute { disableDoorHere() } }
        }
        var random = SystemRandomNumberGenerator()
        for number in 0..<count {
            let place = places[number % places.count]
            let range = place == .threadPool ? 240...500 : 60...500
            _ = delegate.takeLongest()
            plant(place, Int.random(in: range, using: &random), ports)
            Thread.sleep(forTimeInterval: 0.06)
            if place == .ownChannelRead {
                delegateSaw.of += 1
                if delegate.takeLongest() >= 50 { delegateSaw.count += 1 }
            }
        }
        Thread.sleep(forTimeInterval: 0.5)
        monitor.stop()
        for server in servers { server.cancel() }
        metrics.say()
        judge(plants.list, reports.withLock { $0 })
    }

    private func startServers(_ monitor: StallMonitor) -> [Task<Void, any Error>] {
        let (port, isTakenOver) = (port, isTakenOver)
        let ofTasks: @Sendable () -> String = { isTakenOver ? currentLoopName() : "tasks" }
        var servers: [Task<Void, any Error>] = [
            Task.detached {
                try await application(monitor, port: port, .route, loop: ofTasks).runService()
            },
            Task.detached {
                try await application(
                    monitor, port: port + 4, .tracedRoute, .tracedBody, isTraced: true,
                    loop: ofTasks
                ).runService()
            },
            Task.detached {
                try await serveOrders(
                    Orders(monitor: monitor, place: .unary, loop: ofTasks), port: port + 2)
            },
        ]
        guard !isTakenOver else { return servers }
        let executor = monitor.taskExecutor
        servers += [
            Task.detached(executorPreference: executor) {
                try await application(monitor, port: port + 1, .routeOnExecutor) { "task executor" }
                    .runService()
            },
            Task.detached(executorPreference: executor) {
                try await serveOrders(
                    Orders(monitor: monitor, place: .unaryOnExecutor) { "task executor" },
                    port: port + 3)
            },
        ]
        return servers
    }

    private func plant(_ place: Place, _ milliseconds: Int, _ ports: (channel: Int, own: Int)) {
        func request(_ path: String) -> String {
            "GET /\(path)/\(milliseconds) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        }
        switch place {
        case .route: send(request("block"), to: port)
        case .body: send(request("body"), to: port)
        case .tracedRoute: send(request("block"), to: port + 4)
        case .tracedBody: send(request("body"), to: port + 4)
        case .routeOnExecutor: send(request("block"), to: port + 1)
        case .unary: callOrders(milliseconds, port: port + 2)
        case .unaryOnExecutor: callOrders(milliseconds, port: port + 3)
        case .channelRead: send("\(milliseconds)", to: ports.channel)
        case .ownChannelRead: send("\(milliseconds)", to: ports.own)
        case .futureMap:
            let promise = group.next().makePromise(of: Void.self)
            let mapped = promise.futureResult.map {
                plants.note(.futureMap, loop: currentLoopName()) { stallInFutureMap(milliseconds) }
            }
            promise.succeed(())
            try? mapped.wait()
        case .scheduledTask:
            let task = group.next().scheduleTask(in: .milliseconds(5)) {
                plants.note(.scheduledTask, loop: currentLoopName()) {
                    stallInScheduledTask(milliseconds)
                }
            }
            try? task.futureResult.wait()
        case .threadPool:
            // All threads are occupied, and one more item waits.
            let (pool, done) = (NIOThreadPool.singleton, DispatchGroup())
            plants.note(.threadPool, loop: "files") {
                for _ in 0..<pool.numberOfThreads + 1 {
                    done.enter()
                    pool.submit { _ in
                        stallInThreadPool(milliseconds / 2)
                        done.leave()
                    }
                }
                done.wait()
            }
        }
    }
}
