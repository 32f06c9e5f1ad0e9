// The planted stalls: one function per location, so that reports can be matched, and the durations measured by the
// plants.

import Foundation
import Synchronization

/// Where a block was planted.
enum Place: String, CaseIterable {
    case route, routeOnExecutor, channelRead, ownChannelRead, futureMap, scheduledTask
    case unary, unaryOnExecutor, threadPool
    /// In the body of an answer, which is written after the middleware has returned.
    case body
    /// A route, and a body, of a server that has Hummingbird's own tracing and no labels.
    case tracedRoute, tracedBody

    /// Those of a process whose global executor is NIO's.
    static let takenOver: [Place] = [.route, .unary, .channelRead]
    /// Methods of gRPC.
    var isCall: Bool { self == .unary || self == .unaryOnExecutor }
}

/// One planted block, by the clock of the code that blocked.
struct Plant {
    var place: Place
    var loop: String
    var request: String?
    var began: Double
    var ended: Double
}

final class Plants: Sendable {
    private let all = Mutex<[Plant]>([])
    var list: [Plant] { all.withLock { $0 } }

    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) * 1000 + Double(time.tv_nsec) / 1_000_000
    }

    func note(_ place: Place, loop: String, request: String? = nil, _ body: () -> Void) {
        let began = Self.now()
        body()
        let plant = Plant(
            place: place, loop: loop, request: request, began: began, ended: Self.now())
        all.withLock { $0.append(plant) }
    }
}

// Not optimized: a jump to usleep at the end would take the function off the stack.
@inline(never) @_optimize(none) func stallInRoute(_ milliseconds: Int) {
    usleep(UInt32(milliseconds) * 1000)
}
@inline(never) @_optimize(none) func stallInBody(_ milliseconds: Int) {
    usleep(UInt32(milliseconds) * 1000)
}
@inline(never) @_optimize(none) func stallInUnary(_ milliseconds: Int) {
    usleep(UInt32(milliseconds) * 1000)
}
@inline(never) @_optimize(none) func stallInChannelRead(_ milliseconds: Int) {
    usleep(UInt32(milliseconds) * 1000)
}
@inline(never) @_optimize(none) func stallInFutureMap(_ milliseconds: Int) {
    usleep(UInt32(milliseconds) * 1000)
}
@inline(never) @_optimize(none) func stallInScheduledTask(_ milliseconds: Int) {
    usleep(UInt32(milliseconds) * 1000)
}
@inline(never) @_optimize(none) func stallInThreadPool(_ milliseconds: Int) {
    usleep(UInt32(milliseconds) * 1000)
}

extension Place {
    /// The function that is to be found on a sample's stack.
    var function: String {
        switch self {
        case .route, .routeOnExecutor, .tracedRoute: "stallInRoute(_:)"
        case .body, .tracedBody: "stallInBody(_:)"
        case .unary, .unaryOnExecutor: "stallInUnary(_:)"
        case .channelRead, .ownChannelRead: "stallInChannelRead(_:)"
        case .futureMap: "stallInFutureMap(_:)"
        case .scheduledTask: "stallInScheduledTask(_:)"
        case .threadPool: "stallInThreadPool(_:)"
        }
    }
}
