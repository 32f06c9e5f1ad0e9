import Foundation
import LoopConformance
import TestSupport
import Testing

/// Goal: the loop follows CFRunLoop in every row of the golden table.
/// Method: each row is played on EventRunLoop and on the toolchain's CFRunLoop, and the traces are compared with each
/// other and with the recorded one. The rows take real time, some tens of milliseconds each.
@Suite struct ConformanceTests {
    /// How many rows are played at once: enough to overlap their sleeps, not so many that they disturb each other.
    static let places = Places(count: 6)

    @Test(arguments: Scenario.all.filter { !$0.isMain })
    func `a row of the golden table has the trace of the real loop`(scenario: Scenario) async {
        await Self.places.take()
        let play = await withCheckedContinuation { continuation in
            Thread { continuation.resume(returning: scenario.compare(perform: onFreshThread)) }
                .start()
        }
        await Self.places.giveBack()
        if case .differs(let ours, let real) = play.verdict {
            Issue.record(
                "\(scenario)\nours \(ours.joined(separator: " "))\nreal \(real.joined(separator: " "))"
            )
        }
    }

    /// The conformance tool has a main thread of its own to give. Rows that it played again have lines before the last
    /// one.
    @Test func `the rows of the main thread have the trace of the real loop`() throws {
        let text = try BuiltProgram("conformance", ["main"]).finish().output
        #expect(text.contains("conformance agree=4 better=0 of=4 retries="), "\(text)")
    }

    @Test func `the main queue has its turn before the sleep, as with the real loop`() throws {
        let text = try BuiltProgram("conformance", ["further"]).finish().output
        #expect(text.contains("conformance agree=1 better=0 of=1 retries="), "\(text)")
    }

    /// Other sequences in each run; a failure names its seed, which `conformance --random 1 SEED` plays again.
    @Test func `random sequences of fresh seeds have the same trace on both loops`() {
        let first = UInt64.random(in: 1_000_000...1_000_000_000_000)
        for seed in first..<first + 200 {
            guard let (ours, real) = RandomSequence(seed: seed).difference() else { continue }
            Issue.record(
                "seed \(seed)\nours \(ours.joined(separator: " "))\nreal \(real.joined(separator: " "))"
            )
        }
    }

    /// `conformance` plays 100,000 of them.
    @Test(arguments: 0..<8)
    func `random sequences have the same trace on both loops`(part: UInt64) {
        for seed in part * 100..<(part + 1) * 100 {
            let sequence = RandomSequence(seed: seed)
            guard let (ours, real) = sequence.difference() else { continue }
            Issue.record(
                "seed \(seed)\n\(sequence.shrunk())\nours \(ours.joined(separator: " "))\nreal \(real.joined(separator: " "))"
            )
        }
    }

    /// A sequence that never did anything would agree with everything.
    @Test func `random sequences run every kind of callback and end in every way`() {
        let tokens = Set(
            (0..<300).flatMap { RandomSequence(seed: $0).trace(on: PlayedEventRunLoop.self) })
        #expect(
            tokens.isSuperset(of: [
                "s0", "s1", "s2", "x0", "x1", "x2", "b0", "b1", "b2", "b3", "stop",
            ]))
        #expect(
            tokens.isSuperset(of: [
                "=1", "=2", "=3", "=4", "o0E", "o0T", "o0S", "o0W", "o0A", "o0X",
            ]))
    }

    @Test func `the table has the 78 rows that were recorded`() {
        #expect(Scenario.all.count == 78)
        #expect(Set(Scenario.all.map(\.id)).count == 78)
    }
}

/// A number of places that tests take in turn.
actor Places {
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(count: Int) { free = count }

    func take() async {
        guard free == 0 else {
            free -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func giveBack() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }
}
