import Foundation
import StallModel
import TestSupport
import Testing

@testable import StallSymbols

/// Goal: a damaged Mach-O file is refused with its place and what was expected there, or yields fewer names; reading it
/// neither crashes nor takes long nor allocates much.
/// Method: the dSYMs of sample-data/dsym with one wrong number, and with seeded damage. `make fuzz` reads a million.
@Suite struct HostileMachOTests {
    @Test func `a wrong number is named with its place and what was expected`() throws {
        // Load command 0 is the UUID, 2 the symbols, 3 the segment __PAGEZERO, 4 __TEXT, the last __DWARF.
        let cases: [(String, (inout [UInt8]) -> Void)] = [
            ("the header at byte 0", { $0 = Array($0.prefix(20)) }),
            ("the load commands at byte 32", { $0.put(0x7fff_ffff, at: 20) }),
            ("the load commands at byte 32", { $0.put(0x7fff_ffff, at: 16) }),
            ("load command 0 at byte 32", { $0.put(4, at: 36) }),
            ("load command 0 at byte 32", { $0.put(0xffff_fff8, at: 36) }),
            ("load command 2 at byte 80", { $0.put(0x0fff_ffff, at: 80 + 12) }),
            ("load command 2 at byte 80", { $0.put(0xffff_ffff, at: 80 + 16) }),
            ("load command 4 at byte 176", { $0.put(0xffff_ffff, at: 176 + 64) }),
            ("load command", { $0 = Array($0.prefix($0.count / 2)) }),
        ]
        for (place, damage) in cases {
            var bytes = try DSYMSample.bytes("arm64")
            damage(&bytes)
            let fault = #expect(throws: MachOFault.self) {
                _ = try objectFiles(in: CopiedBytes(bytes: bytes))
            }
            let text = fault?.description ?? ""
            #expect(text.hasPrefix(place), "\(text)")
            #expect(
                ["expected", "the file has", "none of"].contains { text.contains($0) }, "\(text)")
        }
    }

    @Test func `a fat file that leads out of the file is refused with the architecture`() throws {
        var bytes = fatFile(of: [try DSYMSample.bytes("arm64")], isWide: false)
        bytes[8 + 12] = 0x7f
        let fault = #expect(throws: MachOFault.self) {
            _ = try objectFiles(in: CopiedBytes(bytes: bytes))
        }
        #expect(fault?.place == "fat architecture 0 at byte 8")
    }

    @Test func `other files are neither read nor faults`() throws {
        let java: [UInt8] = [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61] + Array(repeating: 7, count: 400)
        var old = try DSYMSample.bytes("arm64")
        old[0] = 0xce
        var other = try DSYMSample.bytes("arm64")
        other[4] = 0x12
        for bytes in [[], [0xcf], java, old, other, Array("<plist>".utf8)] as [[UInt8]] {
            #expect(try objectFiles(in: CopiedBytes(bytes: bytes)).isEmpty)
        }
    }

    @Test(arguments: 0..<600)
    func `damage yields fewer names at worst`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var bytes = try DSYMSample.bytes(seed.isMultiple(of: 2) ? "arm64" : "x86_64")
        if seed.isMultiple(of: 3) { bytes = fatFile(of: [bytes], isWide: seed.isMultiple(of: 2)) }
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            let place =
                Bool.random(using: &random)
                ? Int.random(in: 0..<1500, using: &random)
                : .random(in: bytes.indices, using: &random)
            let wild: [UInt8] = [0, 1, 0x7f, 0x80, 0xff, .random(in: 0...255, using: &random)]
            bytes[place] = wild.randomElement(using: &random)!
        }
        if seed.isMultiple(of: 7) {
            bytes = Array(bytes.prefix(.random(in: bytes.indices, using: &random)))
        }
        let addresses =
            (0..<32).map { _ in 0x1_0000_0000 + UInt64.random(in: 0...0x800, using: &random) }
            + [0, .max]
        for file in (try? objectFiles(in: CopiedBytes(bytes: bytes))) ?? [] {
            for symbol in file.namedSymbols(at: addresses).named.values {
                #expect(!symbol.name.isEmpty)
            }
            var debug = DebugInformation(file, limit: 1 << 24, isOverBudget: { false })
            for context in debug?.contexts(at: addresses).values ?? [:].values {
                #expect(!context.positions.isEmpty)
            }
        }
    }

    /// Each of 1,000 units has its first abbreviation at the end of one table that all share.
    @Test func `units that share a long table do not make reading quadratic`() throws {
        var table: [UInt8] = []
        for code in 1...2_000 { table += Self.uleb(UInt64(code + 1)) + [0x24, 0, 0, 0] }
        table += [1, 0x11, 0, 0, 0]
        let unit: [UInt8] = [8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1]
        let info = (0..<1_000).flatMap { _ in unit }
        let file = SectionsOnly(sections: [".debug_info": info, ".debug_abbrev": table])
        var debug = try #require(
            DebugInformation(file, limit: 1 << 30, readLimit: 50_000, isOverBudget: { false }))
        #expect(debug.contexts(at: [0x1000]).isEmpty)
        #expect(debug.isCut)
    }

    private static func uleb(_ number: UInt64) -> [UInt8] {
        var (rest, bytes) = (number, [UInt8]())
        repeat {
            bytes.append(UInt8(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return bytes
    }
}

/// A file that has nothing but debug sections.
private struct SectionsOnly: ObjectFile {
    let sections: [String: [UInt8]]
    let buildID: BuildID? = nil
    let lowestAddress: UInt64 = 0
    let highestAddress: UInt64 = .max
    let hasSymbolTable = false
    let hasCompressedDebugInformation = false
    let debugLink: String? = nil
    let hasUnboundedSymbols = true

    func namedSymbols(at addresses: [UInt64]) -> NamedSymbols { NamedSymbols() }
    func exports(named names: [String]) -> [String: Symbol] { [:] }
    func size(of name: String) -> UInt64? { sections[name].map { UInt64($0.count) } }
    func contents(of name: String, from start: UInt64, count: UInt64) -> [UInt8]? {
        sections[name].flatMap {
            CopiedBytes(bytes: $0).bytes(at: start, count: count)
        }
    }
    func string(inSection name: String, at index: UInt64) -> String? { nil }
}

extension [UInt8] {
    fileprivate mutating func put(_ number: UInt32, at place: Int) {
        for index in 0..<4 {
            self[place + index] = UInt8(truncatingIfNeeded: number >> (index * 8))
        }
    }
}
