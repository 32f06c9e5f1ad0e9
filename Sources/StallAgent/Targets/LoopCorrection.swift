// What only a lock of the app's tells: whether a CFRunLoop that says busy really waits, in a mode that no observer
// covers. The watchdog asks, the probe thread takes the lock, and the watchdog waits a moment at most for the answer.

internal import CLinux
internal import StallModel
internal import Synchronization

/// One question at a time, about the beacon's word.
final class LoopCorrection: @unchecked Sendable {
    // Unchecked because of the wake-up words, which are futexes and live for ever.
    private let body: @Sendable (UInt64, MonotonicInstant) -> Void
    /// The word that is asked about; 0 when none is.
    private let asked = Atomic<UInt64>(0)
    /// The last word that there was an answer about.
    private let settled = Atomic<UInt64>(0)
    /// Rung when a question is answered. Nil without memory: then nothing is asked.
    private let answered = stall_wakeup_create()
    private let probeThread = Atomic<UInt>(0)

    /// Long enough for a thread that is woken up, on a machine that is not starved.
    private static let patience = Duration.milliseconds(2)

    /// - Parameter body: Sets the beacon right. Called on the probe thread, and may wait.
    init(_ body: @escaping @Sendable (UInt64, MonotonicInstant) -> Void) { self.body = body }

    func connect(to wakeup: UnsafeMutablePointer<stall_wakeup>) {
        probeThread.store(UInt(bitPattern: wakeup), ordering: .releasing)
    }

    /// Asks about a word, on the watchdog's thread. Returns whether it was answered: an answer that does not come soon
    /// will be there at the next look.
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
            answered, UInt32(STALL_WATCHDOG_TIMED_WAIT), (now + Self.patience).nanoseconds)
        // The answer to the question of the look before is as good: it came since then.
        return asked.load(ordering: .sequentiallyConsistent) == 0
            || settled.load(ordering: .sequentiallyConsistent) == word
    }

    /// Answers, on the probe thread.
    func answer() {
        let word = asked.load(ordering: .sequentiallyConsistent)
        guard word != 0 else { return }
        body(word, MonotonicInstant(nanoseconds: stall_monotonic_ns()))
        settled.store(word, ordering: .sequentiallyConsistent)
        // A newer question stays.
        _ = asked.compareExchange(
            expected: word, desired: 0, ordering: .sequentiallyConsistent)
        if let answered { stall_wakeup_signal(answered) }
    }
}
