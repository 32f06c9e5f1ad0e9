// A program with stalls of known function, cause and duration, for scripts/environments. It shares nothing with StallDoctor:
// what it measures is compared with what doctor says in the same place.
//
//     environment-victim stalls STORE     each stall once; a line each, with its duration
//     environment-victim dies STORE       is stopped from outside, and then killed in a stall
//     swift test OPTIONS                  under the name of swift: a test that hangs, for `stallctl run -- swift test`

import Dispatch
import Foundation
import StallAgent

@main struct Victim {
    static func main() {
        setvbuf(stdout, nil, Int32(_IOLBF), 0)
        let words = CommandLine.arguments
        if words[0].hasSuffix("/swift") { becomeTest(words) }
        if words[0].hasSuffix(".xctest") { runTest(streamPath: words[words.count - 1]) }
        guard words.count == 3 else { exit(64) }
        do {
            let monitor = try StallMonitor.start(
                .init(
                    app: "victim", version: "1", store: words[2], threshold: .milliseconds(60)))
            if words[1] == "stalls" { playStalls(monitor) } else { playEnd(monitor) }
            monitor.stop()
            print("done")
        } catch {
            print("refused\t\(error)")
            exit(1)
        }
    }

    private static func playStalls(_ monitor: StallMonitor) {
        monitor.watchTasks()
        pause(0.05)
        for plant in plants {
            plant.play(monitor)
            pause(0.1)
        }
        print("interrupted\t\(interruptions.withLock { $0 })")
    }

    /// The driver stops the process in some piece of work that is far below the threshold, and kills it in a stall.
    private static func playEnd(_ monitor: StallMonitor) {
        let thread = monitor.watchCurrentThread(as: "stopped")
        let limit = now() + 20
        print("stop me")
        while now() < limit {
            thread.begin()
            let began = now()
            usleep(10_000)
            thread.end()
            if now() - began > 0.25 { break }
        }
        let last = monitor.watchCurrentThread(as: "killed")
        last.begin()
        print("kill me")
        waitToBeKilled()
        last.end()
    }

    /// As `swift test` executes the package's tests, with the stream that stallctl asked for.
    private static func becomeTest(_ words: [String]) -> Never {
        let path = words.firstIndex {
            $0.hasSuffix("event-stream-output-path") || $0.hasSuffix("stream-output")
        }
        .map { words[$0 + 1] }
        let arguments = [
            "victim.xctest", "--testing-library", "swift-testing", path ?? "/dev/null",
        ]
        var list = arguments.map { strdup($0) } + [nil]
        execv(words[0], &list)
        exit(127)
    }

    private static func runTest(streamPath: String) {
        let id = "Victim.hangingTest()/Plants.swift:1:1"
        let instant = #""instant":{"absolute":1,"since1970":\#(Date().timeIntervalSince1970)}"#
        let place =
            #""sourceLocation":{"fileID":"Victim/Plants.swift","_filePath":"/Plants.swift","line":1,"column":1}"#
        let lines = [
            #"{"version":0,"kind":"test","payload":{"kind":"function","id":"\#(id)","name":"hangingTest()",\#(place)}}"#,
            #"{"version":0,"kind":"event","payload":{"kind":"runStarted",\#(instant)}}"#,
            #"{"version":0,"kind":"event","payload":{"kind":"testStarted","testID":"\#(id)",\#(instant)}}"#,
        ]
        let file = open(streamPath, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        for line in lines { _ = write(file, line + "\n", line.utf8.count + 1) }
        // Where stallctl does not end it.
        alarm(30)
        hangingTest()
        exit(0)
    }
}
