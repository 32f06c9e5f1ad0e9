// swift-tools-version: 6.2
// A package to begin with: copy the folder, and let the dependency say where stallwatch comes from:
//
//     .package(url: "https://...", from: "0.1.0")

import PackageDescription

let package = Package(
    name: "App",
    dependencies: [.package(name: "stallwatch", path: "../..")],
    targets: [
        .executableTarget(
            name: "App",
            dependencies: [
                // The agent exists on Linux; elsewhere the app builds without it.
                .product(
                    name: "StallAgent", package: "stallwatch",
                    condition: .when(platforms: [.linux]))
            ])
    ],
    swiftLanguageModes: [.v6]
)
