// swift-tools-version: 6.1
// A server that knows nothing of stallwatch. scripts/truth-programs builds it.
import PackageDescription

let package = Package(
    name: "NIOServer",
    dependencies: [.package(url: "https://github.com/apple/swift-nio", from: "2.80.0")],
    targets: [
        .executableTarget(
            name: "NIOServer",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ])
    ])
