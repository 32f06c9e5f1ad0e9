// swift-tools-version: 6.2
// A server in a package of its own: only it pays for Hummingbird, and for the agent's trait NIO.

import PackageDescription

let package = Package(
    name: "HummingbirdServer",
    dependencies: [
        .package(name: "stallwatch", path: "../..", traits: ["NIO", "Metrics"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    ],
    targets: [
        .executableTarget(
            name: "HummingbirdServer",
            dependencies: [
                .product(name: "StallAgent", package: "stallwatch"),
                .product(name: "StallAgentNIO", package: "stallwatch"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ]),
        .executableTarget(
            name: "truth-nio",
            dependencies: [
                .product(name: "StallAgent", package: "stallwatch"),
                .product(name: "StallAgentNIO", package: "stallwatch"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "StallMetrics", package: "stallwatch"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Sources/TruthNIO", swiftSettings: [.swiftLanguageMode(.v5)]),
    ],
    swiftLanguageModes: [.v6]
)
