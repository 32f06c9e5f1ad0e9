// Mutates stores, JSON lines, ELF images and dSYMs with their DWARF, .eh_frame tables and reports of other programs in
// this process, and passes each to its reader. A crash ends the process, which its parent detects.
//
//     hostile-fuzz [--seconds N | --executions N] STORE LINES ELF [REPORT | DSYM]...
//
// Without coverage: SwiftPM gives an executable its own main, which libFuzzer needs to provide. Inputs are valid, and
// mutations are those that break parsers: extremes, flipped bits, swapped and missing parts.

import CStackCapture
import Glibc
import StallFormats
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallSymbols

/// SplitMix64: the same inputs in every run of one seed.
struct Random: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }
    mutating func below(_ count: Int) -> Int { count > 0 ? Int(next() % UInt64(count)) : 0 }
}

/// A file in memory that has a path.
final class MemoryFile {
    let descriptor: CInt
    let path: String

    init() {
        var name = Array("/dev/shm/hostile-fuzz-XXXXXX".utf8CString)
        descriptor = mkstemp(&name)
        unlink(name)
        path = "/proc/self/fd/\(descriptor)"
    }

    func write(_ bytes: [UInt8]) {
        ftruncate(descriptor, 0)
        pwrite(descriptor, bytes, bytes.count, 0)
        lseek(descriptor, 0, SEEK_SET)
    }
}

func contents(of path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = fread(&part, 1, part.count, file)
        if count == 0 { return bytes }
        bytes += part.prefix(count)
    }
}

func mutated(_ seed: [UInt8], _ random: inout Random, within places: Range<Int>? = nil) -> [UInt8] {
    var bytes = seed
    let places = places ?? 0..<bytes.count
    for _ in 0...random.below(8) {
        guard !bytes.isEmpty else { return bytes }
        let at = min(places.lowerBound + random.below(places.count), bytes.count - 1)
        switch random.below(8) {
        case 0: bytes[at] ^= 1 << UInt8(random.below(8))
        case 1: bytes[at] = [0, 1, 0x7f, 0x80, 0xff, 0x22, 0x7b, 0x5d][random.below(8)]
        case 2: bytes[at] = UInt8(truncatingIfNeeded: random.next())
        case 3:
            for index in at..<min(at + 8, bytes.count) { bytes[index] = 0xff }
        case 4:
            for index in at..<min(at + 4, bytes.count) { bytes[index] = 0 }
        case 5:
            let from = random.below(bytes.count)
            for index in 0..<min(16, bytes.count - max(at, from)) {
                bytes[at + index] = bytes[from + index]
            }
        case 6 where random.below(4) == 0: bytes.removeLast(random.below(bytes.count))
        default: bytes[at] = bytes[at] &+ 1
        }
    }
    return bytes
}

func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
}

/// One kind of input and what reads it.
struct Target {
    var name: String
    var run: (inout Random) -> Void
}

func storeTarget(_ seed: [UInt8]) -> Target {
    let path = "/dev/shm/hostile-fuzz-\(getpid()).sqlite"
    let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
    return Target(name: "store") { random in
        let bytes = mutated(seed, &random)
        ftruncate(descriptor, 0)
        pwrite(descriptor, bytes, bytes.count, 0)
        guard let store = try? ReportStore.open(path: path) else { return }
        _ = try? store.status()
        _ = try? store.reports(ReportFilter(), limit: 3)
        _ = try? store.watchedLoops(ReportFilter(), withLengths: true)
    }
}

func lineTarget(_ seed: [UInt8]) -> Target {
    let file = MemoryFile()
    return Target(name: "lines") { random in
        file.write(mutated(seed, &random))
        var lines = ReportLines(descriptor: file.descriptor)
        for _ in 0..<10 {
            do { if try lines.next() == nil { return } } catch { continue }
        }
    }
}

/// The reports of one format, of which each execution takes another one; the parts of two may be put together.
func reportTarget(_ format: ReportFormat, _ seeds: [[UInt8]]) -> Target {
    Target(name: format.rawValue.replacing(" ", with: "-")) { random in
        var bytes = mutated(seeds[random.below(seeds.count)], &random)
        if random.below(8) == 0 {
            let other = seeds[random.below(seeds.count)]
            bytes.removeLast(random.below(bytes.count))
            bytes += other.dropFirst(random.below(other.count))
        }
        var options = ReadingOptions()
        options.takesAllAsStalls = true
        var feed = ForeignReports.feed(
            ByteStream(bytes: bytes), options, modified: UnixTime(microseconds: 0))
        for _ in 0..<10_000 {
            do { if try feed.next() == nil { return } } catch { continue }
        }
        fatalError("more than 10,000 reports and faults of \(bytes.count) bytes")
    }
}

func reportTargets(_ files: some Sequence<String>) -> [Target] {
    var seeds: [ReportFormat: [[UInt8]]] = [:]
    for file in files {
        let bytes = contents(of: file)
        guard let format = ForeignReports.format(of: ByteStream(bytes: bytes)) else { continue }
        seeds[format, default: []].append(bytes)
    }
    return ReportFormat.allCases.compactMap { format in
        seeds[format].map { reportTarget(format, $0) }
    }
}

func imageTarget(_ seed: [UInt8]) -> Target {
    let file = MemoryFile()
    // Where the tables that steer the reader are: the headers, and the sections behind the code.
    let tables = seed.count / 2..<seed.count
    return Target(name: "elf") { random in
        file.write(
            mutated(
                seed, &random, within: random.below(3) == 0 ? 0..<min(1024, seed.count) : tables))
        let image = Image(
            path: file.path, buildID: nil, loadAddress: 0x40_0000, endAddress: 0x80_0000)
        let locations = (0..<4).map { _ in
            CodeLocation(
                imagePath: file.path, buildID: nil, offset: UInt64(random.below(1 << 16)),
                kind: .returnAddress)
        }
        _ = Symbolizer().frames(for: locations, images: ImageTable(images: [image]))
    }
}

/// Tables as the compiler wrote them for this program's own libraries, in a mapping of its own.
func tableTarget() -> Target {
    let size = 32_768
    let memory = UnsafeMutableRawBufferPointer(
        start: mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        count: size)
    let base = UInt64(UInt(bitPattern: memory.baseAddress))
    let header = 8192
    func little(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
    // A CIE and three FDEs, and the table that leads to them.
    var tables: [UInt8] = []
    let first = header + 12 + 24
    func entry(_ bytes: [UInt8]) {
        var bytes = bytes
        while bytes.count % 4 != 0 { bytes.append(0) }
        tables += little(bytes.count) + bytes
    }
    entry(
        [0, 0, 0, 0, 1] + Array("zR".utf8) + [0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1])
    var rows: [(Int, Int)] = []
    for (start, program) in [
        (0x100, [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x8c, 3, 0x0b] as [UInt8]),
        (0x200, [0x0f, 3, 0x77, 8, 0x06, 0x10, 16, 2, 0x77, 16]),
        (0x300, [0x0e, 32, 0x86, 2, 0x0a, 0x0b]),
    ] {
        let at = first + tables.count
        rows.append((start - header, at - header))
        entry(little(at + 4 - first) + little(start - (at + 8)) + little(0x80) + [0] + program)
    }
    var seed: [UInt8] = [1, 0x1b, 0x03, 0x3b] + little(0) + little(rows.count)
    for row in rows { seed += little(row.0) + little(row.1) }
    seed += tables
    return Target(name: "eh_frame") { random in
        let bytes = mutated(seed, &random)
        UnsafeMutableRawBufferPointer(rebasing: memory[header...]).copyBytes(from: bytes)
        guard let unwinder = stall_unwinder_create(nil) else { return }
        defer { stall_unwinder_destroy(unwinder) }
        guard stall_unwinder_add_image(unwinder, base, base + UInt64(size), base + UInt64(header))
        else { return }
        var stack = (0..<64).map { _ in
            random.below(2) == 0 ? base + UInt64(random.below(0x400)) : random.next()
        }
        let count = UInt64(stack.count * 8)
        stack.withUnsafeMutableBytes { words in
            let start = UInt64(UInt(bitPattern: words.baseAddress))
            var registers = stall_registers()
            withUnsafeMutableBytes(of: &registers) { registers in
                for offset in stride(from: 0, to: registers.count - 7, by: 8) {
                    let value =
                        random.below(2) == 0 ? start + UInt64(random.below(64) * 8) : base + 0x120
                    registers.storeBytes(of: value, toByteOffset: offset, as: UInt64.self)
                }
            }
            var copy = stall_stack_copy()
            copy.bytes = UnsafePointer(words.baseAddress!.assumingMemoryBound(to: UInt8.self))
            copy.base = start
            copy.length = count
            var frames = [stall_frame](repeating: stall_frame(), count: 32)
            var isTruncated = false
            _ = stall_unwind(unwinder, &registers, &copy, &frames, 32, &isTruncated)
        }
    }
}

@main
struct HostileFuzz {
    static func main() {
        Ingest.prepareProcess()
        var (seconds, executions) = (20.0, Int.max)
        var files: [String] = []
        var arguments = CommandLine.arguments.dropFirst()
        while let argument = arguments.popFirst() {
            switch argument {
            case "--seconds": seconds = arguments.popFirst().flatMap { Double($0) } ?? seconds
            case "--executions":
                executions = arguments.popFirst().flatMap { Int($0) } ?? executions
                seconds = .infinity
            default: files.append(argument)
            }
        }
        guard files.count >= 3 else {
            say(
                "usage: hostile-fuzz [--seconds N | --executions N] STORE LINES ELF [REPORT | DSYM]..."
            )
            exit(64)
        }
        let others = files.dropFirst(3)
        let dSYMs = others.map(contents).filter(isDSYM)
        let targets =
            [
                storeTarget(contents(of: files[0])), lineTarget(contents(of: files[1])),
                imageTarget(contents(of: files[2])), tableTarget(),
            ] + (dSYMs.isEmpty ? [] : [dsymTarget(dSYMs)]) + reportTargets(others)
        var total = 0
        for (index, target) in targets.enumerated() {
            var random = Random(state: UInt64(index))
            let start = ContinuousClock.now
            var count = 0
            while count < executions,
                count % 64 != 0
                    || (ContinuousClock.now - start) / .seconds(1) < seconds / Double(targets.count)
            {
                target.run(&random)
                count += 1
            }
            say("\(target.name)=\(count)")
            total += count
        }
        unlink("/dev/shm/hostile-fuzz-\(getpid()).sqlite")
        say("executions=\(total)")
    }
}
