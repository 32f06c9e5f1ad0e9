import Foundation
import StallModel
import StallSymbols
import TestSupport
import Testing

@testable import StallAnalysis

/// Goal: a function groups the same whether its name came demangled in full (most tools) or simplified (the agent).
/// Method: every Swift function in the installed toolchain's libraries, demangled both ways.
@Suite struct ToolchainKeyTests {
    @Test func `full and simplified names have one key`() throws {
        let symbols = try Toolchain.functionSymbols.get()
        try #require(symbols.count > 10_000, "the toolchain's libraries were not found")
        var compared = 0
        var misses: [String] = []
        for symbol in symbols {
            guard let full = fullName(symbol) else { continue }
            let key = SymbolKey(name: full, symbol: symbol)
            guard key.role == .function else { continue }
            compared += 1
            if SymbolKey(name: readableName(symbol), symbol: symbol) != key { misses.append(full) }
        }
        // docs/grouping.md quotes it.
        print("\(symbols.count) symbols, \(compared) functions, \(misses.count) with two keys")
        #expect(compared > symbols.count / 2)
        #expect(
            Double(misses.count) <= 0.003 * Double(compared),
            "\(misses.count) of \(compared) differ: \(misses.prefix(20))")
    }

    @Test func `a symbol contains the module that its full name begins with`() throws {
        var compared = 0
        var misses: [String] = []
        for symbol in try Toolchain.functionSymbols.get() {
            guard let full = fullName(symbol), let module = Self.module(ofPlain: full) else {
                continue
            }
            compared += 1
            if mangledModule(symbol) != module { misses.append("\(symbol) \(full)") }
        }
        #expect(compared > 20_000)
        #expect(
            Double(misses.count) <= 0.001 * Double(compared),
            "\(misses.count) of \(compared) differ: \(misses.prefix(20))")
    }

    /// `(extension in M):...` or `M.f...`; nil for a name with anything before that.
    private static func module(ofPlain name: String) -> String? {
        let rest = name.hasPrefix("static ") ? name.dropFirst(7) : name[...]
        if rest.hasPrefix("(extension in ") {
            return rest.dropFirst(14).split(separator: ")").first.map(String.init)
        }
        guard let dot = rest.firstIndex(of: "."), !rest[..<dot].isEmpty,
            rest[..<dot].allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" })
        else { return nil }
        return String(rest[..<dot])
    }
}

enum Toolchain {
    /// The mangled names of the Swift functions that the toolchain's libraries define, without repeats.
    static let functionSymbols = Result { try listFunctionSymbols() }

    private static func listFunctionSymbols() throws -> [String] {
        let library = ImageTable.current().images.first { $0.name == "libswiftCore.so" }
        let directory = URL(filePath: library?.path ?? "/").deletingLastPathComponent()
        let names = [
            "libswiftCore", "libswift_Concurrency", "libFoundation", "libFoundationEssentials",
            "libFoundationNetworking", "libXCTest", "libTesting",
        ]
        let nm = Process()
        nm.executableURL = URL(filePath: "/usr/bin/nm")
        nm.arguments = ["--defined-only"] + names.map { directory.appending(path: "\($0).so").path }
        let output = Pipe()
        nm.standardOutput = output
        nm.standardError = FileHandle.nullDevice
        try nm.start()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        nm.waitUntilExit()
        var symbols: Set<String> = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: " "))
            guard fields.count == 3, "tTwW".utf8.contains(fields[1].first!),
                fields[2].starts(with: "$s".utf8)
            else { continue }
            symbols.insert(String(decoding: fields[2], as: UTF8.self))
        }
        return symbols.sorted()
    }
}
