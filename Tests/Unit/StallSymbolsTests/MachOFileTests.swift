import Foundation
import StallModel
import TestSupport
import Testing

@testable import StallSymbols

/// Goal: functions, inlined calls, files and lines of a dSYM are those that llvm-symbolizer finds.
/// Method: the dSYMs of sample-data/dsym, DWARF 5 for arm64 and DWARF 4 for x86_64, with its answers beside them. Fat
/// and stripped files are made of these by the test. `make truth-formats` compares many more, and needs LLVM.
@Suite struct MachOFileTests {
    @Test(arguments: ["arm64", "x86_64"])
    func `every instruction has the calls, files and lines that llvm-symbolizer finds`(
        architecture: String
    ) throws {
        let path = DSYMSample.path(architecture)
        let places = try DSYMSample.places(architecture)
        let found = try DSYMSample.frames(path, architecture, places.map(\.offset))
        for place in places {
            #expect(found[place.offset] == place.frames, "0x\(String(place.offset, radix: 16))")
        }
        #expect(places.count > 100 && places.contains { $0.frames.count == 3 })
    }

    @Test(arguments: [false, true], ["arm64", "x86_64"])
    func `each architecture of a fat file is found by its UUID`(
        isWide: Bool, architecture: String
    ) throws {
        try withTemporaryDirectory { directory in
            let fat = directory.appending(path: "Shop")
            let slices = try ["arm64", "x86_64"].map(DSYMSample.bytes)
            try Data(fatFile(of: slices, isWide: isWide)).write(to: fat)
            let files = try SymbolFile.files(at: fat.path)
            #expect(files.map(\.buildID) == [DSYMSample.arm64, DSYMSample.x86_64])
            #expect(files.allSatisfy { $0.isMachO && $0.hasLines && $0.hasSymbols })
            let places = try DSYMSample.places(architecture)
            let found = try DSYMSample.frames(fat.path, architecture, places.map(\.offset))
            #expect(places.allSatisfy { found[$0.offset] == $0.frames })
        }
    }

    @Test func `a file without debug information gives the names of its symbols`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "Shop")
            var bytes = try DSYMSample.bytes("arm64")
            bytes.replace(Array("__DWARF\0".utf8), with: Array("__OTHER\0".utf8))
            try Data(bytes).write(to: path)
            #expect(try SymbolFile.files(at: path.path).map(\.hasLines) == [false])
            let places = try DSYMSample.places("arm64")
            let found = try DSYMSample.frames(path.path, "arm64", places.map(\.offset))
            for place in places {
                let name = try #require(place.frames.last?.split(separator: " ").first)
                #expect(found[place.offset] == ["\(name) ??:0"])
            }
            // Before the first function, and behind the code.
            #expect(
                try DSYMSample.frames(path.path, "arm64", [0, 0x33f, 1 << 20]).values
                    .allSatisfy { $0 == ["?? ??:0"] })
        }
    }

    @Test func `names are demangled without the underscore before them`() throws {
        let image = Image(
            path: "Shop", buildID: DSYMSample.arm64, loadAddress: 0, endAddress: .max)
        var options = SymbolizerOptions()
        options.files = [DSYMSample.arm64: [DSYMSample.path("arm64")]]
        let locations = [0x340, 0x4ac].map {
            CodeLocation(
                imagePath: "Shop", buildID: DSYMSample.arm64, offset: $0, kind: .interrupted)
        }
        let found = Symbolizer(options: options).frames(
            for: locations, images: ImageTable(images: [image]))
        #expect(
            locations.map { found[$0]?.last?.function } == [
                "shop::Cart::total(int)", "checkout(_:)",
            ])
    }

    /// The last symbol before an address may be of another function: `strip -x` removes those of functions that no
    /// other file uses.
    @Test func `a function that has no symbol has its name from the debug information`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "Shop")
            var bytes = try DSYMSample.bytes("arm64")
            let symbol = try #require(bytes.symbol(at: 0x1_0000_04f0))
            bytes[symbol + 4] = 0xe0
            try Data(bytes).write(to: path)
            let found = try DSYMSample.frames(path.path, "arm64", [0x4ac, 0x4f0])
            #expect(found[0x4ac]?.last?.hasPrefix("$s4Shop8checkoutyS2iF ") == true)
            #expect(found[0x4f0]?.last?.hasPrefix("main ") == true)
        }
    }

    @Test func `function starts end a function without a symbol`() {
        let starts = FunctionStarts(
            CopiedBytes(bytes: [0x10, 0x20, 0x80, 0x01, 0, 0, 0]), at: 0, size: 7, text: 0x1000)
        #expect(
            starts.last(before: [0x1000, 0x1010, 0x102f, 0x1030, 0x10af, 0x10b0, 0x9000]) == [
                0x1010: 0x1010, 0x102f: 0x1010, 0x1030: 0x1030, 0x10af: 0x1030, 0x10b0: 0x10b0,
                0x9000: 0x10b0,
            ])
    }
}

/// The files of sample-data/dsym.
enum DSYMSample {
    static let arm64 = BuildID(hexadecimal: "4c4c44e855553144a100eb7bef14d628")!
    static let x86_64 = BuildID(hexadecimal: "4c4c442555553144a1a0d3e113be0be1")!

    static func path(_ architecture: String) -> String {
        Repository.root.appending(path: "sample-data/dsym/Shop-\(architecture)").path
    }

    static func bytes(_ architecture: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: path(architecture))))
    }

    /// The offsets, and what llvm-symbolizer finds at each, innermost first: `function file:line`.
    static func places(_ architecture: String) throws -> [(offset: UInt64, frames: [String])] {
        let text = try String(contentsOfFile: path(architecture) + ".frames", encoding: .utf8)
        return text.split(separator: "\n").map { line in
            let fields = line.split(separator: " ", maxSplits: 1)
            let frames = fields[1].split(separator: " < ").map { frame in
                // The file of code of no line is not shown.
                frame.hasSuffix(":0") ? "\(frame.split(separator: " ")[0]) ??:0" : String(frame)
            }
            return (UInt64(fields[0], radix: 16)!, frames)
        }
    }

    static func frames(
        _ path: String, _ architecture: String, _ offsets: [UInt64]
    ) throws -> [UInt64: [String]] {
        let id = architecture == "arm64" ? arm64 : x86_64
        let image = Image(path: "Shop", buildID: id, loadAddress: 0, endAddress: .max)
        var options = SymbolizerOptions()
        options.files = [id: [path]]
        options.budget = .seconds(600)
        let locations = offsets.map {
            CodeLocation(imagePath: "Shop", buildID: id, offset: $0, kind: .interrupted)
        }
        let found = Symbolizer(options: options).frames(
            for: locations, images: ImageTable(images: [image]))
        return Dictionary(
            uniqueKeysWithValues: locations.map { location in
                let frames = (found[location] ?? []).map {
                    "\($0.rawName ?? "??") \($0.file ?? "??"):\($0.line ?? 0)"
                }
                return (location.offset, frames)
            })
    }
}

/// A fat file, with 32-bit or 64-bit ranges.
func fatFile(of slices: [[UInt8]], isWide: Bool) -> [UInt8] {
    func big(_ number: Int, _ size: Int) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
    var header: [UInt8] = [0xca, 0xfe, 0xba, isWide ? 0xbf : 0xbe] + big(slices.count, 4)
    var content: [UInt8] = []
    for slice in slices {
        header += slice[4..<8].reversed() + [0, 0, 0, 0]
        header += big(256 + content.count, isWide ? 8 : 4) + big(slice.count, isWide ? 8 : 4)
        header += big(0, isWide ? 8 : 4)
        content += slice
    }
    return header + [UInt8](repeating: 0, count: 256 - header.count) + content
}

extension [UInt8] {
    /// Where the entry of the symbol table is that has this value.
    fileprivate func symbol(at value: UInt64) -> Int? {
        let wanted = (0..<8).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
        return stride(from: 8, to: count - 8, by: 1).first {
            self[$0..<$0 + 8].elementsEqual(wanted) && self[$0 - 4] & 0xe0 == 0
                && self[$0 - 4] & 0x0e == 0x0e
        }.map { $0 - 8 }
    }
}
