// A query that needs a lock of the app: whether a CFRunLoop whose beacon is busy really waits, in a mode that no
// observer covers. The watchdog sends the query, the probe thread takes the lock, and the watchdog waits briefly for
// the answer.

internal import CLinux
internal import StallModel
internal import Synchronization

/// One query at a time, about the beacon's word.
final class LoopCorrection: @unchecked Sendable {
    // Unchecked because of the wake-up words, which are futexes and are never freed.
    private let body: @Sendable (UInt64, MonotonicInstant) -> Void
    /// The queried word; 0 without a query.
    private let asked = Atomic<UInt64>(0)
    /// The last word that was answered.
    private let settled = Atomic<UInt64>(0)
    /// Signalled when a query is answered. Nil without memory: then there are no queries.
    private let answered = stall_wakeup_create()
    private let probeThread = Atomic<UInt>(0)

    /// Long enough for a thread to wake up on a machine that is not overloaded.
    private static let timeout = Duration.milliseconds(2)

    /// - Parameter body: Corrects the beacon. Called on the probe thread, and may wait.
    init(_ body: @escaping @Sendable (UInt64, MonotonicInstant) -> Void) { self.body = body }

    func connect(to wakeup: UnsafeMutablePointer<stall_wakeup>) {
        probeThread.store(UInt(bitPattern: wakeup), ordering: .releasing)
    }

    /// Queries a word, on the watchdog's thread. Returns whether it was answered; a late answer is used at the next
    /// poll.
    func ask(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        let address = probeThread.load(ordering: .acquiring)
        guard let answered,
            let probeThread = UnsafeMutablePointer<stall_wakeup>(bitPattern: address)
        else {
            return true
        }
        let isBusy = asked.exchange(word, ordering: .sequentiallyConsistent) != 0
        stall_wakeup_prepare(answered, UInt32(STALL_WATCHDOG_TIMED_WAIT))
        stall_wakeup_signal(probeThread)
        guard !isBusy else { return false }
        stall_wakeup_wait(
            answered, UInt32(STALL_WATCHDOG_TIMED_WAIT), (now + Self.timeout).nanoseconds)
        // An answer to the previous poll's query is as good: it came since then.
        return asked.load(ordering: .sequentiallyConsistent) == 0
            || settled.load(ordering: .sequentiallyConsistent) == word
    }

    /// Answers the query, on the probe thread.
    func answer() {
        let word = asked.load(ordering: .sequentiallyConsistent)
        guard word != 0 else { return }
        body(word, MonotonicInstant(nanoseconds: stall_monotonic_ns()))
        settled.store(word, ordering: .sequentiallyConsistent)
        // A newer query stays.
        _ = asked.compareExchange(
            expected: word, desired: 0, ordering: .sequentiallyConsistent)
        if let answered { stall_wakeup_signal(answered) }
    }
}
