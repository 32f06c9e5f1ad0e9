// Files, databases, memory.

import CSQLite
import CStallSites
import Foundation

nonisolated(unsafe) var scratch = "/var/tmp"

func prepareScratch(beside store: String) {
    let folder = URL(fileURLWithPath: store).deletingLastPathComponent().path
    scratch = folder + "/scratch-\(getpid())"
    try? FileManager.default.createDirectory(atPath: scratch, withIntermediateDirectories: true)
    atexit { try? FileManager.default.removeItem(atPath: scratch) }
}

@inline(never) func syncJournal(_ file: Int32) {
    let bytes = [UInt8](repeating: 3, count: 4096)
    let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
    while clockTime(CLOCK_MONOTONIC) < end {
        pwrite(file, bytes, bytes.count, 0)
        fsync(file)
        sink &+= 1
    }
}

@inline(never) func syncData(_ file: Int32) {
    let bytes = [UInt8](repeating: 4, count: 4096)
    let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
    while clockTime(CLOCK_MONOTONIC) < end {
        pwrite(file, bytes, bytes.count, 8192)
        fdatasync(file)
        sink &+= 1
    }
}

@inline(never) func writeThrough(_ file: Int32) {
    let bytes = [UInt8](repeating: 5, count: 4096)
    let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
    while clockTime(CLOCK_MONOTONIC) < end {
        sink &+= pwrite(file, bytes, bytes.count, 0)
    }
}

@inline(never) func synchronizeHandle(_ handle: FileHandle) {
    let data = Data(repeating: 6, count: 4096)
    let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
    while clockTime(CLOCK_MONOTONIC) < end {
        handle.seek(toFileOffset: 0)
        handle.write(data)
        handle.synchronizeFile()
        sink &+= 1
    }
}

@inline(never) func listFolder(_ path: String) {
    while !isEnough() {
        sink &+= (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
    }
}

@inline(never) func statFiles(_ path: String) {
    var status = stat()
    while !isEnough() {
        for _ in 0..<200 { sink &+= Int(stat(path, &status)) + 1 }
    }
}

@inline(never) func readCached(_ file: Int32) {
    var bytes = [UInt8](repeating: 0, count: 1 << 18)
    while !isEnough() { sink &+= pread(file, &bytes, bytes.count, 0) }
}

@inline(never) func loadText(_ path: String) {
    while !isEnough() { sink &+= (try? String(contentsOfFile: path, encoding: .utf8).count) ?? 0 }
}

@inline(never) func fillFromRandom(_ file: Int32) {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    while !isEnough() { sink &+= read(file, &bytes, bytes.count) }
}

@inline(never) func createAndRemove(_ folder: String) {
    let path = folder + "/entry"
    let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
    while clockTime(CLOCK_MONOTONIC) < end {
        close(open(path, O_CREAT | O_WRONLY, 0o600))
        unlink(path)
        sink &+= 1
    }
}

@inline(never) func writeAtomically(_ url: URL) {
    let data = Data(repeating: 1, count: 20_000)
    let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
    while clockTime(CLOCK_MONOTONIC) < end {
        try? data.write(to: url, options: .atomic)
        sink &+= 1
    }
}

private func file(_ name: String, _ visit: Visit, flags: Int32 = 0, size: Int = 1 << 18) -> Int32 {
    let file = open(scratch + "/" + name, O_RDWR | O_CREAT | flags, 0o600)
    let bytes = [UInt8](repeating: 65, count: size)
    write(file, bytes, size)
    visit.atEnd { close(file) }
    return file
}

let fileSites: [Site] = [
    Site("fsync", in: "syncJournal(_:)", for: [.disk], isMeasured: true) { visit in
        let file = file("fsync", visit)
        return { syncJournal(file) }
    },
    Site("fdatasync", in: "syncData(_:)", for: [.disk], isMeasured: true) { visit in
        let file = file("fdatasync", visit)
        return { syncData(file) }
    },
    Site("O_SYNC", in: "writeThrough(_:)", for: [.disk], isMeasured: true) { visit in
        let file = file("osync", visit, flags: O_SYNC)
        return { writeThrough(file) }
    },
    Site("FileHandle.synchronizeFile", in: "synchronizeHandle(_:)", for: [.disk], isMeasured: true)
    { _ in
        let path = scratch + "/handle"
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        let handle = FileHandle(forWritingAtPath: path)!
        return { synchronizeHandle(handle) }
    },
    Site("directory listing", in: "listFolder(_:)", for: [.cpu]) { _ in
        let folder = scratch + "/many"
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for number in 0..<500 { close(open(folder + "/\(number)", O_CREAT | O_WRONLY, 0o600)) }
        return { listFolder(folder) }
    },
    Site("stat", in: "statFiles(_:)", for: [.cpu]) { visit in
        _ = file("stat", visit)
        let path = scratch + "/stat"
        return { statFiles(path) }
    },
    Site("cached file", in: "readCached(_:)", for: [.cpu]) { visit in
        let file = file("cached", visit)
        return { readCached(file) }
    },
    Site("String(contentsOf:)", in: "loadText(_:)", for: [.cpu]) { visit in
        _ = file("text", visit, size: 1 << 16)
        let path = scratch + "/text"
        return { loadText(path) }
    },
    Site("/dev/urandom", in: "fillFromRandom(_:)", for: [.cpu]) { visit in
        let file = open("/dev/urandom", O_RDONLY)
        visit.atEnd { close(file) }
        return { fillFromRandom(file) }
    },
    Site("create and remove", in: "createAndRemove(_:)", for: [.disk], isMeasured: true) { _ in
        { createAndRemove(scratch) }
    },
    Site("atomic write", in: "writeAtomically(_:)", for: [.disk], isMeasured: true) { _ in
        let url = URL(fileURLWithPath: scratch + "/atomic")
        return { writeAtomically(url) }
    },
]

// MARK: - SQLite

final class Database {
    var handle: OpaquePointer?

    init(_ name: String, busy: Int32 = 5000) {
        sqlite3_open(scratch + "/" + name, &handle)
        sqlite3_busy_timeout(handle, busy)
    }

    deinit { sqlite3_close(handle) }

    func run(_ text: String) { sink &+= Int(sqlite3_exec(handle, text, nil, nil, nil)) }

    @inline(never) func saveOrder() {
        run("insert into orders values (1)")
        sink &+= 1
    }

    @inline(never) func readOrders() {
        var statement: OpaquePointer?
        sqlite3_prepare_v2(handle, "select * from orders", -1, &statement, nil)
        while sqlite3_step(statement) == 100 { sink &+= 1 }
        sqlite3_finalize(statement)
    }

    @inline(never) func countPrimes() {
        while !isEnough() {
            run(
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select sum(i % 7) from n"
            )
        }
    }

    @inline(never) func importRows() {
        let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
        while clockTime(CLOCK_MONOTONIC) < end { run("insert into orders values (2)") }
    }

    @inline(never) func shareConnection() {
        sink &+= Int(sqlite3_changes(handle))
        run("select 1")
    }
}

let databaseSites: [Site] = [
    Site("SQLite, busy", in: "Database.saveOrder()", "Database.run(_:)", for: [.lock]) { visit in
        unlink(scratch + "/busy.db")
        let (mine, other) = (Database("busy.db"), Database("busy.db"))
        other.run("create table orders (id)")
        other.run("begin exclusive")
        visit.later { other.run("commit") }
        return { mine.saveOrder() }
    },
    Site("SQLite, locked by a child", in: "Database.readOrders()", "Database.run(_:)", for: [.lock])
    { visit in
        let path = scratch + "/child.db"
        unlink(path)
        let mine = Database("child.db")
        mine.run("create table orders (id)")
        // As SQLite does: the pending, the reserved and the shared bytes.
        guard let child = site_child_locking(path, 0x4000_0000, 512) else { return nil }
        visit.later { site_child_end(child) }
        return { mine.readOrders() }
    },
    Site(
        "SQLite, a query that computes", in: "Database.countPrimes()", "Database.run(_:)",
        for: [.cpu]
    ) { _ in
        let database = Database("query.db")
        return { database.countPrimes() }
    },
    Site(
        "SQLite, commits", in: "Database.importRows()", "Database.run(_:)", for: [.disk],
        isMeasured: true
    ) { _ in
        unlink(scratch + "/commits.db")
        let database = Database("commits.db")
        database.run("create table orders (id)")
        return { database.importRows() }
    },
    Site(
        "SQLite, one connection, two threads", in: "Database.shareConnection()", "Database.run(_:)",
        for: [.lock]
    ) { visit in
        let database = Database("shared.db")
        let mutex = sqlite3_db_mutex(database.handle)
        visit.hold({ sqlite3_mutex_enter(mutex) }, { sqlite3_mutex_leave(mutex) })
        return { database.shareConnection() }
    },
]

// MARK: - Memory

@inline(never) func churn() {
    while !isEnough() {
        for size in 1..<400 {
            let block = malloc(size * 7)
            sink ^= Int(bitPattern: block)
            free(block)
        }
    }
}

@inline(never) func growArrays() {
    while !isEnough() {
        var numbers: [Int] = []
        for number in 0..<5000 { numbers.append(number) }
        sink &+= numbers.count
    }
}

@inline(never) func touchPages() {
    while !isEnough() {
        let memory = mmap(nil, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        for offset in stride(from: 0, to: 8 << 20, by: 4096) {
            memory.storeBytes(of: 1, toByteOffset: offset, as: UInt8.self)
        }
        munmap(memory, 8 << 20)
        sink &+= 1
    }
}

@inline(never) func copyBlocks() {
    let (from, to) = (malloc(8 << 20)!, malloc(8 << 20)!)
    memset(from, 1, 8 << 20)
    while !isEnough() { memcpy(to, from, 8 << 20) }
    sink &+= Int(to.load(as: UInt8.self))
    free(from)
    free(to)
}

@inline(never) func appendData() {
    while !isEnough() {
        var data = Data()
        for byte in 0..<4000 { data.append(UInt8(truncatingIfNeeded: byte)) }
        sink &+= data.count
    }
}

@inline(never) func joinStrings() {
    while !isEnough() {
        var text = ""
        for number in 0..<2000 { text += "item \(number), " }
        sink &+= text.utf8.count
    }
}

final class Node {
    var next: Node?
    init(_ next: Node?) { self.next = next }
}

@inline(never) func releaseLists() {
    while !isEnough() {
        var list: Node?
        for _ in 0..<2000 { list = Node(list) }
        while let node = list { list = node.next }
        sink &+= 1
    }
}

@inline(never) func readColdMapping(_ file: Int32, _ size: Int) {
    posix_fadvise(file, 0, 0, 4)
    let memory = mmap(nil, size, PROT_READ, MAP_SHARED, file, 0)!
    madvise(memory, size, 1)
    var sum = 0
    let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
    var offset = 0
    while clockTime(CLOCK_MONOTONIC) < end {
        sum += Int(memory.load(fromByteOffset: offset, as: UInt8.self))
        offset += 4096 * 37
        if offset >= size {
            offset %= size
            madvise(memory, size, 4)
            posix_fadvise(file, 0, 0, 4)
        }
    }
    sink &+= sum
    munmap(memory, size)
}

let memorySites: [Site] = [
    Site("malloc and free", in: "churn()", for: [.cpu]) { _ in { churn() } },
    Site("growing arrays", in: "growArrays()", for: [.cpu]) { _ in { growArrays() } },
    Site("page faults", in: "touchPages()", for: [.cpu, .pageFault]) { _ in { touchPages() } },
    Site("memcpy", in: "copyBlocks()", for: [.cpu]) { _ in { copyBlocks() } },
    Site("Data.append", in: "appendData()", for: [.cpu]) { _ in { appendData() } },
    Site("strings", in: "joinStrings()", for: [.cpu]) { _ in { joinStrings() } },
    Site("release of lists", in: "releaseLists()", for: [.cpu]) { _ in { releaseLists() } },
    Site("cold mapping", in: "readColdMapping(_:_:)", for: [.pageFault, .disk, .cpu]) { visit in
        let file = file("cold", visit, size: 64 << 20)
        fsync(file)
        return { readColdMapping(file, 64 << 20) }
    },
]
