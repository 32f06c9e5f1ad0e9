// swift-tools-version: 6.2
// An app as its developers have it: a package of its own, with the default settings of a new one.

import PackageDescription

let package = Package(
    name: "OutsideApp",
    dependencies: [.package(name: "stallwatch", path: "../../..")],
    targets: [
        .executableTarget(
            name: "OutsideApp",
            dependencies: [.product(name: "StallAgent", package: "stallwatch")])
    ]
)
