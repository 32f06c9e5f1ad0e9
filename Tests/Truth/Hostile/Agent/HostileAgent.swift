// An app whose agent is given broken stores as its own, one after another. The app must live through each of them.
//
//     hostile-agent LIST     for each path in the file LIST: starts a monitor on that store, stalls once, stops it,
//                            and says "done PATH"

import Glibc
import StallAgent

@main
struct HostileAgent {
    static func main() {
        guard CommandLine.arguments.count == 2, let file = fopen(CommandLine.arguments[1], "r")
        else {
            fatalError("usage: hostile-agent LIST")
        }
        var line = [CChar](repeating: 0, count: 4096)
        while fgets(&line, CInt(line.count), file) != nil {
            let path = String(
                decoding: line.prefix { $0 != 0 && $0 != 10 }.map(UInt8.init(bitPattern:)),
                as: UTF8.self)
            play(path)
            let done = Array("done \(path)\n".utf8)
            _ = write(STDOUT_FILENO, done, done.count)
        }
    }

    private static func play(_ path: String) {
        let monitor: StallMonitor
        do {
            monitor = try StallMonitor.start(
                StallMonitor.Configuration(app: "hostile", version: "1", store: path))
        } catch {
            return
        }
        let thread = monitor.watchCurrentThread(as: "main", threshold: .milliseconds(20))
        thread.begin()
        usleep(60_000)
        thread.end()
        monitor.stop()
    }
}
