import Foundation
import StallFormats
import StallModel
import StallQuery
import TestSupport
import Testing

@testable import stallctl

/// Goal: what viewers are given adds up to what the store says, and each format is as its readers expect.
/// Method: a store of random stalls and one of hostile names; Tests/Truth/Pictures/viewers.py decodes every format by itself.
@Suite struct ViewerTests {
    @Test(.enabled(if: Oracle.hasPython))
    func `every viewer's format says what the store says`() throws {
        try withTemporaryDirectory { directory in
            let said = try viewers(in: directory)
            #expect(said.status == 0 && said.output.hasSuffix(" failed=0\n"), "\(said.output)")
        }
    }

    @Test(.enabled(if: Oracle.hasPython))
    func `the oracle notices one nanosecond`() throws {
        try withTemporaryDirectory { directory in
            let said = try viewers(in: directory, ["SABOTAGE": "1"])
            #expect(said.status == 1 && said.output.contains("FAILED pprof"))
        }
    }

    private func viewers(
        in directory: URL, _ environment: [String: String] = [:]
    ) throws -> ProgramResult {
        let base = [
            "STALLCTL": BuiltProgram.directory.appending(path: "stallctl").path,
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
        ]
        return try Oracle.run(
            "/usr/bin/env",
            [
                "python3", "-X", "utf8",
                Repository.root.appending(path: "Tests/Truth/Pictures/viewers.py").path,
                directory.path,
            ],
            environment: base.merging(environment) { $1 })
    }
}

/// Goal: the parts of a stall add up to it, to the nanosecond, whatever its weights are.
/// Method: stalls made by hand and at random.
@Suite struct StackPartTests {
    private func trace(_ weights: [Int64], lasting duration: Int64) -> StallTrace {
        StallTrace(
            id: SampleReports.id(1), run: SampleReports.run(), loop: "main",
            start: SampleReports.noon, duration: .nanoseconds(duration), state: .ended, cause: nil,
            stacks: weights.enumerated().map {
                WeightedStack(stack: Int64($0), weight: .nanoseconds($1))
            })
    }

    @Test func `parts follow each other without gaps and end with the stall`() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<500 {
            func number(upToBits bits: Int64) -> Int64 {
                let limit = Int64(1) << Int64.random(in: 0...bits, using: &random)
                return Int64.random(in: 0...limit, using: &random)
            }
            let count = Int.random(in: 1...9, using: &random)
            let weights = (0..<count).map { _ in number(upToBits: 50) }
            let duration = number(upToBits: 60)
            let parts = trace(weights, lasting: duration).parts
            #expect(parts.reduce(0) { $0 + $1.duration_ns } == duration)
            #expect(parts.allSatisfy { $0.duration_ns >= 0 })
            #expect(
                zip(parts, parts.dropFirst()).allSatisfy {
                    $0.begin_ns + $0.duration_ns == $1.begin_ns
                })
        }
    }

    @Test func `a stall without stacks has no parts`() {
        #expect(trace([], lasting: 5).parts.isEmpty)
    }
}
