// swift-tools-version: 6.2
// A package of its own, whose tests must not block. scripts/truth-blocking compares what they print with the lines here that
// are marked with `blocks:`.

import PackageDescription

let package = Package(
    name: "NoBlocking",
    dependencies: [.package(name: "stallwatch", path: "../../../..")],
    targets: [
        .testTarget(
            name: "NoBlockingTests",
            dependencies: [.product(name: "StallTesting", package: "stallwatch")])
    ]
)
