// The watchdog's side of a beacon (CLinux/stall_beacon.h): the loop writes it without locks, the watchdog reads it.

package import CLinux
package import StallModel

/// The loop's activity, as far as detection needs to know. The raw values are the beacon's.
package enum LoopStatus: UInt8, Hashable, Sendable {
    /// Outside of a run: not expected to serve events.
    case idle = 0
    case busy = 1
    case waiting = 2
}

/// The content of a beacon at one instant.
package struct LoopReading: Equatable, Sendable {
    package var status: LoopStatus
    /// When the status began: at entry, at the end of the wait, or at the start of the iteration.
    package var since: MonotonicInstant
    /// Two readings with equal words: the loop made no progress between them.
    package var word: UInt64

    package init(status: LoopStatus, since: MonotonicInstant) {
        self.status = status
        self.since = since
        word = stall_beacon_pack(status.rawValue, since.nanoseconds)
    }

    /// Unpacks a word. Its 56 bits of time wrap every 834 days: the instant is the one nearest to `now`, which may be a
    /// little later, if the loop published after `now` was read.
    init(word: UInt64, now: MonotonicInstant) {
        self.word = word
        status = LoopStatus(rawValue: UInt8(word >> 56)) ?? .idle
        let mask = UInt64(1) << 56 - 1
        let age = (now.nanoseconds &- word) & mask
        since = MonotonicInstant(
            nanoseconds: age > mask / 2
                ? now.nanoseconds + (mask + 1 - age) : now.nanoseconds - age)
    }
}

/// A busy span as long as a stall, by the loop's own count.
struct LongSpan {
    var began: MonotonicInstant
    var length: Duration
    /// It may consist of several pieces of work: its length alone does not prove a stall.
    var isDivisible: Bool
}

/// A shared reference to a loop's beacon. The beacon outlives the loop while it is watched.
package final class LoopBeacon: @unchecked Sendable {
    // Unchecked because of the pointer. Every access through it is one atomic operation.
    private let beacon: UnsafeMutablePointer<stall_beacon>

    package init(_ beacon: UnsafeMutablePointer<stall_beacon>) {
        stall_beacon_retain(beacon)
        self.beacon = beacon
    }

    deinit { stall_beacon_release(beacon) }

    /// Tells beacons apart while they are watched.
    package var address: UInt { UInt(bitPattern: beacon) }

    package func read(at now: MonotonicInstant) -> LoopReading {
        LoopReading(word: stall_beacon_word(beacon), now: now)
    }

    /// How often the loop has waited or left its run since it has been watched.
    var rests: UInt64 { stall_counters_rests(beacon) }

    /// The loop's own counters at `now`.
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

    /// Busy time since the loop has been watched, without the current busy span.
    var finishedBusyTime: Duration {
        .nanoseconds(Int64(clamping: stall_counters_busy_ns(beacon)))
    }

    /// The number of busy spans as long as a stall. The last `storedStallCount` of them can be read by number.
    var stallCount: UInt64 { stall_counters_stalls(beacon) }
    static let storedStallCount = UInt64(STALL_STORED_SPANS)
    func stall(number: UInt64) -> LongSpan {
        var (began, length, isDivisible): (UInt64, UInt64, Bool) = (0, 0, false)
        stall_counters_stall(beacon, number, &began, &length, &isDivisible)
        return LongSpan(
            began: MonotonicInstant(nanoseconds: began),
            length: .nanoseconds(Int64(clamping: length)), isDivisible: isDivisible)
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

    /// Sets the slot in which the loop notes the end of the open stall, for the watchdog with this wake-up word.
    func setOpenSlot(
        _ slot: UnsafeMutablePointer<stall_open_slot>?,
        of wakeup: UnsafeMutablePointer<stall_wakeup>
    ) {
        stall_beacon_set_open_slot(beacon, wakeup, slot)
    }
    /// Adds a wake-up word; the loop signals those of all watchdogs. A busy span of `stallLength` or more counts as a
    /// stall, not as a micro-stall. Another call changes that length. False if the beacon has no room.
    @discardableResult
    func connect(to wakeup: UnsafeMutablePointer<stall_wakeup>, stallLength: Duration) -> Bool {
        stall_beacon_join(beacon, wakeup, UInt64(max(0, stallLength.nanoseconds)))
    }

    func disconnect(from wakeup: UnsafeMutablePointer<stall_wakeup>) {
        stall_beacon_leave(beacon, wakeup)
    }
    func setAlarm(on word: UInt64) { stall_beacon_set_alarm(beacon, word) }
    func clearAlarm() { stall_beacon_clear_alarm(beacon) }

    /// Whether the loop is known to have left the word of the alarm before `instant`.
    package func hasLeft(_ word: UInt64, by instant: MonotonicInstant) -> Bool {
        guard self.word != word else { return false }
        return alarmAnswer.map { $0 < instant } ?? true
    }

    /// When the loop left the word of the alarm, by the loop's own clock.
    var alarmAnswer: MonotonicInstant? {
        let nanoseconds = stall_beacon_ended(beacon)
        return nanoseconds == 0 ? nil : MonotonicInstant(nanoseconds: nanoseconds)
    }
}
