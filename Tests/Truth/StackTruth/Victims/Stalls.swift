// The stalls. Each registers the thread that will stall and then never returns.

import CStackVictims
import Dispatch
import Foundation

nonisolated(unsafe) let stalls: [String: () -> Void] = [
    // Blocked in the kernel.
    "usleep": { onMain { usleep(300_000_000) } },
    "mutex": { onMain(lockHeldMutex) },
    "pipe": { onMain(readEmptyPipe) },
    "connect": { onMain(connectToFullBacklog) },
    "getaddrinfo": { onMain { victim_resolve_name(1) } },
    "poll": { onMain(pollEmptyPipe) },
    "thread-sleep": {
        onMain {
            Thread.sleep(forTimeInterval: 300); return 1
        }
    },
    "dispatch-semaphore": {
        onMain {
            DispatchSemaphore(value: 0).wait(); return 1
        }
    },
    "timed-semaphore": {
        onMain { DispatchSemaphore(value: 0).wait(timeout: .now() + 300) == .success ? 1 : 2 }
    },
    "timed-group": {
        onMain {
            let group = DispatchGroup()
            group.enter()
            return group.wait(wallTimeout: .now() + 300) == .success ? 1 : 2
        }
    },
    "queue-sync": { onMain(syncOnBusyQueue) },
    "file-handle": { onMain(readFileHandle) },
    "condition": { onMain(waitForCondition) },
    "recursion-2000": {
        register(); print(recurse(2000) { usleep(300_000_000) })
    },
    "recursion-5000": {
        onThread(stackSize: 64 << 20) { print(recurse(5000) { usleep(300_000_000) }) }
    },
    "async": {
        Task.detached { print(await asyncTop(3)) }; sleepForever()
    },
    "async-main-queue": {
        Task { @MainActor in print(await asyncTop(3)) }; dispatchMain()
    },
    "queue-block": {
        DispatchQueue(label: "serial").async { onMain { usleep(300_000_000) } }; sleepForever()
    },
    "small-stack": { onThread(stackSize: 64 << 10) { print(callChain { usleep(300_000_000) }) } },
    "alternate-stack": { onMain { victim_on_alternate_stack(1) { _ in usleep(300_000_000) } } },
    "alloca": { onMain { victim_with_alloca(33) { _ in usleep(300_000_000) } } },
    "realigned": { onMain { victim_realigned(3) { _ in usleep(300_000_000) } } },
    "many-arguments": { onMain { victim_with_many_arguments(3) { _ in usleep(300_000_000) } } },
    "qsort": { onMain { victim_in_qsort(3) { _ in usleep(300_000_000) } } },
    "cxx-unwinding": { onMain { victim_while_throwing(5) { _ in usleep(300_000_000) } } },
    "plugin": { onMain(callPlugin) },
    "unspecialized": { onMain { unspecialized(depth: 12, value: 1) { usleep(300_000_000) } } },
    "regex-file": { onMain(readFileInRegexLoop) },
    // Running.
    "cpu-integer": {
        register(); print(computeForever(3))
    },
    "cpu-foundation": {
        register(); print(decodeForever())
    },
    "cpu-malloc": {
        register(); print(allocateForever())
    },
    "cpu-files": {
        register(); print(scanFilesForever())
    },
    "cpu-generic": {
        register(); print(generateForever())
    },
    "cpu-exceptions": {
        register(); print(victim_throw_forever())
    },
]

// MARK: Ways to get there

/// Registers the calling thread and stalls below closures, generics and a protocol witness.
func onMain(_ block: @escaping () -> CInt) {
    register()
    print(callChain(block))
}

func sleepForever() -> Never { while true { sleep(1000) } }

func onThread(stackSize: Int, _ body: @escaping @Sendable () -> Void) {
    let thread = Thread {
        register()
        body()
    }
    thread.stackSize = stackSize
    thread.start()
    sleepForever()
}

@inline(never) func blackHole<T>(_ value: T) { withExtendedLifetime(value) {} }

@inline(never) func generic<T, R>(_ value: T, _ body: (T) -> R) -> R {
    let result = body(value)
    blackHole(result)
    return result
}

struct Model<T> {
    var value: T
    func map(_ body: (T) -> Int) -> Int { body(value) &+ 1 }
    @inline(never) func outlined(_ body: (T) -> Int) -> Int { map(body) &+ 3 }
}

protocol Worker { func work(_ number: Int) -> Int }

final class ClosureWorker: Worker {
    let body: (Int) -> Int
    init(_ body: @escaping (Int) -> Int) { self.body = body }
    func work(_ number: Int) -> Int { body(number) &+ 5 }
}

@inline(never) func throughWitness(_ worker: any Worker, _ number: Int) -> Int {
    worker.work(number) &+ 9
}

@inline(never) func callChain(_ block: @escaping () -> CInt) -> Int {
    let worker = ClosureWorker { number in
        [number].map { element in
            generic(element) { value in Model(value: value).outlined { _ in Int(block()) &+ 2 } }
        }.reduce(0, +) &+ 1
    }
    return throughWitness(worker, 4) &+ 11
}

@inline(never) func recurse(_ depth: Int, _ text: String = "x", _ block: () -> CInt) -> Int {
    if depth == 0 { return Int(block()) }
    let longer = text.count > 30 ? text : text + "a"
    let result = recurse(depth - 1, longer, block)
    blackHole(longer)
    return (result ^ depth) &+ longer.count
}

/// Generic code that the optimizer must not specialize: it keeps its values in dynamically allocated stack.
@inline(never) @_semantics("optimize.sil.specialize.generic.never")
func unspecialized<T: Equatable>(depth: Int, value: T, _ block: () -> CInt) -> CInt {
    if depth == 0 { return block() }
    let copies = (value, value)
    let result = unspecialized(depth: depth - 1, value: copies.0, block)
    return copies.0 == copies.1 ? result &+ 1 : result
}

@inline(never) func asyncLeaf(_ number: Int) async -> Int {
    await Task.yield()
    register()
    return callChain { usleep(300_000_000) } &+ number
}
@inline(never) func asyncMid(_ number: Int) async -> Int { await asyncLeaf(number) &+ 3 }
@inline(never) func asyncTop(_ number: Int) async -> Int { await asyncMid(number) &+ 5 }

// MARK: Waiting

nonisolated(unsafe) let mutex = {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    return mutex
}()
nonisolated(unsafe) let condition = {
    let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    pthread_cond_init(condition, nil)
    return condition
}()

func lockHeldMutex() -> CInt {
    let isHeld = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        pthread_mutex_lock(mutex)
        isHeld.signal()
        sleepForever()
    }
    isHeld.wait()
    return pthread_mutex_lock(mutex) &+ 1
}

func waitForCondition() -> CInt {
    pthread_mutex_lock(mutex)
    return pthread_cond_wait(condition, mutex) &+ 1
}

func emptyPipe() -> CInt {
    var ends: [CInt] = [0, 0]
    pipe(&ends)
    return ends[0]
}

func readEmptyPipe() -> CInt {
    var bytes = [UInt8](repeating: 0, count: 16)
    return CInt(read(emptyPipe(), &bytes, 16)) &+ 1
}

func readFileHandle() -> CInt {
    CInt(FileHandle(fileDescriptor: emptyPipe()).readData(ofLength: 10).count) &+ 1
}

func pollEmptyPipe() -> CInt {
    var request = pollfd(fd: emptyPipe(), events: Int16(POLLIN), revents: 0)
    return poll(&request, 1, -1) &+ 1
}

func syncOnBusyQueue() -> CInt {
    let queue = DispatchQueue(label: "busy")
    let isBusy = DispatchSemaphore(value: 0)
    queue.async {
        isBusy.signal()
        sleepForever()
    }
    isBusy.wait()
    return queue.sync { 7 }
}

func connectToFullBacklog() -> CInt {
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
            bind(listener, pointer, length)
            listen(listener, 0)
            getsockname(listener, pointer, &length)
            var result: CInt = 0
            for attempt in 0..<8 {
                let mode = attempt < 4 ? CInt(SOCK_NONBLOCK.rawValue) : 0
                result = connect(
                    socket(AF_INET, CInt(SOCK_STREAM.rawValue) | mode, 0), pointer, length)
                if attempt < 4 { usleep(20_000) }
            }
            return result &+ 1
        }
    }
}

func callPlugin() -> CInt {
    let path = CommandLine.arguments[0] + "-plugin.so"
    guard let plugin = dlopen(path, RTLD_NOW), let symbol = dlsym(plugin, "plugin_run") else {
        print("FAILED \(String(cString: dlerror()))")
        exit(1)
    }
    typealias Run = @convention(c) (@convention(c) (CInt) -> CInt, CInt) -> CInt
    return unsafeBitCast(symbol, to: Run.self)({ _ in usleep(300_000_000) }, 3) &+ 1
}

func readFileInRegexLoop() -> CInt {
    let expression = try! NSRegularExpression(pattern: "([a-z]+) ([0-9]+)")
    let text = "some words 1234 and more 99"
    var total: CInt = 0
    expression.enumerateMatches(in: text, range: NSRange(text.startIndex..., in: text)) { _, _, _ in
        total &+= readFileHandle()
    }
    return total
}

// MARK: Computing

@inline(never) func computeForever(_ seed: UInt64) -> UInt64 {
    var state = seed | 1
    while state != 42 {
        for _ in 0..<1000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            state ^= state >> 33
        }
    }
    return state
}

struct Record: Codable {
    var id: Int
    var name: String
    var tags: [String]
    var values: [String: Double]
}

@inline(never) func decodeForever() -> Int {
    let records = (0..<200).map {
        Record(
            id: $0, name: "name \($0) é", tags: ["a", "b"], values: ["x": 1.5, "y": Double($0)])
    }
    let data = try! JSONEncoder().encode(records)
    var total = 0
    while total != -1 {
        let decoded = try! JSONDecoder().decode([Record].self, from: data)
        let names = decoded.map { $0.name.uppercased() + String($0.id &* 7919 % 1000) }.sorted()
        let expression = try! NSRegularExpression(
            pattern: "([a-z]+) (\\d+)", options: [.caseInsensitive])
        for name in names.prefix(50) {
            total &+= expression.numberOfMatches(
                in: name, range: NSRange(name.startIndex..., in: name))
        }
        let formatter = DateFormatter()
        formatter.dateFormat = "yyyy-MM-dd"
        total &+= formatter.string(from: Date()).count
    }
    return total
}

@inline(never) func allocateForever() -> Int {
    var total = 0
    var kept: [UnsafeMutableRawPointer] = []
    while total != -1 {
        for i in 0..<2000 { kept.append(malloc(16 + (i &* 37) % 3000)!) }
        for pointer in kept {
            total &+= 1
            free(pointer)
        }
        kept.removeAll(keepingCapacity: true)
        var arrays: [[Int]] = []
        for i in 0..<50 { arrays.append(Array(repeating: i, count: i)) }
        total &+= arrays.count
    }
    return total
}

@inline(never) func scanFilesForever() -> Int {
    var total = 0
    let expression = try! Regex("([a-z]+):x:([0-9]+)")
    while total != -1 {
        let text = (try? String(contentsOfFile: "/etc/passwd", encoding: .utf8)) ?? ""
        for line in text.split(separator: "\n") {
            if let match = line.firstMatch(of: expression) { total &+= match.count }
        }
        total &+= (try? FileManager.default.contentsOfDirectory(atPath: "/etc"))?.count ?? 0
    }
    return total
}

@inline(never) @_semantics("optimize.sil.specialize.generic.never")
func foldForever<S: Sequence, R>(_ make: (Int) -> S, _ initial: R, _ combine: (R, S.Element) -> R)
    -> R
{
    var result = initial
    var round = 0
    while round >= 0 {
        for element in make(round) { result = combine(result, element) }
        round = (round + 1) % 1000
    }
    return result
}

@inline(never) func generateForever() -> Int {
    foldForever(
        { round in (0..<50).lazy.map { ($0 &* round, "\($0)") }.filter { $0.0 % 3 == 0 } },
        [String: Int]()
    ) { table, element in
        var next = table.count > 100 ? [:] : table
        next[element.1, default: 0] &+= element.0
        return next
    }.count
}
