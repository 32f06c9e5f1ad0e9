// swift-tools-version: 6.2
// Servers on SwiftNIO that block in known places. A package of its own: only it pays for Hummingbird and gRPC, and for the
// agent's traits. scripts/truth-nio and scripts/nio-cost build it.

import PackageDescription

/// GRPC=0 leaves out the methods of gRPC, whose TLS takes most of the build.
let hasGRPC = Context.environment["GRPC"] != "0"
let gRPC: [Target.Dependency] = [
    .product(name: "GRPCCore", package: "grpc-swift-2"),
    .product(name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport"),
]

let package = Package(
    name: "NIOTruth",
    dependencies: [
        .package(name: "stallwatch", path: "../../..", traits: ["NIO", "Metrics", "Tracing"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/grpc/grpc-swift-2", from: "2.4.3"),
        .package(url: "https://github.com/grpc/grpc-swift-nio-transport", from: "2.9.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .executableTarget(
            name: "truth-nio",
            dependencies: [
                .product(name: "StallAgent", package: "stallwatch"),
                .product(name: "StallAgentNIO", package: "stallwatch"),
                .product(name: "StallDoor", package: "stallwatch"),
                .product(name: "StallMetrics", package: "stallwatch"),
                .product(name: "StallTracing", package: "stallwatch"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ] + (hasGRPC ? gRPC : []),
            path: "Tool",
            swiftSettings: [.swiftLanguageMode(.v5)] + (hasGRPC ? [.define("GRPC")] : []))
    ],
    swiftLanguageModes: [.v6]
)
