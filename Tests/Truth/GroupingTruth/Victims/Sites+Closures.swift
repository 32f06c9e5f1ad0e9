// Closures and local functions. The function that a closure is written in is the one to fix.

let closureSites: [Site] = [
    Site("map closure", decorate),
    Site("sorted closure", orderTracks),
    Site("forEach closure", notifyAll),
    Site("filter closure", pruneCache),
    Site("stored closure") { sink += Button(leaf: $0).press() },
    Site("escaping closure") {
        runQueue(enqueue($0)); visited()
    },
    Site("nested closures", renderPages),
    Site("autoclosure") {
        logIfEnabled(expensiveMessage($0)); visited()
    },
    Site("autoclosure body", describeState),
    Site("defer block", withLease),
    Site("lazy sequence", findFirstMatch),
    Site("result closure", convertResult),
    Site("unsafe buffer closure", sumBytes),
    Site("local function", importFolder),
    Site("capturing local function", countVisits),
    Site("local function of a method") { sink += Importer().start($0) },
    Site("recursive local function", flatten),
    Site("local function of a generic") { sink += tally($0, ["a", "b"]) + tally($0, [1, 2, 3]) },
]

@inline(never) func decorate(_ leaf: Leaf) {
    let titles = ["sea", "sun"].map { title -> String in
        stall(leaf)
        return title + "!"
    }
    sink += titles.count
}

@inline(never) func orderTracks(_ leaf: Leaf) {
    let tracks = [5, 2, 8].sorted { left, right in
        stall(leaf)
        return left > right
    }
    sink += tracks[0]
}

@inline(never) func notifyAll(_ leaf: Leaf) {
    (1...2).forEach { number in
        stall(leaf)
        sink += number
    }
}

@inline(never) func pruneCache(_ leaf: Leaf) {
    let old = ["a": 1, "b": 2].filter { entry in
        stall(leaf)
        return entry.value > 1
    }
    sink += old.count
}

final class Button {
    private var action: () -> Int = { 0 }

    @inline(never) init(leaf: Leaf) {
        action = {
            stall(leaf)
            return sink & 3
        }
    }

    @inline(never) func press() -> Int { action() + 1 }
}

@inline(never) func enqueue(_ leaf: Leaf) -> [() -> Void] {
    [
        { sink += 1 },
        {
            stall(leaf); sink -= 1
        },
    ]
}

@inline(never) func runQueue(_ queue: [() -> Void]) {
    for job in queue { job() }
    sink += queue.count
}

@inline(never) func renderPages(_ leaf: Leaf) {
    let pages = (0..<2).map { page in
        (0..<2).map { line -> Int in
            stall(leaf)
            return page * line
        }.count
    }
    sink += pages.count
}

@inline(never) func logIfEnabled(_ message: @autoclosure () -> String) {
    if sink >= Int.min { sink += message().count }
}

@inline(never) func expensiveMessage(_ leaf: Leaf) -> String {
    stall(leaf)
    return "state \(sink & 1)"
}

@inline(never) func describeState(_ leaf: Leaf) {
    logIfEnabled(
        {
            stall(leaf); return "idle"
        }())
    sink += 2
}

@inline(never) func withLease(_ leaf: Leaf) {
    defer {
        stall(leaf)
        sink -= 4
    }
    sink += 4
}

@inline(never) func findFirstMatch(_ leaf: Leaf) {
    let found = (1...5).lazy.map { $0 * 3 }.first { value in
        stall(leaf)
        return value > 6
    }
    sink += found ?? 0
}

@inline(never) func convertResult(_ leaf: Leaf) {
    let result = Result<Int, ParseError>.success(sink & 1).map { value -> String in
        stall(leaf)
        return "\(value)"
    }
    if case .success(let text) = result { sink += text.count }
}

@inline(never) func sumBytes(_ leaf: Leaf) {
    let sum = [UInt8](repeating: 3, count: 16).withUnsafeBufferPointer { bytes -> Int in
        stall(leaf)
        return bytes.reduce(0) { $0 + Int($1) }
    }
    sink += sum
}

@inline(never) func importFolder(_ leaf: Leaf) {
    @inline(never) func readEntry(_ number: Int) -> Int {
        stall(leaf)
        return number * 2
    }
    sink += readEntry(3) + 1
}

@inline(never) func countVisits(_ leaf: Leaf) {
    var total = sink & 1
    @inline(never) func add(_ amount: Int) {
        total += amount
        stall(leaf)
        total -= 1
    }
    add(4)
    sink += total
}

struct Importer {
    @inline(never) func start(_ leaf: Leaf) -> Int {
        @inline(never) func validate(_ name: String) -> Int {
            stall(leaf)
            return name.utf8.count << 1
        }
        return validate("photo") + 1
    }
}

@inline(never) func flatten(_ leaf: Leaf) {
    @inline(never) func visit(_ depth: Int) -> Int {
        if depth == 0 {
            stall(leaf)
            return 1
        }
        return visit(depth - 1) * 2 + (sink & 1)
    }
    sink += visit(3)
}

@inline(never) func tally<Item: Hashable>(_ leaf: Leaf, _ items: [Item]) -> Int {
    @inline(never) func distinct() -> Int {
        stall(leaf)
        return Set(items).count
    }
    return distinct() + 1
}
