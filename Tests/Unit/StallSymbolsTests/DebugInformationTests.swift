import Foundation
import StallModel
import TestSupport
import Testing

@testable import StallSymbols

/// Goal: lines and inlined calls are those that llvm-symbolizer finds, for every instruction.
/// Method: a small C program with calls inlined three deep, built by clang in both versions of DWARF, and every address
/// of its functions looked up by both. A Swift binary, this test's own, for lines.
@Suite(.enabled(if: Tools.areInstalled))
struct DebugInformationTests {
    @Test(arguments: ["-gdwarf-4", "-gdwarf-5"])
    func `every instruction has the calls and lines that llvm-symbolizer finds`(version: String)
        throws
    {
        let directory = NSTemporaryDirectory() + "/stallwatch-dwarf\(version)-\(getpid())"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try CProgram.inlinedCalls.write(
            toFile: directory + "/nested.c", atomically: true, encoding: .utf8)
        let program = directory + "/nested"
        _ = try output(
            of: Tools.path("clang"), "-O2", version, "-Wl,--build-id", "-o", program,
            directory + "/nested.c")
        let found = try compare(program, functions: ["outer", "main"])
        #expect(found.addresses > 100)
        #expect(found.inlined > 20)
    }

    @Test func `lines of Swift code are those that llvm-symbolizer finds`() throws {
        let image = ImageTable.current().images[0]
        let listing = try output(of: "/usr/bin/nm", "--defined-only", image.path)
        let own = listing.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            .filter {
                $0.count == 3 && "tT".contains($0[1]) && $0[2].hasPrefix("$s17StallSymbolsTests")
            }
        let found = try compare(image.path, functions: Set(own.prefix(40).map { $0[2] }))
        #expect(found.addresses > 100)
    }

    /// gcc gives lambdas no symbol, and clang's oracle calls them all `operator()`.
    @Test(.enabled(if: access("/usr/bin/g++", X_OK) == 0))
    func `a lambda is named after the function that it is written in`() throws {
        try withTemporaryDirectory { directory in
            let source = directory.appending(path: "lambda.cpp").path
            let program = directory.appending(path: "lambda").path
            try """
            #include <cstdio>
            #include <cstdlib>
            namespace shop {
            __attribute__((noinline)) int pay(int n) {
                auto twice = [](int x) { return rand() * x + getchar(); };
                return twice(n) * 2;
            }
            }
            int main(int argc, char **) { return shop::pay(argc); }
            """
            .write(toFile: source, atomically: true, encoding: .utf8)
            _ = try output(of: "/usr/bin/g++", "-O2", "-g", "-o", program, source)
            let file = try #require(FileBytes(path: program).flatMap { ELFFile($0) })
            let listing = try output(of: "/usr/bin/nm", "-S", "--defined-only", program)
            let line = try #require(
                listing.split(separator: "\n").first { $0.hasSuffix("_ZN4shop3payEi") })
            let fields = line.split(separator: " ").compactMap { UInt64($0, radix: 16) }
            var debug = try #require(
                DebugInformation(file, limit: 1 << 30, isOverBudget: { false }))
            let contexts = debug.contexts(at: (0..<fields[1]).map { fields[0] + $0 })
            let inlined = Set(contexts.values.flatMap { $0.positions.dropLast().map(\.function) })
            #expect(inlined.contains("shop::pay(int)::{lambda}::operator()"), "\(inlined)")
        }
    }

    private func compare(
        _ path: String, functions: Set<String>
    ) throws -> (addresses: Int, inlined: Int) {
        let file = try #require(FileBytes(path: path).flatMap { ELFFile($0) })
        let listing = try output(of: "/usr/bin/nm", "-S", "--defined-only", path)
        let addresses = listing.split(separator: "\n").flatMap { line -> [UInt64] in
            let fields = line.split(separator: " ").map(String.init)
            guard fields.count == 4, "tT".contains(fields[2]), functions.contains(fields[3]),
                let start = UInt64(fields[0], radix: 16), let size = UInt64(fields[1], radix: 16)
            else { return [] }
            return (0..<min(size, 400)).map { start + $0 }
        }
        var debug = try #require(DebugInformation(file, limit: 1 << 30, isOverBudget: { false }))
        let contexts = debug.contexts(at: addresses)
        let expected = try Tools.symbolize(addresses, in: path)
        try #require(expected.count == addresses.count)
        var inlined = 0
        for (address, expected) in zip(addresses, expected) {
            let places = contexts[address]?.positions ?? []
            let found = places.map { "\($0.file ?? "??"):\($0.line ?? 0)" }
            #expect(found == expected.map(\.place), "0x\(String(address, radix: 16))")
            #expect(places.dropLast().map(\.function) == expected.dropLast().map(\.function))
            inlined += places.count - 1
        }
        return (addresses.count, inlined)
    }
}

/// The toolchain's own tools, which are where its libraries are.
enum Tools {
    static let areInstalled = ["clang", "llvm-symbolizer"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: path($0))
    }

    static func path(_ name: String) -> String {
        let library = ImageTable.current().images.first { $0.name == "libswiftCore.so" }?.path ?? ""
        return URL(filePath: library).appending(path: "../../../../bin/\(name)").standardizedFileURL
            .path
    }

    /// The calls at each address, innermost first.
    static func symbolize(
        _ addresses: [UInt64], in path: String
    ) throws -> [[(function: String?, place: String)]] {
        let list = NSTemporaryDirectory() + "/stallwatch-addresses-\(UUID().uuidString)"
        defer { unlink(list) }
        try addresses.map { "0x" + String($0, radix: 16) }.joined(separator: "\n")
            .write(toFile: list, atomically: true, encoding: .utf8)
        let text = try output(
            of: "/bin/sh", "-c",
            "exec \"$0\" --obj=\"$1\" --inlines --no-demangle --functions=linkage < \"$2\"",
            Tools.path("llvm-symbolizer"), path, list)
        return text.components(separatedBy: "\n\n").dropLast().map { block in
            let lines = block.split(separator: "\n")
            return stride(from: 0, to: lines.count - 1, by: 2).map { index in
                let place = lines[index + 1].split(separator: ":").dropLast()
                let (file, line) = (place.dropLast().joined(separator: ":"), place.last ?? "0")
                let isPlace = line != "0" && !file.contains("<compiler-generated>") && file != "??"
                return (String(lines[index]), isPlace ? "\(file):\(line)" : "??:0")
            }
        }
    }
}
