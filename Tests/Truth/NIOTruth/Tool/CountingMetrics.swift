// A metrics system that counts: what StallMetrics hands over is to be what the reports say.

import CoreMetrics
import Synchronization

final class CountingMetrics: MetricsFactory, Sendable {
    private struct State {
        var counts: [String: Int64] = [:]
        var highest: [String: Double] = [:]
    }
    private let state = Mutex(State())

    func add(_ label: String, _ amount: Int64) {
        state.withLock { $0.counts[label, default: 0] += amount }
    }
    func record(_ label: String, _ value: Double) {
        state.withLock { $0.highest[label] = max($0.highest[label] ?? 0, value) }
    }

    /// One line for each loop.
    func say() {
        let (counts, highest) = state.withLock { ($0.counts, $0.highest) }
        for (label, count) in counts.sorted(by: { $0.key < $1.key }) {
            print("\(label) \(count)")
        }
        for (label, ratio) in highest.sorted(by: { $0.key < $1.key }) {
            print("\(label) at most \(Int(ratio * 100)) %")
        }
    }

    private final class Handler: CounterHandler, RecorderHandler, TimerHandler, Sendable {
        let label: String
        let owner: CountingMetrics
        init(_ label: String, _ dimensions: [(String, String)], _ owner: CountingMetrics) {
            let loop = dimensions.first { $0.0 == "loop" }?.1 ?? ""
            self.label = "\(label){loop=\(loop)}"
            self.owner = owner
        }
        func increment(by amount: Int64) { owner.add(label, amount) }
        func reset() {}
        func record(_ value: Int64) { owner.record(label, Double(value)) }
        func record(_ value: Double) { owner.record(label, value) }
        func recordNanoseconds(_ duration: Int64) { owner.add(label + ",ms", duration / 1_000_000) }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        Handler(label, dimensions, self)
    }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool)
        -> any RecorderHandler
    {
        Handler(label, dimensions, self)
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        Handler(label, dimensions, self)
    }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}
