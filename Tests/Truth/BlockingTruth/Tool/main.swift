// Is each call that may block reported on every kind of watched thread, with its function, and nothing else?
//
//     blocking-truth [--innocents N] DIRECTORY     N (1,000,000) calls that do not block; files and the store go into DIRECTORY
//
// The last line is the result:
//
//     truth blocking reported=N of=N function=N of=N false=N of=N expected=N of=N
//
// `expected` counts calls within `monitor.expected` that are not reported. With SABOTAGE=1 the reports of mutexes are left
// out, and the result must show it.

import CBlockingPlants
import Foundation
import StallAgent
import StallBlocking
import StallModel

setvbuf(stdout, nil, _IOLBF, 0)
Thread {
    do { exit(try judge()) } catch { fatalError("\(error)") }
}.start()
dispatchMain()

func judge() throws -> Int32 {
    let arguments = CommandLine.arguments
    guard let directory = arguments.dropFirst().last, !directory.hasPrefix("-") else {
        fatalError("no directory")
    }
    let innocentCount =
        arguments.firstIndex(of: "--innocents").flatMap { Int(arguments[$0 + 1]) } ?? 1_000_000
    let isSabotaged = ProcessInfo.processInfo.environment["SABOTAGE"] == "1"
    guard FileManager.default.changeCurrentDirectoryPath(directory) else {
        fatalError("\(directory): no such directory")
    }

    var configuration = StallMonitor.Configuration(app: "blocking-truth", version: "1")
    configuration.store = directory + "/stalls.sqlite"
    configuration.threshold = .seconds(10)
    configuration.limits = .none
    let monitor = try StallMonitor.start(configuration)
    let threads = WatchedThreads.all(of: monitor)
    let found = FoundReports()
    monitor.onStall { if $0.verdict == .blocking { found.add($0) } }
    // Other allocators wait by libc's mutex, which is no fault of the report.
    let ban = monitor.forbidBlocking(allowing: ["image libjemalloc.so*", "image libtcmalloc*"])
    guard plants_open(directory) else { fatalError("\(directory): nothing can be planted there") }
    defer { plants_close() }
    guard ban.isInForce else { fatalError("blocking is not forbidden") }

    var (reported, named, planted, expected, accused) = (0, 0, 0, 0, 0)
    for kind in threads {
        for plant in Plant.all {
            // First where it is meant: a report of that would come before the other.
            found.reset()
            kind.runAndWait {
                monitor.expected("meant") {
                    plant.prepare()
                    plant.play()
                }
            }
            let mark = Int64(Date().timeIntervalSince1970 * 1e6)
            kind.runAndWait {
                monitor.expected("prepared") { plant.prepare() }
                plant.play()
            }
            planted += 1
            let isFound = found.wait { $0.shows(plant.function) && $0.start.microseconds >= mark }
            let reports = found.all
            let own = reports.filter { $0.shows(plant.function) && $0.loop == kind.name.loopName }
            let isLeftOut = isSabotaged && plant.name.hasPrefix("mutex")
            reported += isFound && !isLeftOut ? 1 : 0
            named += own.count == 1 && !isLeftOut ? 1 : 0
            expected += own.allSatisfy { $0.start.microseconds >= mark } ? 1 : 0
            accused += reports.count - own.count
            if reports.count != 1 || own.count != 1 {
                print("    \(kind.name) \(plant.name): \(reports.count) reports")
                for report in reports { print("        " + report.summary) }
            }
        }
    }

    // One after another in the same callout would hide the second of two reports.
    found.reset()
    let innocents = Plant.innocents
    let rounds = max(1, innocentCount / (threads.count * innocents.count))
    for kind in threads {
        for innocent in innocents {
            kind.runAndWait { for _ in 0..<rounds { innocent.play() } }
        }
    }
    monitor.stop()
    accused += found.all.count
    for report in found.all.prefix(20) { print("    accused: \(report.loop) " + report.summary) }
    print(
        "truth blocking reported=\(reported) of=\(planted) function=\(named) of=\(planted) "
            + "false=\(accused) of=\(rounds * threads.count * innocents.count) "
            + "expected=\(expected) of=\(planted)")
    return reported == planted && named == planted && accused == 0 && expected == planted ? 0 : 1
}

extension String {
    /// The name of the target in reports.
    var loopName: String { self == "executor" ? "task executor" : self }
}
