// Whether a run was delayed by waits for a CPU. The traces have steps of 10 ms: a thread that waits longer for a CPU
// produces another trace.

internal import Foundation
internal import Synchronization

/// How long threads were ready to run without running, as the kernel counts it (schedstat).
struct Queueing {
    private let before = Queueing.ofLivingThreads()
    private static let ended = Atomic<UInt64>(0)

    /// For how many seconds one thread of the process has queued at most since this was made; also Dispatch's, which
    /// serve the timers of the real loop.
    var mostSeconds: Double {
        let now = Self.ofLivingThreads()
        let most = now.map { id, queued in queued - min(queued, before[id] ?? 0) }.max() ?? 0
        return Double(max(most, Self.ended.exchange(0, ordering: .relaxed))) / 1e9
    }

    /// Called by a thread that ends during a run.
    static func noteEndOfThread() {
        guard !Thread.isMainThread else { return }
        let own = nanoseconds(of: "/proc/thread-self/schedstat")
        _ = ended.max(own, ordering: .relaxed)
    }

    private static func ofLivingThreads() -> [String: UInt64] {
        let ids = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        let pairs = ids.map { ($0, nanoseconds(of: "/proc/self/task/\($0)/schedstat")) }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    private static func nanoseconds(of file: String) -> UInt64 {
        let text = try? String(contentsOfFile: file, encoding: .utf8)
        return text?.split(separator: " ").dropFirst().first.flatMap { UInt64($0) } ?? 0
    }
}
