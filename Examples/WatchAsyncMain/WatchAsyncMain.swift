// An app with `async main`: its main actor is watched. After the first suspension its work is no longer on the main
// thread; the report shows the thread that it was on.
//
//     WatchAsyncMain [STORE]

import Foundation
import StallAgent

@main
struct WatchAsyncMain {
    static func main() async throws {
        let store = CommandLine.arguments.dropFirst().first ?? "stalls.sqlite"
        let monitor = try StallMonitor.start(.init(app: "async-main", version: "1.0", store: store))
        monitor.watchMainActor()

        try await liveWell(for: .seconds(3))
        let took = ContinuousClock().measure { _ = decodeOnMainActor() }
        try await liveWell(for: .seconds(2))

        monitor.stop()
        print("decodeOnMainActor took \(Int(took / .milliseconds(1))) ms")
    }

    /// Short pieces of work with pauses between them.
    static func liveWell(for duration: Duration) async throws {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            usleep(2_000)
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}

@inline(never) func decodeOnMainActor() -> Bool { usleep(600_000) == 0 }
