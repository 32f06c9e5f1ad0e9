import Foundation
import StallModel
import Testing
import TestSupport

@testable import StallSymbols

/// Goal: reading any file neither crashes nor takes long nor allocates much.
/// Method: a real library with seeded damage, mostly in the headers that control the reader.
@Suite struct HostileELFTests {
    static let library: [UInt8] = {
        let path =
            ImageTable.current().images.first { $0.name == "libBlocksRuntime.so" }?.path
            ?? ImageTable.current().images.first { $0.name.hasPrefix("libgcc_s") }!.path
        return [UInt8](FileManager.default.contents(atPath: path)!)
    }()

    @Test func `the undamaged library has a build ID and symbols`() throws {
        let file = try #require(ELFFile(CopiedBytes(bytes: Self.library)))
        #expect(file.buildID != nil)
        let everywhere = stride(from: file.lowestAddress, to: file.highestAddress, by: 32).map {
            $0
        }
        #expect(file.symbols(at: everywhere).count > 10)
    }

    @Test(arguments: 0..<400)
    func `damage yields fewer names at worst`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes = Self.library
        let tables = Int(bytes[40..<48].reversed().reduce(0) { $0 << 8 | UInt64($1) })
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            let place: Int =
                switch UInt8.random(in: 0..<4, using: &random) {
                case 0: .random(in: 0..<64, using: &random)
                case 1: .random(in: 64..<1024, using: &random)
                case 2: .random(in: min(tables, bytes.count - 1)..<bytes.count, using: &random)
                default: .random(in: 0..<bytes.count, using: &random)
                }
            let wild: [UInt8] = [0, 1, 0x7f, 0x80, 0xff, .random(in: 0...255, using: &random)]
            bytes[place] = wild.randomElement(using: &random)!
        }
        if seed.isMultiple(of: 5) {
            bytes = Array(bytes.prefix(.random(in: 0..<bytes.count, using: &random)))
        }
        guard let file = ELFFile(CopiedBytes(bytes: bytes)) else { return }
        let addresses =
            (0..<64).map { _ in UInt64.random(in: 0...0x40000, using: &random) } + [0, .max]
        for symbol in file.symbols(at: addresses).values { #expect(!symbol.isEmpty) }
    }

    /// The test's own program, for its debug information: damage in it, not in the headers that lead there.
    @Test(arguments: 0..<60)
    func `damaged debug information yields fewer lines at worst`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let source = DamagedBytes(bytes: Self.program, damage: seed, everyBytes: 200 << (seed % 8))
        guard let file = ELFFile(source),
            var debug = DebugInformation(file, limit: 1 << 24, isOverBudget: { false })
        else { return }
        let addresses = (0..<40).map { _ in
            UInt64.random(in: file.lowestAddress...file.highestAddress, using: &random)
        }
        for context in debug.contexts(at: addresses + [0, .max]).values {
            #expect(!context.positions.isEmpty)
        }
    }

    static let program: [UInt8] = {
        let path = ImageTable.current().images[0].path
        return [UInt8](FileManager.default.contents(atPath: path)!)
    }()

    @Test func `a directory, a FIFO and a missing file are no bytes`() {
        #expect(FileBytes(path: "/tmp") == nil)
        #expect(FileBytes(path: "/nowhere/at/all") == nil)
        let fifo = NSTemporaryDirectory() + "/stallwatch-fifo-\(getpid())"
        mkfifo(fifo, 0o600)
        defer { unlink(fifo) }
        #expect(FileBytes(path: fifo) == nil)
    }
}

/// A file with a wrong byte at regular intervals in its second half, at the same offsets for every reader.
private struct DamagedBytes: ByteSource {
    let bytes: [UInt8]
    let damage: UInt64
    let everyBytes: UInt64
    var size: UInt64 { UInt64(bytes.count) }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Bool {
        guard CopiedBytes(bytes: bytes).read(into: buffer, at: offset) else { return false }
        let last = offset + UInt64(buffer.count)
        // Headers at the start and section headers at the end stay whole.
        for place in stride(from: offset / everyBytes * everyBytes, to: last, by: Int(everyBytes)) {
            var random = SeededGenerator(seed: damage ^ place)
            let target = place + random.next() % everyBytes
            guard target >= max(offset, 4096), target < min(last, size - min(size, 8192)) else {
                continue
            }
            buffer[Int(target - offset)] = UInt8.random(in: 0...255, using: &random)
        }
        return true
    }
}
