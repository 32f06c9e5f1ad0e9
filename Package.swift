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

// In the order data flows: loop -> detector -> capture -> symbols -> store -> analysis -> command.
// A stage depends on StallModel and its own shims; only StallAgent and stallctl see several stages. StallArchive is the part of
// the store that no agent links.
let package = Package(
    name: "stallwatch",
    products: [
        .library(name: "StallAgent", targets: ["StallAgent"]),
        .library(name: "StallDoor", targets: ["StallDoor"]),
        .library(name: "StallAgentNIO", targets: ["StallAgentNIO"]),
        .library(name: "StallMetrics", targets: ["StallMetrics"]),
        .library(name: "StallAgentC", type: .dynamic, targets: ["StallAgentC"]),
        .library(name: "StallRunLoop", targets: ["StallRunLoop"]),
        .executable(name: "stallctl", targets: ["stallctl"]),
    ],
    traits: [
        .trait(
            name: "NIO",
            description:
                "Product StallAgentNIO: event loops of SwiftNIO, and the agent as a service."),
        .trait(
            name: "Metrics", description: "Product StallMetrics: stalls and loops in swift-metrics."
        ),
    ],
    dependencies: [
        // Fetched only where a trait is on.
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .target(name: "StallModel", swiftSettings: settings),
        .target(name: "CLinux"),
        .target(
            name: "StallRunLoop", dependencies: ["StallModel", "CLinux"], swiftSettings: settings),
        .target(
            name: "StallDetection", dependencies: ["StallModel", "CLinux"], swiftSettings: settings),
        .target(name: "CStackCapture", dependencies: ["CLinux"]),
        .target(
            name: "StallCapture", dependencies: ["StallModel", "CStackCapture", "CLinux"],
            swiftSettings: settings),
        .target(
            name: "StallSymbols", dependencies: ["StallModel", "CLinux"], swiftSettings: settings),
        .target(
            name: "StallCause", dependencies: ["StallModel", "CLinux"], swiftSettings: settings),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(
            name: "StallStore", dependencies: ["StallModel", "CLinux", "CSQLite"],
            resources: [.embedInCode("migrations")], swiftSettings: settings),
        .target(
            name: "StallArchive", dependencies: ["StallModel", "StallStore", "CSQLite"],
            swiftSettings: settings),
        .target(
            name: "StallAnalysis", dependencies: ["StallModel"],
            resources: [.embedInCode("Rules/builtin.rules")], swiftSettings: settings),
        .target(name: "StallFormats", dependencies: ["StallModel"], swiftSettings: settings),
        .target(
            name: "StallAgent",
            dependencies: [
                "StallModel", "CLinux", "StallRunLoop", "StallDetection", "StallCapture",
                "StallSymbols", "StallCause", "StallStore", log,
            ],
            swiftSettings: settings),
        .target(name: "CEpollDoor", dependencies: ["CLinux"]),
        .target(
            name: "StallDoor", dependencies: ["StallAgent", "CEpollDoor", "CLinux"],
            swiftSettings: settings),
        .target(
            name: "StallAgentNIO",
            dependencies: [
                "StallAgent", "StallDoor", "StallModel", "CLinux",
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["NIO"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["NIO"])),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle",
                    condition: .when(traits: ["NIO"])),
            ],
            swiftSettings: settings),
        .target(
            name: "StallMetrics",
            dependencies: [
                "StallAgent", "StallModel",
                .product(
                    name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Metrics"])
                ),
            ],
            swiftSettings: settings),
        .target(name: "CStallAgent"),
        .target(
            name: "StallAgentC", dependencies: ["StallAgent", "CStallAgent"],
            swiftSettings: settings),
        .executableTarget(
            name: "stallctl",
            dependencies: [
                "StallModel", "StallSymbols", "StallStore", "StallArchive", "StallAnalysis",
                "StallFormats",
                arguments,
            ],
            resources: [
                .embedInCode("Pictures/page.html"), .embedInCode("Pictures/page.css"),
                .embedInCode("Pictures/page.js"),
            ], swiftSettings: settings),
        .target(name: "CCaptureTesting", path: "Tests/CCaptureTesting"),
        .target(name: "CStackVictims", path: "Tests/StackTruth/CVictims"),
        .executableTarget(
            name: "stack-victims", dependencies: ["StallModel", "StallCapture", "CStackVictims"],
            path: "Tests/StackTruth/Victims", swiftSettings: settings + [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "stack-stress", dependencies: ["StallModel", "StallCapture", "CStackVictims"],
            path: "Tests/StackTruth/Stress", swiftSettings: settings + [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "CaptureBenchmark",
            dependencies: [
                "BenchmarkSupport", "StallModel", "StallCapture", "CStackCapture", "CStackVictims",
            ],
            path: "Benchmarks/CaptureBenchmark", swiftSettings: settings + [.swiftLanguageMode(.v5)]
        ),
        .testTarget(
            name: "StallCaptureTests",
            dependencies: [
                "StallModel", "StallCapture", "CStackCapture", "CCaptureTesting", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "StallStoreTests",
            dependencies: [
                "StallModel", "StallStore", "StallArchive", "CLinux", "CSQLite", "StoreFaults",
                "TestSupport",
            ],
            exclude: ["Snapshots"],
            swiftSettings: settings),
        .executableTarget(
            name: "StoreBenchmark",
            dependencies: [
                "BenchmarkSupport", "StallModel", "StallStore", "StallArchive", "StallAnalysis",
                "CSQLite",
            ],
            path: "Benchmarks/StoreBenchmark", swiftSettings: settings),
        .testTarget(
            name: "StallFormatsTests", dependencies: ["StallFormats", "StallModel", "TestSupport"],
            swiftSettings: settings),
        .target(
            name: "BenchmarkSupport", path: "Benchmarks/BenchmarkSupport", swiftSettings: settings),
        .target(name: "CMinimalLoop", path: "Benchmarks/CMinimalLoop"),
        .executableTarget(
            name: "LoopBenchmark",
            dependencies: ["BenchmarkSupport", "StallRunLoop", "StallModel", "CMinimalLoop"],
            path: "Benchmarks/LoopBenchmark", swiftSettings: settings),
        .executableTarget(
            name: "DetectorBenchmark",
            dependencies: ["BenchmarkSupport", "StallAgent", "StallRunLoop", "CLinux"],
            path: "Benchmarks/DetectorBenchmark",
            swiftSettings: settings + [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "cause-truth",
            dependencies: ["StallModel", "StallArchive", "StallAgent", "StallCause", "CLinux"],
            path: "Tests/CauseTruth", swiftSettings: settings + [.swiftLanguageMode(.v5)]),
        .target(name: "CGroupingSites", path: "Tests/GroupingTruth/CSites"),
        .executableTarget(
            name: "grouping-victims", dependencies: ["StallAgent", "CGroupingSites"],
            path: "Tests/GroupingTruth/Victims", swiftSettings: [.swiftLanguageMode(.v5)]),
        .target(name: "CStallSites", path: "Tests/SiteTruth/CSites"),
        .executableTarget(
            name: "site-truth", dependencies: ["StallAgent", "CStallSites", "CSQLite"],
            path: "Tests/SiteTruth/Sites", swiftSettings: [.swiftLanguageMode(.v5)]),
        .target(name: "CFaultyDisk", dependencies: ["CSQLite"], path: "Tests/CFaultyDisk"),
        .executableTarget(
            name: "StoreFaults",
            dependencies: [
                "StallModel", "StallStore", "StallArchive", "CSQLite", "CFaultyDisk", "TestSupport",
            ],
            path: "Tests/StoreFaults", swiftSettings: settings),
        .target(
            name: "LoopConformance",
            dependencies: ["StallModel", "CLinux", "StallRunLoop", "TestSupport"],
            path: "Tests/LoopConformance", swiftSettings: settings),
        .executableTarget(
            name: "conformance", dependencies: ["LoopConformance", "StallRunLoop"],
            path: "Tests/ConformanceTool", swiftSettings: settings),
        .testTarget(
            name: "StallRunLoopTests",
            dependencies: [
                "StallRunLoop", "StallModel", "CLinux", "LoopConformance", "conformance",
                "TestSupport",
                "RunLoopTour",
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "RunLoopTour", dependencies: ["StallRunLoop"], path: "Examples/RunLoopTour",
            swiftSettings: settings),
        .executableTarget(
            name: "Demo", dependencies: ["StallAgent", "StallRunLoop"], path: "Examples/Demo",
            swiftSettings: settings),
        .executableTarget(
            name: "hostile-agent", dependencies: ["StallAgent"], path: "Tests/Hostile/Agent",
            swiftSettings: settings),
        .executableTarget(
            name: "hostile-fuzz",
            dependencies: [
                "StallModel", "StallFormats", "StallStore", "StallArchive", "StallSymbols",
                "CStackCapture",
            ],
            path: "Tests/Hostile/Fuzz", swiftSettings: settings),
        .target(name: "CMishaps", path: "Tests/StallTruth/CMishaps"),
        .executableTarget(
            name: "stall-truth",
            dependencies: ["StallAgent", "StallModel", "StallArchive", "CLinux", "CMishaps"],
            path: "Tests/StallTruth/Tool", swiftSettings: settings + [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "WatchAsyncMain", dependencies: ["StallAgent"], path: "Examples/WatchAsyncMain",
            swiftSettings: settings),
        .executableTarget(
            name: "WatchDispatchMain", dependencies: ["StallAgent"],
            path: "Examples/WatchDispatchMain",
            swiftSettings: settings),
        .executableTarget(
            name: "WatchMainRunLoop", dependencies: ["StallAgent"],
            path: "Examples/WatchMainRunLoop",
            swiftSettings: settings),
        .executableTarget(
            name: "WatchEventRunLoop", dependencies: ["StallAgent"],
            path: "Examples/WatchEventRunLoop",
            swiftSettings: settings),
        .target(
            name: "TestSupport", dependencies: ["StallModel"], path: "Tests/TestSupport",
            swiftSettings: settings),
        .executableTarget(
            name: "AgentFixture", dependencies: ["StallAgent", "StallRunLoop", "CCaptureTesting"],
            path: "Tests/AgentFixture",
            swiftSettings: settings),
        .executableTarget(
            name: "TargetCosts", dependencies: ["StallAgent"], path: "Benchmarks/TargetCosts",
            swiftSettings: settings),
        .target(name: "CTaskHook", path: "Tests/CTaskHook"),
        .executableTarget(
            name: "TargetFixture", dependencies: ["StallAgent", "CTaskHook"],
            path: "Tests/TargetFixture",
            swiftSettings: settings),
        .target(name: "CDoorLoop", path: "Tests/DoorFixture/C"),
        .executableTarget(
            name: "DoorFixture", dependencies: ["StallDoor", "StallAgent", "CDoorLoop"],
            path: "Tests/DoorFixture/Tool", swiftSettings: settings + [.swiftLanguageMode(.v5)]),
        .target(name: "CHostSafety", path: "Tests/HostSafety/C"),
        .executableTarget(
            name: "host-safety",
            dependencies: [
                "StallAgent", "StallModel", "StallArchive", "StallRunLoop", "CLinux", "CHostSafety",
                log,
            ],
            path: "Tests/HostSafety/Tool", swiftSettings: settings + [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "StallDetectionTests",
            dependencies: [
                "StallDetection", "StallModel", "CLinux", "CCaptureTesting", "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "DemoTests", dependencies: ["Demo", "stallctl", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "StallSymbolsTests", dependencies: ["StallSymbols", "StallModel", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "StallCauseTests",
            dependencies: ["StallCause", "StallModel", "TestSupport", "cause-truth"],
            swiftSettings: settings),
        .testTarget(
            name: "StallAnalysisTests",
            dependencies: ["StallAnalysis", "StallModel", "StallSymbols", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "StallAgentTests",
            dependencies: [
                "StallAgent", "StallModel", "StallStore", "StallArchive", "StallSymbols",
                "TestSupport",
                "AgentFixture", "TargetFixture", "DoorFixture", "stall-truth", "CLinux",
                "WatchAsyncMain",
                "WatchDispatchMain",
                "WatchMainRunLoop", "WatchEventRunLoop", "StallAgentC", "host-safety",
                log,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PackageTests", dependencies: ["TestSupport"], path: "Tests/PackageTests",
            swiftSettings: settings),
        .testTarget(
            name: "StallctlTests",
            dependencies: [
                "stallctl", "StallModel", "StallStore", "StallArchive", "StallAnalysis",
                "StallFormats",
                "TestSupport",
                "AgentFixture", "site-truth", arguments,
            ],
            exclude: ["Snapshots"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

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
    package.targets += ["StallAgentNIO", "StallMetrics", "StallDoor"].map {
        .target(name: $0, path: "packaging/elsewhere/" + $0)
    }
    package.products = package.targets.map { .library(name: $0.name, targets: [$0.name]) }
    package.dependencies = []
    package.platforms = [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9)]
}
