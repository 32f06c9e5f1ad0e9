// Which threads of the process belong to Dispatch, by the names it gives them. The Swift cooperative pool is made of them.

internal import StallCapture
internal import StallModel

enum PoolThreads {
    /// The workers of the queue that Swift's pool runs on, or of any other whose name ends in `suffix`.
    ///
    /// Linux keeps 15 bytes of a name, and Dispatch keeps the last ones: `com.apple.root.default-qos` is seen as
    /// `oot.default-qos`.
    static func all(named suffix: String? = nil) -> [RegisteredThread] {
        StackSampler.threads().compactMap { id in
            guard let name = threadName(id),
                suffix.map({ name.hasSuffix($0) })
                    ?? (name.hasSuffix("-qos") || name.hasSuffix(".overcommit"))
            else { return nil }
            return try? RegisteredThread.found(id)
        }
    }

    /// Whether one of them is ready to run: what waits for a worker then only needs a CPU.
    static func areWaitingForCPU() -> Bool {
        all().contains { thread in
            var probe = ThreadProbe(thread.id)
            return probe.state() == UInt8(ascii: "R")
        }
    }

    static let cooperative = "oot.default-qos"
}
