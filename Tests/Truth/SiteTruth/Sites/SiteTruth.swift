// Stalls at planted sites of every kind, one after the other, under the agent. For each it prints the site, the time,
// and the expected report, which scripts/truth_sites.py compares with the reports in the store.
//
//     site-truth STORE [EVERY]        only every EVERYth site
//     site-truth --list

import CStallSites
import Foundation
import StallAgent

let sites =
    lockSites + dispatchSites + lazySites + timeSites + pipeSites + socketSites + processSites
    + fileSites + databaseSites + memorySites + formatSites + languageSites + cSites + cxxSites
    + mergedSites + loopSites + asyncSites + moreSites + waitSites + everydaySites

/// Visits the sites, each in a callout of its own, with everything else outside of the loop's watch.
@MainActor final class Tour {
    private let loop: EventRunLoop

    init(_ loop: EventRunLoop) { self.loop = loop }

    func visit(_ site: Site) {
        for attempt in 1...6 {
            let visit = Visit()
            guard let stall = site.prepare(visit) else {
                print("refused\t\(site.name)")
                return
            }
            let hit = run(site, visit, stall)
            visit.end()
            // Another thread had the CPU, or what was to compute waited for pages of the program: the truth is another one.
            // And again.
            let isOfOthers =
                hit.delay > hit.duration / 4
                || site.causes == [.cpu] && hit.cpu < hit.duration * 3 / 4
            if attempt < 6, isOfOthers {
                print("spoiled\t\(hit.began / 1000)\t\(hit.ended / 1000)\t\(site.name)")
                if site.happensOnce { return print("refused\t\(site.name)") }
                continue
            }
            note(site, visit, hit)
            return
        }
    }

    struct Hit {
        var began = 0
        var ended = 0
        var duration = 0
        var cpu = 0
        var delay = 0
    }

    private func run(_ site: Site, _ visit: Visit, _ stall: @escaping () -> Void) -> Hit {
        var hit = Hit()
        loop.add(
            LoopTimer(after: .milliseconds(15)) { [self] _ in
                if let body = site.asyncBody {
                    Task { @MainActor in
                        hit = self.begin(visit)
                        await body()
                        self.end(&hit)
                        self.loop.stop()
                    }
                } else {
                    // The main loop's handlers run on the main thread.
                    MainActor.assumeIsolated {
                        hit = begin(visit)
                        stall()
                        end(&hit)
                        loop.stop()
                    }
                }
            }, toMode: .common)
        loop.run()
        return hit
    }

    private func begin(_ visit: Visit) -> Hit {
        var hit = Hit()
        hit.delay = runDelay()
        hit.cpu = Int(site_work_begin())
        workEnd = hit.cpu + Int(stallMicroseconds) * 1000
        hit.began = clockTime(CLOCK_REALTIME)
        hit.duration = clockTime(CLOCK_MONOTONIC)
        visit.begin()
        return hit
    }

    private func end(_ hit: inout Hit) {
        hit.duration = clockTime(CLOCK_MONOTONIC) - hit.duration
        hit.ended = clockTime(CLOCK_REALTIME)
        hit.cpu = Int(site_work_end()) - hit.cpu
        hit.delay = runDelay() - hit.delay
    }

    /// How long this thread has waited for a CPU, in nanoseconds.
    private func runDelay() -> Int {
        var bytes = [CChar](repeating: 0, count: 128)
        let file = open("/proc/thread-self/schedstat", O_RDONLY)
        defer { close(file) }
        guard read(file, &bytes, 127) > 0 else { return 0 }
        return Int(String(cString: bytes).split(separator: " ")[1]) ?? 0
    }

    private func note(_ site: Site, _ visit: Visit, _ hit: Hit) {
        var causes = site.causes
        if site.isMeasured {
            let share = Double(hit.cpu) / Double(max(1, hit.duration))
            if share > 0.65 { causes = [.cpu] }
            if share > 0.35, !causes.contains(.cpu) { causes.append(.cpu) }
        }
        // The last attempt, on a machine that is busy with other things.
        let isStarved = hit.delay > hit.duration * 3 / 10
        print(
            "hit", hit.began / 1000, hit.ended / 1000, site.name,
            site.functions.joined(separator: "|"),
            causes.map(\.rawValue).joined(separator: "|"), visit.holder, hit.duration / 1000,
            site.caller ?? "", hit.cpu / 1000, isStarved ? "starved" : "",
            site.hasSharedName ? "shared" : "", separator: "\t")
    }
}

/// Where it is allowed, other programs of the machine stay out of the way.
private func goFirst() {
    let group = open("/proc/self/autogroup", O_WRONLY)
    if group >= 0 {
        write(group, "-19", 3)
        close(group)
    }
    setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, -19)
}

@main struct SiteTruth {
    @MainActor static func main() throws {
        setvbuf(stdout, nil, Int32(_IOLBF), 0)
        signal(SIGPIPE, SIG_IGN)
        let arguments = CommandLine.arguments
        if arguments.dropFirst().first == "--list" { return sites.forEach { print($0.name) } }
        guard arguments.count >= 2 else {
            FileHandle.standardError.write(Data("usage: site-truth STORE [EVERY]\n".utf8))
            exit(64)
        }
        goFirst()
        prepareScratch(beside: arguments[1])
        var configuration = StallMonitor.Configuration(
            app: "sites", version: "1", store: arguments[1])
        configuration.limits = .none  // every site is to be reported
        let monitor = try StallMonitor.start(configuration)
        let loop = EventRunLoop.main
        monitor.watch(loop, as: "main", threshold: .milliseconds(80))
        let tour = Tour(loop)
        let every = arguments.count > 2 ? Int(arguments[2]) ?? 1 : 1
        let only = arguments.count > 3 ? arguments[3] : nil
        for (index, site) in sites.enumerated()
        where only.map(site.name.contains) ?? (index % every == 0) {
            tour.visit(site)
        }
        monitor.stop()
    }
}
