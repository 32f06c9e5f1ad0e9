// Sites that were added after the others passed, without checking their names first.

import CStallSites
import Foundation

final class Album {
    lazy var thumbnails: Int = {
        var sum = 3
        while !isEnough() { sum &+= mix(sum) }
        return sum
    }()

    var title = 0 {
        didSet { while !isEnough() { sink &+= mix(title) } }
    }

    var onClose: (() -> Void)?

    @inline(never) func close() {
        onClose?()
        sink &+= 1
    }
}

@inline(never) func openAlbum(_ album: Album) { sink &+= album.thumbnails }
@inline(never) func renameAlbum(_ album: Album) { album.title &+= 1 }

protocol Exporter {}
extension Exporter {
    @inline(never) func export() {
        while !isEnough() { sink &+= mix(sink) }
        sink &+= 1
    }
}
struct PDFExporter: Exporter {}

@inline(never) func makeFilter() -> some Sequence<Int> { (0..<900).lazy.filter { $0 % 3 == 0 } }
@inline(never) func drainFilter() {
    while !isEnough() { for number in makeFilter() { sink &+= mix(number) } }
}

struct Version: Comparable {
    var parts: [Int]
    @inline(never) static func < (left: Version, right: Version) -> Bool {
        if !isEnough() { sink &+= mix(left.parts[0]) }
        return left.parts[0] < right.parts[0]
    }
}
@inline(never) func sortVersions() {
    while !isEnough() {
        sink &+= (0..<300).map { Version(parts: [($0 * 7919) % 307]) }.sorted()[0].parts[0]
    }
}

struct Tag: Hashable {
    var name: Int
    @inline(never) func hash(into hasher: inout Hasher) {
        hasher.combine(mix(name))
        hasher.combine(mix(name &+ 1))
    }
}
@inline(never) func collectTags() {
    while !isEnough() { sink &+= Set((0..<300).map { Tag(name: $0) }).count }
}

struct Countdown: Sequence, IteratorProtocol {
    var left: Int
    @inline(never) mutating func next() -> Int? {
        if left == 0 { return nil }
        left -= 1
        return mix(left)
    }
}
@inline(never) func countDown() {
    while !isEnough() { for number in Countdown(left: 300) { sink &+= number } }
}

struct Invoice: Codable {
    var total: Int
    init(total: Int) { self.total = total }
    @inline(never) func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        var sum = total
        for _ in 0..<300 { sum &+= mix(sum) }
        try container.encode(sum)
    }
}
@inline(never) func sendInvoices() {
    let encoder = JSONEncoder()
    while !isEnough() { sink &+= (try? encoder.encode([Invoice(total: 3)]).count) ?? 0 }
}

@inline(never) func cleanUp(_ body: () -> Int) -> Int {
    defer { usleep(stallMicroseconds) }
    return body() &+ 1
}

func countPacked<each Value>(_ values: repeat each Value) -> Int {
    var count = 0
    repeat (count += (each values) is Int ? 1 : 2)
    return count
}
@inline(never) func packAll() {
    while !isEnough() { for number in 0..<100 { sink &+= mix(countPacked(number, "a", 2.5)) } }
}

@inline(never) func scaleBytes() {
    var bytes = [UInt8](repeating: 3, count: 4096)
    while !isEnough() {
        bytes.withUnsafeMutableBytes { buffer in
            for index in buffer.indices { buffer[index] = buffer[index] &* 5 &+ 1 }
        }
    }
    sink &+= Int(bytes[7])
}

enum Weather: CaseIterable {
    case sun, rain
    @inline(never) var forecast: Int {
        var sum = self == .sun ? 1 : 2
        while !isEnough() { sum &+= mix(sum) }
        return sum
    }
}

@inline(never) func renderTiles() {
    DispatchQueue.concurrentPerform(iterations: 1) { _ in while !isEnough() { sink &+= mix(sink) } }
    sink &+= 1
}

@inline(never) func parseLinks() {
    while !isEnough() {
        sink &+=
            URLComponents(string: "https://example.org/a/b?c=\(sink & 255)#d")?.queryItems?.count
            ?? 0
    }
}

@inline(never) func walkCalendar() {
    let calendar = Calendar(identifier: .gregorian)
    var date = Date(timeIntervalSince1970: 0)
    while !isEnough() { date = calendar.date(byAdding: .month, value: 1, to: date) ?? date }
    sink &+= Int(date.timeIntervalSince1970) & 1
}

@inline(never) func trimLines() {
    while !isEnough() { sink &+= "  \(sink & 255) x ".trimmingCharacters(in: .whitespaces).count }
}

@inline(never) func copyBackup(_ from: String, _ to: String) {
    let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
    while clockTime(CLOCK_MONOTONIC) < end {
        try? FileManager.default.removeItem(atPath: to)
        try? FileManager.default.copyItem(atPath: from, toPath: to)
        sink &+= 1
    }
}

@inline(never) func sleepWholeDate() {
    Thread.sleep(until: Date(timeIntervalSinceNow: stallSeconds))
    sink &+= 1
}

typealias RWPointer = UnsafeMutablePointer<pthread_rwlock_t>
@inline(never) func readWithLimit(_ lock: RWPointer) {
    var limit = timespec()
    clock_gettime(CLOCK_REALTIME, &limit)
    limit.tv_sec += 5
    if pthread_rwlock_timedrdlock(lock, &limit) == 0 { pthread_rwlock_unlock(lock) }
    sink &+= 1
}

@inline(never) func lockTwoInOrder(_ first: MutexPointer, _ second: MutexPointer) {
    pthread_mutex_lock(first)
    pthread_mutex_lock(second)
    sink &+= 1
    pthread_mutex_unlock(second)
    pthread_mutex_unlock(first)
}

@inline(never) func viaMainQueueTarget(_ queue: DispatchQueue) {
    queue.sync {
        usleep(stallMicroseconds)
        sink &+= 1
    }
    sink &+= 1
}

@inline(never) func readNumbered(_ handle: FileHandle) {
    sink &+= (try? handle.read(upToCount: 1)?.count) ?? 0
}

@inline(never) func runTool(_ process: Process) throws {
    try process.run()
    process.waitUntilExit()
    sink &+= 1
}

@inline(never) func outer(_ depth: Int) -> Int { depth == 0 ? pause2() : inner2(depth - 1) &+ 1 }
@inline(never) func inner2(_ depth: Int) -> Int { depth == 0 ? pause2() : outer(depth - 1) &+ 1 }
@inline(never) func pause2() -> Int {
    usleep(stallMicroseconds)
    return sink &+ 1
}

private func work(_ name: String, in functions: String..., body: @escaping () -> Void) -> Site {
    var site = Site(name, in: functions[0], for: [.cpu]) { _ in body }
    site.functions = functions
    return site
}

let moreSites: [Site] = [
    work(
        "lazy var", in: "Album.thumbnails.getter", "openAlbum(_:)", "varinit in Album.thumbnails"
    ) { openAlbum(Album()) },
    work("didSet", in: "Album.title.didset", "renameAlbum(_:)") { renameAlbum(Album()) },
    Site("stored closure", in: "Album.close()", "varinit in moreSites", for: [.sleep]) { _ in
        let album = Album()
        album.onClose = { usleep(stallMicroseconds) }
        return { album.close() }
    },
    work("protocol extension", in: "Exporter.export()") { PDFExporter().export() },
    work("opaque type", in: "drainFilter()") { drainFilter() },
    work(
        "Comparable", in: "static Version.< infix(_:_:)", "Version.< infix(_:_:)", "sortVersions()"
    ) { sortVersions() },
    work(
        "Hashable", in: "Tag.hash(into:)",
        "Tag._rawHashValue(seed:)", "collectTags()"
    ) { collectTags() },
    work("iterator", in: "Countdown.next()", "countDown()") { countDown() },
    work("encode(to:)", in: "Invoice.encode(to:)", "sendInvoices()") { sendInvoices() },
    Site("defer", in: "cleanUp(_:)", for: [.sleep]) { _ in { sink &+= cleanUp { sink } } },
    work("parameter packs", in: "packAll()", "countPacked(_:)") { packAll() },
    work("withUnsafeMutableBytes", in: "scaleBytes()") { scaleBytes() },
    work("property of an enum", in: "Weather.forecast.getter") { sink &+= Weather.rain.forecast },
    work("concurrentPerform", in: "renderTiles()") { renderTiles() },
    work("URLComponents", in: "parseLinks()") { parseLinks() },
    work("Calendar", in: "walkCalendar()") { walkCalendar() },
    work("CharacterSet", in: "trimLines()") { trimLines() },
    Site("copyItem", in: "copyBackup(_:_:)", for: [.disk], isMeasured: true) { _ in
        let from = scratch + "/from"
        _ = FileManager.default.createFile(atPath: from, contents: Data(count: 1 << 20))
        return { copyBackup(from, scratch + "/to") }
    },
    Site("Thread.sleep(until:)", in: "sleepWholeDate()", for: [.sleep]) { _ in { sleepWholeDate() }
    },
    Site("rwlock with a limit", in: "readWithLimit(_:)", for: [.lock]) { visit in
        let lock = RWPointer.allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
        visit.hold({ pthread_rwlock_wrlock(lock) }, { pthread_rwlock_unlock(lock) })
        return { readWithLimit(lock) }
    },
    Site("second of two mutexes", in: "lockTwoInOrder(_:_:)", for: [.lock]) { visit in
        let (first, second) = (newMutex(0), newMutex(0))
        visit.hold({ pthread_mutex_lock(second) }, { pthread_mutex_unlock(second) })
        return { lockTwoInOrder(first, second) }
    },
    Site("item of queue.sync", in: "viaMainQueueTarget(_:)", for: [.sleep]) { _ in
        let queue = DispatchQueue(label: "site.idle")
        return { viaMainQueueTarget(queue) }
    },
    Site("read(upToCount:)", in: "readNumbered(_:)", for: [.ipc]) { visit in
        let pipe = Pipe()
        visit.later { pipe.fileHandleForWriting.write(Data([3])) }
        return { readNumbered(pipe.fileHandleForReading) }
    },
    Site("run and wait", in: "runTool(_:)", for: [.ipc]) { _ in
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sleep")
        process.arguments = ["0.2"]
        return { try? runTool(process) }
    },
    Site("mutual recursion", in: "pause2()", for: [.sleep]) { _ in { sink &+= outer(40) } },
]
