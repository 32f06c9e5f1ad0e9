// Stalls at planted sites, one after the other, under the agent. For each stall it prints the site and the time, which
// scripts/truth_grouping.py compares with the reports in the store.
//
//     grouping-victims STORE

import Glibc
import StallAgent

/// A code location that stalls, as a developer would name it.
struct Site {
    let name: String
    /// Several ways that are all the same site: a generic function with different types, say.
    let variants: [(Leaf) -> Void]
    let asyncBody: (@MainActor (Leaf) async -> Void)?

    init(_ name: String, _ body: @escaping (Leaf) -> Void) { self.init(name, variants: [body]) }

    init(_ name: String, variants: [(Leaf) -> Void]) {
        self.name = name
        self.variants = variants
        asyncBody = nil
    }

    init(_ name: String, async body: @escaping @MainActor (Leaf) async -> Void) {
        self.name = name
        variants = []
        asyncBody = body
    }
}

let sites =
    functionSites + typeSites + closureSites + genericSites + protocolSites + asyncSites + cSites

// Three ways to every site. Work after the call keeps them on the stack in release builds.

@inline(never) func fromMenu(_ body: (Leaf) -> Void, _ leaf: Leaf) {
    sink += 1
    body(leaf)
    sink -= 1
}

@inline(never) func fromShortcut(_ body: (Leaf) -> Void, _ leaf: Leaf) {
    for _ in 0..<1 { body(leaf) }
    sink ^= 3
}

@inline(never) func fromNetwork(_ body: (Leaf) -> Void, _ leaf: Leaf) {
    let before = sink
    body(leaf)
    if sink == before { sink += 2 }
}

@MainActor @inline(never) func fromMenu(
    _ body: @MainActor (Leaf) async -> Void, _ leaf: Leaf
) async {
    sink += 1
    await body(leaf)
    sink -= 1
}

@MainActor @inline(never) func fromShortcut(
    _ body: @MainActor (Leaf) async -> Void, _ leaf: Leaf
) async {
    for _ in 0..<1 { await body(leaf) }
    sink ^= 3
}

@MainActor @inline(never) func fromNetwork(
    _ body: @MainActor (Leaf) async -> Void, _ leaf: Leaf
) async {
    let before = sink
    await body(leaf)
    if sink == before { sink += 2 }
}

/// One visit to a site.
struct Hit {
    let site: Site
    let variant: Int
    let caller: String
    let leaf: (name: String, leaf: Leaf)
}

/// Visits all sites, each by all callers with all leaves, with time in between for the loop to wait.
final class Tour {
    private let loop: EventRunLoop
    private var hits: [Hit] = []

    init(_ loop: EventRunLoop) {
        self.loop = loop
        for site in sites {
            for caller in ["menu", "shortcut", "network"] {
                for (number, leaf) in leaves.enumerated() {
                    let variant = site.variants.isEmpty ? 0 : number % site.variants.count
                    hits.append(Hit(site: site, variant: variant, caller: caller, leaf: leaf))
                }
            }
        }
        hits.reverse()
    }

    func next() {
        loop.add(LoopTimer(after: .milliseconds(8)) { [self] _ in visitNext() }, toMode: .common)
    }

    private func visitNext() {
        guard let hit = hits.popLast() else { return loop.stop() }
        isArmed = true
        let began = now()
        if let body = hit.site.asyncBody {
            Task { @MainActor in
                switch hit.caller {
                case "menu": await fromMenu(body, hit.leaf.leaf)
                case "shortcut": await fromShortcut(body, hit.leaf.leaf)
                default: await fromNetwork(body, hit.leaf.leaf)
                }
                finish(hit, began)
            }
        } else {
            let body = hit.site.variants[hit.variant]
            switch hit.caller {
            case "menu": fromMenu(body, hit.leaf.leaf)
            case "shortcut": fromShortcut(body, hit.leaf.leaf)
            default: fromNetwork(body, hit.leaf.leaf)
            }
            finish(hit, began)
        }
    }

    private func finish(_ hit: Hit, _ began: Int) {
        print("\(began)\t\(now())\t\(hit.site.name)\t\(hit.caller)\t\(hit.leaf.name)")
        next()
    }

    /// Microseconds since 1970, as reports say when they began.
    private func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1000
    }
}

@main
struct GroupingVictims {
    static func main() throws {
        let store = CommandLine.arguments.dropFirst().first ?? "stalls.sqlite"
        var configuration = StallMonitor.Configuration(app: "victims", version: "1", store: store)
        configuration.limits = .none  // every site is to be reported
        let monitor = try StallMonitor.start(configuration)
        let loop = EventRunLoop.main
        monitor.watch(loop, as: "main", threshold: .milliseconds(20))
        let tour = Tour(loop)
        tour.next()
        loop.run()
        monitor.stop()
    }
}
