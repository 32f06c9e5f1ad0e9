// Typical third-party code: the stall is in a callback that a library calls, several frames of Foundation, the standard
// library, the regex engine or the concurrency runtime away from the code that requested it.

import CStackVictims
import Dispatch
import Foundation

nonisolated(unsafe) let strangers: [String: () -> Void] = [
    // Blocked in the kernel.
    "json-decoder": { onMain(decodeSlowly) },
    "regex-replace": { onMain(replaceSlowly) },
    "sort": { onMain(sortSlowly) },
    "hash": { onMain(hashSlowly) },
    "description": { onMain(describeSlowly) },
    "deinit": { onMain(releaseSlowly) },
    "lazy-chain": { onMain(mapSlowly) },
    "key-path": { onMain(readThroughKeyPath) },
    "throwing-plugin": { onMain(throwThroughPlugin) },
    "notification": { onMain(notifySlowly) },
    "predicate": { onMain(filterSlowly) },
    "operation-queue": {
        OperationQueue().addOperation { onMain { usleep(300_000_000) } }; sleepForever()
    },
    "concurrent-perform": {
        DispatchQueue.concurrentPerform(iterations: 1) { _ in onMain { usleep(300_000_000) } }
    },
    "run-loop-timer": {
        let timer = Timer(timeInterval: 0.01, repeats: false) { _ in
            onMain { usleep(300_000_000) }
        }
        RunLoop.main.add(timer, forMode: .default); RunLoop.main.run()
    },
    "dispatch-source": {
        let timer = DispatchSource.makeTimerSource(queue: .global())
        timer.setEventHandler { onMain { usleep(300_000_000) } }
        timer.schedule(deadline: .now()); timer.resume(); sleepForever()
    },
    "task-group": {
        Task.detached { print(await sumInGroup()) }; sleepForever()
    },
    "actor": {
        Task.detached { print(await Ledger().balance()) }; sleepForever()
    },
    "stream": {
        Task.detached { print(await lastOfStream()) }; sleepForever()
    },
    // Running.
    "cpu-json": {
        register(); print(serializeForever())
    },
    "cpu-regex": {
        register(); print(matchForever())
    },
    "cpu-tables": {
        register(); print(countForever())
    },
    "cpu-task-group": {
        Task.detached { print(await hashInGroup()) }; sleepForever()
    },
    "cpu-data": {
        register(); print(archiveForever())
    },
]

/// What a callback does: stalls, in a frame of its own.
@inline(never) func stall() -> Int { Int(usleep(300_000_000)) &+ 1 }

// MARK: Called back by libraries

struct SlowRecord: Decodable {
    var tags: [String]
    init(from decoder: any Decoder) throws {
        var list = try decoder.container(keyedBy: Key.self).nestedUnkeyedContainer(forKey: .tags)
        tags = []
        while !list.isAtEnd {
            tags.append(try list.decode(String.self) + String(stall()))
        }
    }
    enum Key: CodingKey { case tags }
}

func decodeSlowly() -> CInt {
    let text = #"{"rows": [{"tags": ["a", "b"]}]}"#
    let rows = try? JSONDecoder().decode([String: [SlowRecord]].self, from: Data(text.utf8))
    return CInt(rows?.count ?? 0) &+ 1
}

func replaceSlowly() -> CInt {
    let expression = try! Regex("[a-z]+ ([0-9]+)")
    let text = "some words 1234 and more 99".replacing(expression) { "\($0.count + stall())" }
    return CInt(text.count) &+ 1
}

func sortSlowly() -> CInt {
    let names = ["delta", "alpha", "echo", "bravo"].sorted { $0.count &+ stall() < $1.count }
    return CInt(names.count) &+ 1
}

struct SlowKey: Hashable {
    var name: String
    func hash(into hasher: inout Hasher) { hasher.combine(name.count &+ stall()) }
}

func hashSlowly() -> CInt {
    let table = Dictionary(grouping: ["a", "b", "c"]) { SlowKey(name: $0) }
    return CInt(table.count) &+ 1
}

struct SlowText: CustomStringConvertible {
    var description: String { "slow \(stall())" }
}

func describeSlowly() -> CInt {
    CInt("\([SlowText(), SlowText()] as [Any])".count) &+ 1
}

final class SlowNode {
    var next: SlowNode?
    init(_ next: SlowNode?) { self.next = next }
    deinit { if next == nil { blackHole(stall()) } }
}

func releaseSlowly() -> CInt {
    var head: SlowNode? = nil
    for _ in 0..<40 { head = SlowNode(head) }
    head = nil
    return 1
}

func mapSlowly() -> CInt {
    let sums = (0..<10).lazy.filter { $0 % 2 == 0 }.map { [$0, stall()] }.joined().prefix(3)
    return CInt(Array(sums).count) &+ 1
}

struct SlowModel {
    var value: Int { stall() }
}

func readThroughKeyPath() -> CInt {
    let paths: [PartialKeyPath<SlowModel>] = [\.value]
    return CInt(paths.compactMap { SlowModel()[keyPath: $0] as? Int }.count) &+ 1
}

func throwThroughPlugin() -> CInt {
    let path = CommandLine.arguments[0] + "-throwing-plugin.so"
    guard let plugin = dlopen(path, RTLD_NOW), let catcher = dlsym(plugin, "plugin_catch"),
        let thrower = dlsym(plugin, "plugin_throw")
    else {
        print("FAILED \(String(cString: dlerror()))")
        exit(1)
    }
    typealias Body = @convention(c) (CInt) -> CInt
    typealias Inner = @convention(c) (Body) -> CInt
    typealias Catch = @convention(c) (Inner, Body) -> CInt
    return unsafeBitCast(catcher, to: Catch.self)(
        unsafeBitCast(thrower, to: Inner.self), { _ in CInt(truncatingIfNeeded: stall()) }) &+ 1
}

func notifySlowly() -> CInt {
    let center = NotificationCenter()
    let token = center.addObserver(forName: .init("slow"), object: nil, queue: nil) { _ in
        blackHole(stall())
    }
    center.post(name: .init("slow"), object: nil)
    center.removeObserver(token)
    return 1
}

func filterSlowly() -> CInt {
    let predicate = NSPredicate { _, _ in stall() > 0 }
    return CInt(([1, 2, 3] as NSArray).filtered(using: predicate).count) &+ 1
}

// MARK: Concurrency

@inline(never) func child(_ number: Int) async -> Int {
    await Task.yield()
    if number == 2 {
        register()
        return number &+ stall()
    }
    try? await Task.sleep(for: .seconds(1000))
    return number
}

func sumInGroup() async -> Int {
    await withTaskGroup(of: Int.self) { group in
        for number in 0..<4 { group.addTask { await child(number) &+ 1 } }
        var sum = 0
        for await value in group { sum &+= value }
        return sum
    }
}

actor Ledger {
    private var entries = [1, 2, 3]
    func balance() async -> Int { await audited() &+ 1 }
    private func audited() async -> Int {
        await Task.yield()
        register()
        return entries.reduce(stall(), &+)
    }
}

func lastOfStream() async -> Int {
    let numbers = AsyncStream<Int> { continuation in
        for number in 0..<5 { continuation.yield(number) }
        continuation.finish()
    }
    var last = 0
    for await number in numbers.map({ $0 &* 2 }).filter({ $0 > 3 }) {
        register()
        last = number &+ stall()
    }
    return last
}

// MARK: Computing

@inline(never) func serializeForever() -> Int {
    var total = 0
    while total != -1 {
        let rows = (0..<100).map {
            ["id": $0, "name": "row \($0)", "on": $0 % 2 == 0] as [String: Any]
        }
        let data =
            (try? JSONSerialization.data(withJSONObject: rows, options: .sortedKeys)) ?? Data()
        let back = (try? JSONSerialization.jsonObject(with: data)) as? [[String: Any]]
        total &+= back?.count ?? 0
        total &+= data.base64EncodedString().components(separatedBy: "A").count
    }
    return total
}

@inline(never) func matchForever() -> Int {
    let expression = try! Regex(#"(\w+)@(\w+)\.(com|org)"#)
    let text = (0..<200).map { "user\($0)@host\($0 % 7).org and some more" }.joined(separator: ", ")
    var total = 0
    while total != -1 { total &+= text.matches(of: expression).count }
    return total
}

@inline(never) func countForever() -> Int {
    var total = 0
    while total != -1 {
        var counts: [String: Set<Int>] = [:]
        for number in 0..<2000 { counts["key \(number % 97)", default: []].insert(number) }
        let order = counts.sorted { ($0.value.count, $0.key) < ($1.value.count, $1.key) }
        total &+= order.reduce(0) { $0 &+ $1.value.count }
    }
    return total
}

@inline(never) func hashForever(_ seed: Int) -> Int {
    var total = seed
    while total != -1 {
        var hasher = Hasher()
        hasher.combine("text \(total)")
        total = hasher.finalize() | 1
    }
    return total
}

@inline(never) func hashing(_ number: Int) async -> Int {
    await Task.yield()
    if number == 1 { register() }
    return number == 1 ? hashForever(number) : number
}

func hashInGroup() async -> Int {
    await withTaskGroup(of: Int.self) { group in
        for number in 0..<3 { group.addTask { await hashing(number) } }
        return await group.reduce(0, &+)
    }
}

@inline(never) func archiveForever() -> Int {
    var total = 0
    while total != -1 {
        let list = NSMutableArray()
        for number in 0..<100 { list.add("entry \(number)" as NSString) }
        let plist = try? PropertyListSerialization.data(
            fromPropertyList: list, format: .binary, options: 0)
        total &+= (plist ?? Data()).reversed().reduce(0) { $0 &+ Int($1) }
        total &+=
            URL(string: "https://example.org/a/../b?c=\(total & 7)")?.standardized.path.count ?? 0
    }
    return total
}
