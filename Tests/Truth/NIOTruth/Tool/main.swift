// A server on SwiftNIO that blocks in known places; what the agent reports is compared with them. docs/truth.md.
//
//     truth-nio plants [COUNT] [STORE]    in routes, channels, futures, scheduled tasks, gRPC methods, the thread pool
//     truth-nio loops [COUNT] [STORE]     the same where tasks run on the loops (NIO's global executor)
//     truth-nio checks [STORE]            what has to hold beside it
//     truth-nio serve WAY LENGTH [STORE]  a plain server for measurements; WAY: alone, watched, labelled; LENGTH: 10 s, 10000r
//     truth-nio cost WHAT WAY [STORE]     nanoseconds of CPU of a loop's tick or a task's job; WAY: alone, watched
//
// $TRUTH_PORT is the first of five ports (18080). SABOTAGE=1: the waits of one loop are not observed, which the judgement
// must show. SLOWNESS=100 multiplies the thresholds of `serve`.

import Foundation
import NIOCore
import NIOPosix

func argument(_ number: Int) -> String? {
    CommandLine.arguments.count > number ? CommandLine.arguments[number] : nil
}

func storePath(_ number: Int) -> String { argument(number) ?? "/tmp/truth-nio-\(getpid()).sqlite" }

/// Runs tasks to their end. This thread only waits: it is none of the server's.
func finish(_ body: @escaping @Sendable () async throws -> Int32) -> Never {
    Task.detached {
        do { exit(try await body()) } catch { fatalError("\(error)") }
    }
    while true { sleep(1000) }
}

setvbuf(stdout, nil, _IOLBF, 0)
let environment = ProcessInfo.processInfo.environment
let port = Int(environment["TRUTH_PORT"] ?? "") ?? 18_080
let mode = argument(1) ?? "plants"

switch mode {
case "plants", "loops":
    let isTakenOver = mode == "loops"
    if isTakenOver,
        !NIOSingletons.unsafeTryInstallSingletonPosixEventLoopGroupAsConcurrencyGlobalExecutor()
    {
        fatalError("NIO's global executor could not be installed")
    }
    let places = isTakenOver ? Place.takenOver : Place.allCases
    let truth = Truth(
        places: places.filter { hasGRPC || !$0.isCall },
        count: argument(2).flatMap { Int($0) } ?? 200, store: storePath(3), port: port,
        isTakenOver: isTakenOver, isSabotaged: environment["SABOTAGE"] == "1")
    try truth.run()
    exit(0)
case "checks":
    let checks = try Checks(store: storePath(2))
    finish { try await checks.run() ? 0 : 1 }
case "serve":
    let (way, length) = (argument(2) ?? "alone", argument(3).flatMap { MeasuredLength($0) })
    let (store, firstPort) = (storePath(4), port)
    finish { try await serveMeasured(way, length ?? .seconds(10), store: store, port: firstPort) }
case "cost":
    try printCost(of: argument(2) ?? "tick", argument(3) ?? "alone", store: storePath(4))
default: fatalError("unknown mode \(mode)")
}
