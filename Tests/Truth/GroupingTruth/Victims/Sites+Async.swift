// Async functions on the main actor, which the run loop serves, before and after they were suspended.

let asyncSites: [Site] = [
    Site("async function", async: { await refreshFeed($0) }),
    Site("after a suspension", async: { await syncLibrary($0) }),
    Site("async throwing", async: { try? await uploadPhoto($0) }),
    Site("async method", async: { leaf in sink += await Loader().load(leaf) }),
    Site("async getter", async: { leaf in sink += await Loader(leaf: leaf).status }),
    Site(
        "async generic",
        async: { leaf in sink += await cached(leaf, 3) + cached(leaf, "ab").hashValue % 2 }),
    Site(
        "async witness",
        async: { leaf in
            let source: any Source = Remote(); sink += await source.read(leaf)
        }),
    Site("async closure", async: { leaf in await performTwice(leaf) }),
    Site("local async function", async: { await exportAll($0) }),
    Site("for await", async: { await followUpdates($0) }),
    Site("after a continuation", async: { await waitForReply($0) }),
]

@MainActor @inline(never) func refreshFeed(_ leaf: Leaf) async {
    stall(leaf)
    sink += 21
}

@MainActor @inline(never) func syncLibrary(_ leaf: Leaf) async {
    sink += 1
    await Task.yield()
    stall(leaf)
    sink -= 3
    await Task.yield()
}

@MainActor @inline(never) func uploadPhoto(_ leaf: Leaf) async throws {
    await Task.yield()
    guard sink >= Int.min else { throw ParseError() }
    stall(leaf)
    sink ^= 5
}

@MainActor final class Loader {
    private let leaf: Leaf

    init(leaf: Leaf = leaves[0].leaf) { self.leaf = leaf }

    @inline(never) func load(_ leaf: Leaf) async -> Int {
        await Task.yield()
        stall(leaf)
        return 8
    }

    var status: Int {
        @inline(never) get async {
            stall(leaf)
            return sink & 15
        }
    }
}

@MainActor @inline(never) func cached<Value>(_ leaf: Leaf, _ value: Value) async -> Value {
    await Task.yield()
    stall(leaf)
    return value
}

@MainActor protocol Source {
    func read(_ leaf: Leaf) async -> Int
}

struct Remote: Source {
    @inline(never) func read(_ leaf: Leaf) async -> Int {
        stall(leaf)
        await Task.yield()
        return 13
    }
}

@MainActor @inline(never) func performTwice(_ leaf: Leaf) async {
    let work: @MainActor (Int) async -> Int = { number in
        await Task.yield()
        stall(leaf)
        return number + 1
    }
    sink += await work(1)
    sink += await work(2)
}

@MainActor @inline(never) func exportAll(_ leaf: Leaf) async {
    @inline(never) @MainActor func exportOne(_ number: Int) async -> Int {
        await Task.yield()
        stall(leaf)
        return number << 2
    }
    sink += await exportOne(2) + 1
}

@MainActor @inline(never) func followUpdates(_ leaf: Leaf) async {
    let updates = AsyncStream<Int> { continuation in
        continuation.yield(1)
        continuation.yield(2)
        continuation.finish()
    }
    for await update in updates {
        stall(leaf)
        sink += update
    }
}

@MainActor @inline(never) func waitForReply(_ leaf: Leaf) async {
    let reply = await withCheckedContinuation { continuation in
        Task { @MainActor in continuation.resume(returning: 4) }
    }
    stall(leaf)
    sink += reply
}
