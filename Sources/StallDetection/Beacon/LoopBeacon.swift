// The watchdog's end of a beacon (CLinux/stall_beacon.h). The loop writes it without locks; here it is only read.

package import CLinux
package import StallModel

/// What the loop does, in the three words that detection needs. The raw values are the beacon's.
package enum LoopStatus: UInt8, Hashable, Sendable {
    /// Between runs: it is not expected to serve events.
    case idle = 0
    case busy = 1
    case waiting = 2
}

/// What a beacon said at one instant.
package struct LoopReading: Hashable, Sendable {
    package var status: LoopStatus
    /// When the status began: the entry, the end of the wait, or the start of the iteration.
    package var since: MonotonicInstant
    /// Equal words mean that the loop has not moved.
    package var word: UInt64

    package init(status: LoopStatus, since: MonotonicInstant) {
        self.status = status
        self.since = since
        word = stall_beacon_pack(status.rawValue, since.nanoseconds)
    }

    /// Unpacks a word. Its 56 bits of time wrap every 834 days: the instant is the latest one not after `now`.
    init(word: UInt64, now: MonotonicInstant) {
        self.word = word
        status = LoopStatus(rawValue: UInt8(word >> 56)) ?? .idle
        let mask = UInt64(1) << 56 - 1
        let age = (now.nanoseconds &- word) & mask
        // A loop that published after `now` was read looks almost a full turn old.
        since = MonotonicInstant(
            nanoseconds: age > mask / 2 ? now.nanoseconds : now.nanoseconds - age)
    }
}

/// A shared reference to a loop's beacon; the beacon outlives the loop for as long as it is watched.
package final class LoopBeacon: @unchecked Sendable {
    // Unchecked because a pointer is: every access behind it is one atomic operation.
    private let beacon: UnsafeMutablePointer<stall_beacon>

    package init(_ beacon: UnsafeMutablePointer<stall_beacon>) {
        stall_beacon_retain(beacon)
        self.beacon = beacon
    }

    deinit { stall_beacon_release(beacon) }

    package func read(at now: MonotonicInstant) -> LoopReading {
        LoopReading(word: stall_beacon_word(beacon), now: now)
    }

    /// How often the loop has waited or left its run, while it was watched.
    var rests: UInt64 { stall_counters_rests(beacon) }

    /// What the loop has counted of itself by now.
    package func counters(at now: MonotonicInstant, runDelay: Duration?) -> LoopCounters {
        let reading = read(at: now)
        let current = reading.status == .busy ? max(.zero, now - reading.since) : .zero
        return LoopCounters(
            at: now,
            busy: finishedBusyTime + current,
            microStallCount: stall_counters_micro_stalls(beacon),
            microStallTime: stall_counters_micro_stall_ns(beacon),
            lengths: InlineArray { stall_counters_length(beacon, UInt32($0)) },
            runDelay: runDelay)
    }

    /// For how long the loop has been busy while it was watched, without what it does now.
    var finishedBusyTime: Duration {
        .nanoseconds(Int64(clamping: stall_counters_busy_ns(beacon)))
    }

    /// How many spans have been as long as a stall, and the last of them by their numbers.
    var stallCount: UInt64 { stall_counters_stalls(beacon) }
    static let keptStalls = UInt64(STALL_KEPT_SPANS)
    func stall(number: UInt64) -> (began: MonotonicInstant, length: Duration) {
        var (began, length): (UInt64, UInt64) = (0, 0)
        stall_counters_stall(beacon, number, &began, &length)
        return (MonotonicInstant(nanoseconds: began), .nanoseconds(Int64(clamping: length)))
    }

    package var word: UInt64 { stall_beacon_word(beacon) }
    package var isBusy: Bool { word >> 56 == UInt64(STALL_LOOP_BUSY) }
    package var thread: ThreadID { ThreadID(rawValue: stall_beacon_thread(beacon)) }
    package var mode: UInt32 { stall_beacon_mode(beacon) }
    package var phase: LoopPhase {
        LoopPhase(rawValue: UInt8(stall_beacon_callout(beacon) >> 56)) ?? .unknown
    }

    /// The activity label, or nil when there is none. Never waits for the writer.
    package var label: String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            guard stall_beacon_read_label(beacon, text.baseAddress!), text[0] != 0 else {
                return nil
            }
            return String(cString: text.baseAddress!)
        }
    }

    /// The activity label as zero-ended text of at most 64 bytes; empty when there is none. Never waits for the writer.
    package func readLabel(into text: UnsafeMutablePointer<CChar>) {
        if !stall_beacon_read_label(beacon, text) { text[0] = 0 }
    }

    /// Replaces the activity label. Only the loop's own thread may call it.
    package func writeLabel(_ label: String?) {
        guard var label else { return stall_beacon_write_label(beacon, nil, 0) }
        label.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                stall_beacon_write_label(beacon, $0.baseAddress, UInt32(clamping: $0.count))
            }
        }
    }

    /// Where the loop is to note the end of the stall that is open, for the watchdog with this wake-up word.
    func setOpenSlot(
        _ slot: UnsafeMutablePointer<stall_open_slot>?,
        of wakeup: UnsafeMutablePointer<stall_wakeup>
    ) {
        stall_beacon_set_open_slot(beacon, wakeup, slot)
    }
    /// Signals this wake-up word too, beside those of other watchdogs. From `stallLength` on a busy span is a stall and
    /// no micro-stall. Done again, it changes that. False when there is no room.
    @discardableResult
    func connect(to wakeup: UnsafeMutablePointer<stall_wakeup>, stallLength: Duration) -> Bool {
        stall_beacon_join(beacon, wakeup, UInt64(max(0, stallLength.nanoseconds)))
    }

    func disconnect(from wakeup: UnsafeMutablePointer<stall_wakeup>) {
        stall_beacon_leave(beacon, wakeup)
    }
    func setAlarm(on word: UInt64) { stall_beacon_set_alarm(beacon, word) }
    func clearAlarm() { stall_beacon_clear_alarm(beacon) }

    /// Whether the loop had left the word that the alarm is set on at some instant, as far as is known.
    package func hasLeft(_ word: UInt64, by instant: MonotonicInstant) -> Bool {
        guard self.word != word else { return false }
        return alarmAnswer.map { $0 < instant } ?? true
    }

    /// When the word that the alarm was set on went, by the loop's own clock.
    var alarmAnswer: MonotonicInstant? {
        let nanoseconds = stall_beacon_ended(beacon)
        return nanoseconds == 0 ? nil : MonotonicInstant(nanoseconds: nanoseconds)
    }
}
