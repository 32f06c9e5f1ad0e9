// The classic experiments with run loops, small enough to read and to change.
//
//     swift run RunLoopTour [tracking | queues | keep-alive | wake-up]

import Foundation

let tours: [(name: String, run: () throws -> Void)] = [
    ("tracking", tourOfTracking), ("queues", tourOfQueues), ("keep-alive", tourOfKeepingAlive),
    ("wake-up", tourOfWakingUp),
]
let wanted = CommandLine.arguments.dropFirst().first
guard wanted == nil || tours.contains(where: { $0.name == wanted }) else {
    print("usage: RunLoopTour [\(tours.map(\.name).joined(separator: " | "))]")
    exit(64)
}
for tour in tours where wanted == nil || wanted == tour.name {
    print("\(tour.name):")
    try tour.run()
}
