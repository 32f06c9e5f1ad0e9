// An app whose work is done in a loop that is watched: what runs before `run()`, or on other threads, is not.
//
//     swift run App && stallctl top

import Foundation

#if os(Linux)
import StallAgent
#endif

/// Placeholder for the app's work; one call takes too long.
func refresh(_ round: Int) {
    usleep(round == 5 ? 400_000 : 10_000)
}

@main
struct App {
    static func main() throws {
        #if os(Linux)
        let monitor = try StallMonitor.start(.init(app: "app", version: "1.0.0"))
        defer { monitor.stop() }
        monitor.watchMainRunLoop()
        #endif
        nonisolated(unsafe) var round = 0
        let timer = Timer(timeInterval: 0.1, repeats: true) { _ in
            round += 1
            refresh(round)
        }
        RunLoop.main.add(timer, forMode: .default)
        // The work above happens in here.
        RunLoop.main.run(until: Date(timeIntervalSinceNow: 3))
    }
}
