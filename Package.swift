// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
let log: Target.Dependency = .product(name: "Logging", package: "swift-log")
let arguments: Target.Dependency = .product(
    name: "ArgumentParser", package: "swift-argument-parser")
let lifecycle: Target.Dependency = .product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle",
    condition: .when(traits: ["NIO"]))
let metrics: Target.Dependency = .product(
    name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Metrics"]))
let tracing: Target.Dependency = .product(
    name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"]))
func nio(_ product: String) -> Target.Dependency {
    .product(name: product, package: "swift-nio", condition: .when(traits: ["NIO"]))
}
/// Parts of the collector's server, which nobody else fetches.
func server(_ product: String, _ package: String = "hummingbird") -> Target.Dependency {
    .product(name: product, package: package, condition: .when(traits: ["Collector"]))
}
/// Parts of stallctl for central stores on several machines, and for collectors.
func fleet(_ module: String) -> Target.Dependency {
    .target(name: module, condition: .when(traits: ["Fleet"]))
}
/// Programs that play apps: of Swift 5, and without any setting of ours.
let plain: [SwiftSetting] = [.swiftLanguageMode(.v5)]
let swift5 = settings + plain

// In the order data flows: loop -> detector -> capture -> symbols -> store -> analysis -> command.
// A stage depends on StallModel and its own shims; only StallAgent and stallctl see several stages.
// StallArchive, StallIngest and StallSymbolFiles are the parts of the store and of symbolication that no agent links.
let modules: [Target] = [
    module("StallModel"),
    module("StallQuery", ["StallModel"]),
    cModule("CLinux"),
    module("StallRunLoop", ["StallModel", "CLinux"]),
    module("StallDetection", ["StallModel", "CLinux"]),
    cModule("CStackCapture", ["CLinux"]),
    module("StallCapture", ["StallModel", "CStackCapture", "CLinux"]),
    module("StallSymbols", ["StallModel", "CLinux"]),
    module("StallCause", ["StallModel", "CLinux"]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    cModule("CStoreSchema"),
    module("StallStore", ["StallModel", "CLinux", "CSQLite", "CStoreSchema"]),
    module(
        "StallArchive", ["StallModel", "StallQuery", "StallStore", "CLinux", "CSQLite"]),
    module(
        "StallIngest",
        ["StallModel", "StallQuery", "StallStore", "StallArchive", "CSQLite"]),
    module("StallSymbolFiles", ["StallModel", "StallQuery", "StallSymbols"]),
    module("StallAnalysis", ["StallModel", "StallQuery"], embedding: ["Rules/builtin.rules"]),
    module("StallFormats", ["StallModel", "StallQuery"]),
    cModule("CMemoryFile"),
    module("StallHTTP", ["CMemoryFile"]),
    .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
    module("StallGzip", ["CZlib"]),
    module("StallPush", ["StallModel", "StallQuery", "StallHTTP"]),
    module(
        "StallClickHouse",
        ["StallModel", "StallQuery", "StallStore", "StallArchive", "StallIngest", "StallHTTP"],
        embedding: ["migrations"]),
    module(
        "StallAgent",
        ["StallModel", "CLinux", "StallRunLoop", "StallDetection", "StallCapture", "StallSymbols"]
            + ["StallCause", "StallStore", log]),
    cModule("CEpollDoor", ["CLinux"]),
    // In a module of its own: a program that has it calls these functions instead of libc's.
    cModule("CWaitCalls", ["CEpollDoor", "CLinux"]),
    module("StallDoor", ["StallAgent", "StallRunLoop", "CEpollDoor", "CLinux"]),
    module(
        "StallAgentNIO",
        ["StallAgent", "StallDoor", "CWaitCalls", "StallModel", "StallRunLoop", "CLinux"]
            + [nio("NIOCore"), nio("NIOPosix"), lifecycle]),
    // As CWaitCalls.
    cModule("CBlockingCalls", ["CStackCapture", "CLinux"]),
    module(
        "StallBlocking",
        ["StallAgent", "StallModel", "CBlockingCalls", "CLinux", "StallCapture", "StallSymbols"]),
    module("StallTesting", ["StallBlocking"]),
    module("StallMetrics", ["StallAgent", "StallModel", "StallRunLoop", metrics]),
    module("StallTracing", ["CLinux", tracing]),
    cModule("CStallAgent"),
    module("StallAgentC", ["StallAgent", "StallDoor", "CStallAgent"]),
    // With CWaitCalls a shared object of its own, which scripts/build-waits links.
    cModule("CStallWaits", ["CStallAgent", "CEpollDoor", "CLinux"]),
    // The objects that `stallctl run` loads into a program; scripts/build-preload links them.
    cModule("CStallPreload", ["CEpollDoor", "CLinux"]),
    cModule("CBlockingDoor", ["CBlockingCalls"]),
    cModule("CPreloadDoor", ["CStallPreload", "CBlockingDoor", "CEpollDoor", "CLinux"]),
    module(
        "StallPreload",
        ["StallAgent", "StallBlocking", "StallDoor", "CBlockingCalls", "CWaitCalls", "CEpollDoor"]
            + ["CStallPreload", log]),
    cModule("CInspection", ["CStackCapture", "CLinux"]),
    module("StallInspection", ["StallModel", "CInspection", "CStackCapture"]),
    module("StallDoctor", ["StallAgent", "StallModel", "CLinux"]),
    .executableTarget(
        name: "stallctl",
        dependencies: [
            "StallInspection", "StallCause", "StallDoctor",
            "StallModel", "StallQuery", "StallSymbols", "StallSymbolFiles", "StallStore",
            "StallArchive", "StallIngest", "StallAnalysis", "StallFormats", "StallGzip", "CZlib",
            fleet("StallHTTP"), fleet("StallPush"), fleet("StallClickHouse"), arguments,
        ],
        resources: ["page.html", "page.css", "page.js"].map { .embedInCode("Pictures/\($0)") },
        swiftSettings: settings),
    module(
        "StallCollector",
        ["StallModel", "StallQuery", "StallStore", "StallIngest", "StallAnalysis"]
            + ["StallFormats", "StallGzip", "CLinux", "StallClickHouse"]),
    .executableTarget(
        name: "stall-collector",
        dependencies: ["StallCollector", "StallModel", "StallAgent", "StallAgentNIO", arguments]
            + [server("Hummingbird"), server("HummingbirdCore"), server("HummingbirdHTTP2")]
            + [server("NIOSSL", "swift-nio-ssl"), server("NIOCore", "swift-nio")]
            + [server("NIOPosix", "swift-nio"), server("NIOTLS", "swift-nio"), log]
            + [server("HTTPTypes", "swift-http-types")],
        swiftSettings: settings),
]

/// The programs of docs/run-loop-programs.md, with the settings that a newcomer's have.
let programs = [
    "TimerCounter", "EchoServer", "FolderWatch", "Signals", "WorkerResults", "Cancelling",
    "MainActorView", "AsyncBridge", "ChildProcess", "StandardInput",
    "MessagesToAChild",
]

let unitTests: [Target] = [
    tests(
        "StallRunLoop",
        ["StallModel", "CLinux", "LoopConformance", "conformance", "RunLoopTour"]
            + ["StandardInput"]),
    tests("StallDetection", ["StallModel", "CLinux", "CCaptureTesting", "StallSimulation"]),
    tests("StallCapture", ["StallModel", "CLinux", "CStackCapture", "CCaptureTesting"]),
    tests("StallSymbols", ["StallModel"]),
    tests("StallInspection", ["StallModel", "StallCause"]),
    tests("StallDoctor", ["StallModel"]),
    tests("StallCause", ["StallModel", "CLinux", "cause-truth"]),
    tests(
        "StallStore",
        ["StallModel", "StallQuery", "StallArchive", "StallIngest", "CLinux", "CSQLite"]
            + ["StoreTestSupport", "StoreFaults"]),
    tests(
        "StallArchive",
        ["StallModel", "StallQuery", "StallStore", "StallIngest", "StoreTestSupport"]),
    tests(
        "StallIngest",
        ["StallModel", "StallQuery", "StallStore", "StallArchive", "CSQLite", "StoreTestSupport"]
            + ["StoreFaults"]),
    tests("StallAnalysis", ["StallModel", "StallQuery", "StallSymbols"]),
    tests("StallFormats", ["StallModel", "StallQuery"]),
    tests("StallPush", ["StallModel", "StallHTTP"]),
    tests(
        "StallClickHouse",
        ["StallModel", "StallQuery", "StallStore", "StallArchive", "StallIngest", "StallHTTP"]
            + ["StallCollector", "StallAnalysis"]),
    tests(
        "StallAgent",
        ["StallModel", "StallQuery", "StallStore", "StallArchive", "StallSymbols", "CLinux"]
            + ["StallAgentC", "CCaptureTesting", log]
            + [
                "AgentFixture", "TargetFixture", "DoorFixture", "stall-truth", "task-truth",
                "host-safety",
                "WatchAsyncMain",
            ]
            + ["WatchDispatchMain", "WatchMainRunLoop", "WatchEventRunLoop"]),
    tests(
        "stallctl", named: "StallctlTests",
        ["StallModel", "StallQuery", "StallStore", "StallArchive", "StallIngest", "StallAnalysis"]
            + ["StallFormats", "StallPush", arguments, "AgentFixture", "site-truth", "diff-truth"]
            + ["format-truth", "CCaptureTesting"],
        except: ["Snapshots"]),
    tests("CStallPreload", named: "StallPreloadTests", ["CLinux"]),
    tests("StallCollector", ["StallModel", "StallQuery", "StallFormats", "StallStore"]),
    tests("Demo", ["stallctl"]),
    tests(
        "StallRunLoop", named: "RunLoopProgramTests", programs.map { .init(stringLiteral: $0) }),
    tests("TestSupport", named: "PackageTests", []),
]

/// What unit tests share, and the programs that they start.
let support: [Target] = [
    module("TestSupport", ["StallModel", "StallQuery"], in: "Tests/Support/TestSupport"),
    module(
        "StallSimulation", ["StallModel", "CLinux", "StallDetection", "TestSupport"],
        in: "Tests/Support/StallSimulation"),
    module(
        "StoreTestSupport",
        ["StallModel", "StallQuery", "StallStore", "StallIngest", "CSQLite", "TestSupport"],
        in: "Tests/Support/StoreTestSupport"),
    cModule("CCaptureTesting", in: "Tests/Support/CCaptureTesting"),
    cModule("CFaultyDisk", ["CSQLite"], in: "Tests/Support/CFaultyDisk"),
    cModule("CTaskHook", in: "Tests/Support/CTaskHook"),
    fixture("AgentFixture", ["StallAgent", "StallRunLoop", "CCaptureTesting"]),
    fixture("TargetFixture", ["StallAgent", "CTaskHook"]),
    cModule("CDoorLoop", in: "Tests/Fixtures/DoorFixture/C"),
    fixture(
        "DoorFixture", ["StallDoor", "CWaitCalls", "StallAgent", "CDoorLoop"], in: "Tool", swift5),
]

let hostSafety: [Target.Dependency] = [
    "StallAgent", "StallModel", "StallQuery", "StallArchive", "StallRunLoop", "CLinux",
    "CStackCapture", "CStallAgent", "CHostSafety", log,
]

/// Programs that play what happens in the field, and judge the agent or stallctl by what they know of it.
let truthTools: [Target] = [
    module(
        "LoopConformance", ["StallModel", "CLinux", "StallRunLoop", "TestSupport"],
        in: "Tests/Truth/LoopConformance"),
    truth("conformance", ["LoopConformance", "StallRunLoop"], in: "ConformanceTool", settings),
    cModule("CStackVictims", in: "Tests/Truth/StackTruth/CVictims"),
    truth(
        "stack-victims", ["StallModel", "StallCapture", "CStackVictims"], in: "StackTruth/Victims"),
    truth(
        "stack-stress", ["StallModel", "StallCapture", "CStackVictims"], in: "StackTruth/Stress"),
    truth(
        "cause-truth",
        ["StallModel", "StallQuery", "StallArchive", "StallAgent", "StallCause", "CLinux"]
            + ["CStallSites"],
        in: "CauseTruth"),
    cModule("CGroupingSites", in: "Tests/Truth/GroupingTruth/CSites"),
    truth(
        "grouping-victims", ["StallAgent", "CGroupingSites"], in: "GroupingTruth/Victims", plain),
    truth("diff-truth", ["StallModel", "StallQuery", "StallAnalysis"], in: "DiffTruth"),
    cModule("CStallSites", in: "Tests/Truth/SiteTruth/CSites"),
    truth("site-truth", ["StallAgent", "CStallSites", "CSQLite"], in: "SiteTruth/Sites", plain),
    truth("environment-victim", ["StallAgent"], in: "Environments/Victim", plain),
    cModule("CMishaps", in: "Tests/Truth/StallTruth/CMishaps"),
    truth(
        "stall-truth",
        ["StallAgent", "StallModel", "StallQuery", "StallArchive", "CLinux", "CMishaps"],
        in: "StallTruth/Tool"),
    truth(
        "task-truth",
        ["StallAgent", "StallModel", "StallQuery", "StallArchive", "CLinux", "CMishaps"]
            + ["CTaskHook"],
        in: "TaskTruth"),
    cModule("CBlockingPlants", ["CBlockingCalls"], in: "Tests/Truth/BlockingTruth/CPlants"),
    truth(
        "blocking-truth",
        ["StallAgent", "StallBlocking", "CBlockingCalls", "StallDoor", "CWaitCalls", "StallModel"]
            + ["StallRunLoop", "CBlockingPlants"],
        in: "BlockingTruth/Tool"),
    truth("simulation-truth", ["StallModel", "StallSimulation"], in: "SimulationTruth"),
    cModule("CHostSafety", in: "Tests/Truth/HostSafety/C"),
    truth("host-safety", hostSafety, in: "HostSafety/Tool"),
    // The same sources, through a link, in a program that has the interposed functions.
    truth(
        "host-safety-blocking",
        hostSafety + ["StallBlocking", "CBlockingCalls", "CBlockingPlants"],
        in: "HostSafety/Blocking", swift5 + [.define("BLOCKING")]),
    truth(
        "StoreFaults",
        ["StallModel", "StallQuery", "StallStore", "StallArchive", "StallIngest", "CSQLite"]
            + ["CFaultyDisk", "TestSupport"],
        in: "StoreFaults", settings),
    truth("hostile-agent", ["StallAgent"], in: "Hostile/Agent", settings),
    truth(
        "hostile-fuzz",
        ["StallModel", "StallQuery", "StallFormats", "StallStore", "StallArchive", "StallIngest"]
            + ["StallSymbols", "CStackCapture"],
        in: "Hostile/Fuzz", settings),
    truth(
        "format-truth", ["StallModel", "StallQuery", "StallFormats", "TestSupport"],
        in: "Formats/Tool", settings),
    truth("dsym-truth", ["StallModel", "StallSymbols"], in: "Formats/Symbols", settings),
]

let examples: [Target] = [
    example("Demo", ["StallAgent", "StallRunLoop"]), example("RunLoopTour", ["StallRunLoop"]),
    example("WatchAsyncMain"), example("WatchDispatchMain"), example("WatchMainRunLoop"),
    example("WatchEventRunLoop"),
]

let programTargets: [Target] = programs.map {
    program($0, ["StallRunLoop"], "Examples/RunLoop/\($0)", [.swiftLanguageMode(.v6)])
}

let benchmarks: [Target] = [
    module("BenchmarkSupport", in: "Benchmarks/BenchmarkSupport"),
    cModule("CMinimalLoop", in: "Benchmarks/CMinimalLoop"),
    benchmark("LoopBenchmark", ["StallRunLoop", "StallModel", "CMinimalLoop"]),
    benchmark("DetectorBenchmark", ["StallAgent", "StallRunLoop", "CLinux"], swift5),
    benchmark(
        "CaptureBenchmark", ["StallModel", "StallCapture", "CStackCapture", "CStackVictims"],
        swift5),
    benchmark(
        "StoreBenchmark",
        ["StallModel", "StallQuery", "StallStore", "StallArchive", "StallIngest", "StallAnalysis"]
            + ["CSQLite"]),
    benchmark("FormatBenchmark", ["StallModel", "StallQuery", "StallFormats"]),
    program("TargetCosts", ["StallAgent"], "Benchmarks/TargetCosts", settings),
    cModule("CCallCosts", in: "Benchmarks/CallCosts/C"),
    program("CallCosts", ["StallAgent", "CCallCosts"], "Benchmarks/CallCosts/Plain", settings),
    program(
        "CallCostsBlocking", ["StallAgent", "StallBlocking", "CCallCosts"],
        "Benchmarks/CallCosts/Blocking", swift5),
]

let package = Package(
    name: "stallwatch",
    products: [
        .library(name: "StallAgent", targets: ["StallAgent"]),
        .library(name: "StallDoor", targets: ["StallDoor", "CWaitCalls"]),
        .library(name: "StallBlocking", targets: ["StallBlocking", "CBlockingCalls"]),
        .library(name: "StallTesting", targets: ["StallTesting", "CBlockingCalls"]),
        .library(name: "StallAgentNIO", targets: ["StallAgentNIO"]),
        .library(name: "StallMetrics", targets: ["StallMetrics"]),
        .library(name: "StallTracing", targets: ["StallTracing"]),
        .library(name: "StallAgentC", type: .dynamic, targets: ["StallAgentC"]),
        .library(name: "StallRunLoop", targets: ["StallRunLoop"]),
        .executable(name: "stallctl", targets: ["stallctl"]),
        .executable(name: "stall-collector", targets: ["stall-collector"]),
    ],
    traits: [
        .trait(
            name: "NIO",
            description:
                "Product StallAgentNIO: event loops of SwiftNIO, and the agent as a service."),
        .trait(
            name: "Metrics", description: "Product StallMetrics: stalls and loops in swift-metrics."
        ),
        .trait(name: "Tracing", description: "Product StallTracing: the open spans of a tracer."),
        .trait(
            name: "Fleet",
            description: "In stallctl: push, and central stores on ClickHouse."),
        .trait(
            name: "Collector", description: "Product stall-collector: the server of many machines.",
            enabledTraits: ["NIO", "Fleet"]),
    ],
    dependencies: [
        // Fetched only where a trait is on.
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(
            url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: modules + unitTests + support + truthTools + examples + programTargets + benchmarks,
    swiftLanguageModes: [.v6]
)

func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], in path: String? = nil,
    embedding resources: [String] = [], except folders: [String] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: path, exclude: folders,
        resources: resources.map { .embedInCode($0) }, swiftSettings: settings)
}

func cModule(_ name: String, _ dependencies: [Target.Dependency] = [], in path: String? = nil)
    -> Target
{
    .target(name: name, dependencies: dependencies, path: path)
}

func program(
    _ name: String, _ dependencies: [Target.Dependency], _ path: String, _ settings: [SwiftSetting]
) -> Target {
    .executableTarget(
        name: name, dependencies: dependencies, path: path, swiftSettings: settings)
}

func fixture(
    _ name: String, _ dependencies: [Target.Dependency], in folder: String = "",
    _ settings: [SwiftSetting] = settings
) -> Target { program(name, dependencies, "Tests/Fixtures/\(name)/\(folder)", settings) }

func truth(
    _ name: String, _ dependencies: [Target.Dependency], in path: String,
    _ settings: [SwiftSetting] = swift5
) -> Target { program(name, dependencies, "Tests/Truth/\(path)", settings) }

func example(_ name: String, _ dependencies: [Target.Dependency] = ["StallAgent"]) -> Target {
    program(name, dependencies, "Examples/\(name)", settings)
}

func benchmark(
    _ name: String, _ dependencies: [Target.Dependency], _ settings: [SwiftSetting] = settings
) -> Target {
    program(name, ["BenchmarkSupport"] + dependencies, "Benchmarks/\(name)", settings)
}

/// The unit tests of a target.
func tests(
    _ target: String, named name: String? = nil, _ dependencies: [Target.Dependency],
    except folders: [String] = []
) -> Target {
    let name = name ?? target + "Tests"
    let support = target == "TestSupport" ? [] : ["TestSupport" as Target.Dependency]
    return .testTarget(
        name: name, dependencies: [.target(name: target)] + dependencies + support,
        path: "Tests/Unit/\(name)", exclude: folders, swiftSettings: settings)
}

// On other systems the products are stubs that do nothing (packaging/elsewhere), so that packages that are shared with Linux
// resolve and build. Who builds for Linux there says STALLWATCH_STUBS=0; 1 gives the stubs on Linux, which make gates builds.
#if os(Linux)
let isLinux = true
#else
let isLinux = false
#endif
let wantsStubs = Context.environment["STALLWATCH_STUBS"].map { $0 == "1" } ?? !isLinux
if wantsStubs {
    package.targets = [
        .target(name: "StallRunLoop", path: "packaging/elsewhere/StallRunLoop"),
        .target(
            name: "StallAgent", dependencies: ["StallRunLoop"],
            path: "packaging/elsewhere/StallAgent", swiftSettings: settings),
    ]
    // Empty, but there: a package that names a product or a trait that is not does not even resolve.
    let others = ["StallAgentNIO", "StallMetrics", "StallTracing", "StallDoor", "StallBlocking"]
    package.targets += (others + ["StallTesting"]).map {
        .target(name: $0, path: "packaging/elsewhere/" + $0)
    }
    package.products = package.targets.map { .library(name: $0.name, targets: [$0.name]) }
    package.dependencies = []
    package.platforms = [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9)]
}
