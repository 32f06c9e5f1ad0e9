// swift-tools-version: 6.0
// The tests that scripts/truth-tests runs: HangTests never end, HealthyTests do.
import PackageDescription

let package = Package(
    name: "TestTruth",
    targets: [.testTarget(name: "HangTests"), .testTarget(name: "HealthyTests")],
    swiftLanguageModes: [.v5])
