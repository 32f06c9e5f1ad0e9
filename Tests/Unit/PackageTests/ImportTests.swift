import Foundation
import Testing

/// Goal: the modules stay a star: a stage imports the model and C shims, never another stage.
/// Method: the import lines of all sources, against what each module may import.
@Suite struct ImportTests {
    static let system: Set = ["Glibc", "Synchronization"]
    static let allowed: [String: Set<String>] = [
        "StallModel": [],
        // The model's other half, for programs that read stores.
        "StallQuery": ["StallModel"],
        "StallRunLoop": system.union(["StallModel", "CLinux", "Dispatch"]),
        "StallDetection": system.union(["StallModel", "CLinux"]),
        "StallCapture": system.union(["StallModel", "CStackCapture", "CLinux"]),
        "StallSymbols": system.union(["StallModel", "CLinux"]),
        "StallCause": system.union(["StallModel", "CLinux"]),
        "StallStore": system.union([
            "StallModel", "CLinux", "CSQLite", "CStoreSchema", "Dispatch",
        ]),
        // The store again, for programs that no app has in it: what an agent writes is read through the same connection.
        "StallArchive": system.union([
            "StallModel", "StallQuery", "StallStore", "CLinux", "CSQLite",
        ]),
        // Writes what StallArchive reads; never the other way round.
        "StallIngest": system.union([
            "StallModel", "StallQuery", "StallStore", "StallArchive", "CSQLite", "Dispatch",
        ]),
        // Likewise for symbols: the files that a user gives, which the symbolizer that an agent has reads.
        "StallSymbolFiles": ["StallModel", "StallQuery", "StallSymbols", "Foundation"],
        "StallAnalysis": system.union(["StallModel", "StallQuery"]),
        "StallFormats": system.union(["StallModel", "StallQuery", "Foundation"]),
        "StallHTTP": system.union(["CMemoryFile"]),
        "StallGzip": system.union(["CZlib"]),
        "StallPush": system.union(["StallModel", "StallQuery", "StallHTTP", "Foundation"]),
        // Another kind of store. SQLite stays the codec at both ends, so it sees the store's modules.
        "StallClickHouse": system.union([
            "StallModel", "StallQuery", "StallHTTP", "StallStore", "StallArchive", "StallIngest",
            "Dispatch",
        ]),
        "StallAgent": system.union([
            "StallModel", "CLinux", "StallRunLoop", "StallDetection", "StallCapture",
            "StallSymbols", "StallCause", "StallStore", "Logging", "Dispatch", "Foundation",
            "FoundationEssentials",
        ]),
        "StallDoor": ["StallAgent", "StallRunLoop", "CEpollDoor", "CLinux"],
        // Notes calls, and gives their lines in a test: the agent's report, a symbolizer.
        "StallBlocking": system.union([
            "StallAgent", "StallModel", "StallCapture", "StallSymbols", "CBlockingCalls", "CLinux",
        ]),
        "StallTesting": ["StallBlocking", "Testing"],
        "StallAgentNIO": system.union([
            "StallAgent", "StallDoor", "StallModel", "StallRunLoop", "CLinux", "NIOCore",
            "NIOPosix", "ServiceLifecycle", "Dispatch",
        ]),
        "StallMetrics": [
            "StallAgent", "StallModel", "StallRunLoop", "Metrics", "CoreMetrics",
        ],
        "StallTracing": ["CLinux", "Tracing"],
        "StallAgentC": ["StallAgent", "StallDoor", "CStallAgent", "Dispatch"],
        "StallPreload": [
            "StallAgent", "StallBlocking", "StallDoor", "CBlockingCalls", "CEpollDoor",
            "CStallPreload", "Logging", "Synchronization",
        ],
        // Other processes, seen from outside: threads, stacks and tasks.
        "StallInspection": system.union(["StallModel", "CInspection", "CStackCapture"]),
        // An app with the agent in it, which stallctl plays.
        "StallDoctor": system.union(["StallAgent", "StallModel", "CLinux"]),
        "stallctl": system.union([
            "StallModel", "StallQuery", "StallSymbols", "StallSymbolFiles", "StallStore",
            "StallArchive", "StallIngest", "StallAnalysis", "StallFormats", "StallHTTP",
            "StallPush", "StallClickHouse", "StallGzip", "CZlib", "StallInspection", "StallCause",
            "StallDoctor", "ArgumentParser", "Foundation",
        ]),
        "StallCollector": system.union([
            "StallModel", "StallQuery", "StallStore", "StallIngest", "StallAnalysis",
            "StallFormats", "StallGzip", "StallClickHouse", "Foundation",
        ]),
        "stall-collector": system.union([
            "StallModel", "StallCollector", "StallAgent", "StallAgentNIO", "ArgumentParser",
            "Foundation", "Logging", "Hummingbird", "HummingbirdCore", "HummingbirdHTTP2",
            "HTTPTypes", "NIOCore", "NIOPosix", "NIOSSL", "NIOTLS",
        ]),
    ]

    @Test func `every module imports only what it may`() throws {
        var seen: Set<String> = []
        for module in try SourceTree.modules() {
            for (path, lines) in try SourceTree.files(of: module) {
                seen.insert(module)
                let allowed = try #require(
                    Self.allowed[module], "\(module) is new: say what it may import")
                for imported in lines.compactMap(Self.importedModule) {
                    #expect(allowed.contains(imported), "\(path) imports \(imported)")
                }
            }
        }
        #expect(seen == Set(Self.allowed.keys))
    }

    /// The agent's own work needs no Foundation: one file shows its `RunLoop` to apps, and one decodes settings files.
    @Test func `two files of the agent import Foundation`() throws {
        let modules = Self.allowed["StallAgent"]!.filter { $0.hasPrefix("Stall") } + ["StallAgent"]
        var found: [String] = []
        for module in modules.sorted() {
            for (path, lines) in try SourceTree.files(of: module) {
                let imported = lines.compactMap(Self.importedModule)
                if imported.contains(where: { $0.hasPrefix("Foundation") }) { found.append(path) }
            }
        }
        #expect(
            found == [
                "StallAgent/Monitor/Watch/StallMonitor+RunLoop.swift",
                "StallAgent/Settings/AgentSettings.swift",
            ])
    }

    /// `stallctl` parses, asks and renders. What it asks of files is done by the module that knows them.
    @Test func `stallctl walks no directories, and moves and locks no files`() throws {
        let calls = [
            "opendir(", "enumerator(", "subpaths(", "contentsOfDirectory(", "glob(", "flock(",
            "sendfile(", "moveItem(", "removeItem(", "sqlite3_",
        ]
        for (path, lines) in try SourceTree.files(of: "stallctl") {
            for line in lines {
                #expect(!calls.contains { line.contains($0) }, "\(path): \(line)")
            }
        }
    }

    /// A build without the trait Fleet compiles neither those modules nor that folder.
    @Test func `one folder of stallctl imports the fleet's modules`() throws {
        let fleet: Set = ["StallClickHouse", "StallPush", "StallHTTP"]
        var found = 0
        for (path, lines) in try SourceTree.files(of: "stallctl") {
            let imported = Set(lines.compactMap(Self.importedModule)).intersection(fleet)
            guard path.hasPrefix("stallctl/Fleet/") else {
                #expect(imported.isEmpty, "\(path) imports \(imported)")
                continue
            }
            found += imported.count
            #expect(imported.isEmpty || lines.contains("#if Fleet"), "\(path)")
        }
        #expect(found > 0)
    }

    @Test(
        arguments: [
            ("import StallStore", "StallStore"),
            ("@testable internal import StallStore", "StallStore"),
            ("public import struct Foundation.Data", "Foundation"), ("    import Glibc", "Glibc"),
            ("// import StallStore", nil), ("let important = 1", nil),
        ] as [(String, String?)])
    func `an import is recognized`(line: String, module: String?) {
        #expect(Self.importedModule(line) == module)
    }

    /// The module that a line imports, nil for other lines.
    static func importedModule(_ line: String) -> String? {
        var words = line.split(separator: " ")
        while let word = words.first,
            word.hasPrefix("@")
                || ["public", "package", "internal", "private", "fileprivate"].contains(word)
        { words.removeFirst() }
        guard words.first == "import", let name = words.last else { return nil }
        return name.split(separator: ".").first.map(String.init)
    }
}
