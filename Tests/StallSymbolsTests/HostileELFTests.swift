import Foundation
import StallModel
import Testing

@testable import StallSymbols

/// Goal: whatever is in a file, reading it neither crashes nor takes long nor allocates much.
/// Method: a real library with seeded damage, most of it in the headers that steer the reader.
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
        var random = SplitMix(state: seed)
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

    @Test func `a directory, a FIFO and a missing file are no bytes`() {
        #expect(FileBytes(path: "/tmp") == nil)
        #expect(FileBytes(path: "/nowhere/at/all") == nil)
        let fifo = NSTemporaryDirectory() + "/stallwatch-fifo-\(getpid())"
        mkfifo(fifo, 0o600)
        defer { unlink(fifo) }
        #expect(FileBytes(path: fifo) == nil)
    }
}

/// **Source:** Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }
}
