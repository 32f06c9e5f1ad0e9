// swift-tools-version: 6.2
// EventRunLoop beside libuv, GLib and SwiftNIO. A package of its own, so that stallwatch needs none of them.
import PackageDescription

let package = Package(
    name: "Peers",
    dependencies: [
        .package(name: "stallwatch", path: "../.."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
    ],
    targets: [
        .systemLibrary(name: "CUV", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .systemLibrary(name: "CGLib", pkgConfig: "glib-2.0", providers: [.apt(["libglib2.0-dev"])]),
        .target(name: "CPeers", dependencies: ["CUV", "CGLib"]),
        .executableTarget(
            name: "PeersBenchmark",
            dependencies: [
                "CPeers",
                .product(name: "StallRunLoop", package: "stallwatch"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
