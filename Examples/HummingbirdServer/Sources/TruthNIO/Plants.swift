// The planted stalls: one function per location, so that reports can be matched, and the durations measured by the
// plants.

import Foundation
import Synchronization

/// Where a block was planted.
enum Place: String, CaseIterable {
    case route, channelRead, ownChannelRead, futureMap, scheduledTask, threadPool
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

@inline(never) func stallInRoute(_ milliseconds: Int) { usleep(UInt32(milliseconds) * 1000) }
@inline(never) func stallInChannelRead(_ milliseconds: Int) { usleep(UInt32(milliseconds) * 1000) }
@inline(never) func stallInFutureMap(_ milliseconds: Int) { usleep(UInt32(milliseconds) * 1000) }
@inline(never) func stallInScheduledTask(_ milliseconds: Int) {
    usleep(UInt32(milliseconds) * 1000)
}
@inline(never) func stallInThreadPool(_ milliseconds: Int) { usleep(UInt32(milliseconds) * 1000) }

extension Place {
    /// The function that is to be found on a sample's stack.
    var function: String {
        switch self {
        case .route: "stallInRoute(_:)"
        case .channelRead, .ownChannelRead: "stallInChannelRead(_:)"
        case .futureMap: "stallInFutureMap(_:)"
        case .scheduledTask: "stallInScheduledTask(_:)"
        case .threadPool: "stallInThreadPool(_:)"
        }
    }
}
