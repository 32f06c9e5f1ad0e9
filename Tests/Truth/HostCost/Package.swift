// swift-tools-version: 6.2
// An app with the agent, without it, or with another package instead: what scripts/host-cost builds, each from nothing.

import PackageDescription

let with = Context.environment["HOST_COST_WITH"] ?? "agent"
let dependencies: [Package.Dependency] =
    switch with {
    case "agent":
        [.package(name: "stallwatch", path: Context.environment["HOST_COST_PACKAGE"] ?? "../../..")]
    case "arguments":
        [.package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2")]
    default: []
    }
let products: [Target.Dependency] =
    switch with {
    case "agent": [.product(name: "StallAgent", package: "stallwatch")]
    case "arguments": [.product(name: "ArgumentParser", package: "swift-argument-parser")]
    default: []
    }

let package = Package(
    name: "HostCost",
    dependencies: dependencies,
    targets: [
        .executableTarget(
            name: "HostCost", dependencies: products,
            swiftSettings: with == "agent"
                ? [.define("AGENT")] : with == "arguments" ? [.define("ARGUMENTS")] : [])
    ]
)
