// swift-tools-version: 6.2
// A server in a package of its own: only it pays for Hummingbird, and for the agent's trait NIO.

import PackageDescription

let package = Package(
    name: "HummingbirdServer",
    dependencies: [
        .package(name: "stallwatch", path: "../..", traits: ["NIO"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .executableTarget(
            name: "HummingbirdServer",
            dependencies: [
                .product(name: "StallAgent", package: "stallwatch"),
                .product(name: "StallAgentNIO", package: "stallwatch"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
