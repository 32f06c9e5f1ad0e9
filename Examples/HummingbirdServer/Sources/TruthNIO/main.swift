// Plants blocks of 60 to 500 ms in a server on SwiftNIO and holds what the agent reported against them.
//
//     truth-nio [PLANTS] [STORE]      200 plants by default; $TRUTH_PORT is the port of the plain route, for a load beside it
//     SABOTAGE=1                      one loop is left unwatched: the last line must show it

import CoreMetrics
import Foundation
import NIOCore
import NIOPosix
import StallAgent
import StallAgentNIO
import StallMetrics
import Synchronization

let arguments = CommandLine.arguments
let count = arguments.count > 1 ? Int(arguments[1]) ?? 200 : 200
let store = arguments.count > 2 ? arguments[2] : "/tmp/truth-nio-\(getpid()).sqlite"
let port = Int(ProcessInfo.processInfo.environment["TRUTH_PORT"] ?? "") ?? 18_080
let isSabotaged = ProcessInfo.processInfo.environment["SABOTAGE"] == "1"
let threshold = Duration.milliseconds(50)

let metrics = CountingMetrics()
MetricsSystem.bootstrap(metrics)
var configuration = StallMonitor.Configuration(app: "truth-nio", version: "1", store: store)
configuration.limits = .none
let monitor = try StallMonitor.start(configuration)
let reports = Mutex<[StallReport]>([])
monitor.onStall { report in reports.withLock { $0.append(report) } }
if isSabotaged {
    for (number, loop) in group.makeIterator().enumerated() where number > 0 {
        try monitor.watch(loop, as: "http/\(number)", threshold: threshold)
    }
} else {
    monitor.watch(group, as: "http", threshold: threshold)
}
monitor.watch(ownGroup, as: "own", threshold: threshold)
monitor.watchTasks(threshold: threshold)
monitor.reportsMetrics(every: .seconds(1))
monitor.watchNIOThreadPool(.singleton, as: "files", threshold: threshold)

let channelPort = try serve(.channelRead, on: group)
let ownPort = try serve(.ownChannelRead, on: ownGroup)
let server = Task { try await application(monitor, port: port).runService() }

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
    guard isConnected else { return }
    _ = text.withCString { write(descriptor, $0, strlen($0)) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    while read(descriptor, &bytes, bytes.count) > 0 {}
}

func plant(_ place: Place, _ milliseconds: Int) {
    switch place {
    case .route:
        send(
            "GET /block/\(milliseconds) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", to: port)
    case .channelRead: send("\(milliseconds)", to: channelPort)
    case .ownChannelRead: send("\(milliseconds)", to: ownPort)
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

let isOver = DispatchSemaphore(value: 0)
nonisolated(unsafe) var delegateSaw = (count: 0, of: 0)
Thread.detachNewThread {
    Thread.sleep(forTimeInterval: 1)
    var random = SystemRandomNumberGenerator()
    for number in 0..<count {
        let place = Place.allCases[number % Place.allCases.count]
        let isPool = place == .threadPool
        let milliseconds = Int.random(in: isPool ? 240...500 : 60...500, using: &random)
        _ = delegate.takeLongest()
        plant(place, milliseconds)
        Thread.sleep(forTimeInterval: 0.06)
        if place == .ownChannelRead {
            delegateSaw.of += 1
            if delegate.takeLongest() >= 50 { delegateSaw.count += 1 }
        }
    }
    Thread.sleep(forTimeInterval: 0.5)
    monitor.stop()
    isOver.signal()
}
isOver.wait()
server.cancel()
metrics.say()
judge(plants.list, reports.withLock { $0 })
exit(0)
