// The watchdog's state of one loop. Allocated by the thread that requests the watch, because the watchdog allocates
// nothing.

internal import CLinux
internal import StallModel

/// Where a watchdog records what readers of the store need once the process is gone: its monitor's slot and wake-up
/// word.
struct ProcessRecordEntry {
    let monitor: Int32
    let wakeup: UnsafeMutablePointer<stall_wakeup>
}

/// A loop with its detectors and their state. Confined to the watchdog's thread while the loop is watched.
final class WatchSlot: @unchecked Sendable {
    // Unchecked because it belongs to one thread at a time: the one that requests the watch, the watchdog, the one that
    // frees it.
    let loop: WatchedLoop
    var policies: ModePolicies
    var detector: StallDetector
    var saturation = SaturationDetector()
    /// When the next poll is due; nil while the loop waits.
    var nextPoll: MonotonicInstant?
    /// How many samples were handed over since they were last discarded.
    var sampleCount = 0
    var saturationSampleCount = 0
    var polledWord: UInt64 = 0
    var alarmedWord: UInt64?
    /// The record of the open stall, for readers after the process is gone.
    private var openSlot: UnsafeMutablePointer<stall_open_slot>?
    private var openFacts = stall_open_facts()
    /// The loop's total busy time just before the evidence of the last poll was read, and of this one.
    private var busyAtLastPoll = Duration.zero
    private var busyBeforeEvidence = Duration.zero
    /// How many of the loop's own long spans have been evaluated.
    var knownStalls: UInt64
    /// How many of them there were when the watchdog read its first evidence: nothing is known of the thread from before.
    var stallsBeforeEvidence: UInt64 = 0
    /// Long spans in no report, because they cannot be proven to be stalls. They count as micro-stalls.
    private var unproven = (count: UInt64(0), time: UInt64(0))
    /// When the last suspicions began. Capacity: as many as the loop stores long spans.
    private let suspected = UnsafeMutablePointer<UInt64>.allocate(
        capacity: Int(LoopBeacon.storedStallCount))
    private var suspicionCount = 0
    /// The beginning of the current interval of watched time.
    var measured: LoopCounters
    /// The next slot of the watchdog, or of a list of retired ones.
    var next: WatchSlot?

    init(_ loop: WatchedLoop) {
        self.loop = loop
        policies = loop.policies
        detector = StallDetector(policy: loop.policies.base)
        measured = loop.beacon.counters(at: MonotonicInstant(nanoseconds: 0), runDelay: nil)
        knownStalls = loop.beacon.stallCount
        suspected.initialize(repeating: 0, count: Int(LoopBeacon.storedStallCount))
        withUnsafeMutableBytes(of: &openFacts.loop) { bytes in
            bytes.copyBytes(from: loop.name.utf8.prefix(bytes.count))
        }
    }

    deinit { suspected.deallocate() }

    /// The loop left the suspected word: the stall is over.
    var hasMovedOn: Bool { alarmedWord != nil && loop.beacon.word != polledWord }

    /// Sets the alarm on the suspected word, or clears it.
    func setAlarm() {
        let suspected = detector.suspectedWord
        guard suspected != alarmedWord else { return }
        if let suspected { loop.beacon.setAlarm(on: suspected) } else { loop.beacon.clearAlarm() }
        alarmedWord = suspected
    }

    /// Notes how long the loop has been busy before the thread's evidence is read. Of two polls it was busy no longer than
    /// from the one's note to the other's reading, wherever the watchdog loses its CPU.
    func noteBusyTime(at now: MonotonicInstant) {
        busyBeforeEvidence = busyTime(loop.beacon.read(at: now), at: now)
    }

    /// How long the loop was busy between the evidence of the last poll and that of this one, at most: in total, and
    /// before the span that was read.
    func busySinceLastPoll(
        _ reading: LoopReading, at now: MonotonicInstant
    ) -> (all: Duration, before: Duration) {
        defer { busyAtLastPoll = busyBeforeEvidence }
        let current = loop.beacon.read(at: now)
        let all = max(.zero, busyTime(current, at: now) - busyAtLastPoll)
        // Of a loop that has moved on since it was read, it is not known what was before.
        guard reading.status == .busy, reading.word == current.word else { return (all, all) }
        return (all, max(.zero, all - (now - reading.since)))
    }

    private func busyTime(_ reading: LoopReading, at now: MonotonicInstant) -> Duration {
        let current = reading.status == .busy ? max(.zero, now - reading.since) : .zero
        return loop.beacon.finishedBusyTime + current
    }

    /// When the suspected span ended, by the loop's own account; nil if it has not, or that is not known.
    func endOfSuspicion(_ reading: LoopReading) -> MonotonicInstant? {
        guard let suspected = detector.suspectedWord, suspected != reading.word else { return nil }
        let began = loop.responder.isExact ? detector.suspectedSince : nil
        let count = loop.beacon.stallCount
        let stored = count - min(count, LoopBeacon.storedStallCount)
        var number = began == nil ? stored : count
        while number > stored {
            number -= 1
            let span = loop.beacon.stall(number: number)
            if span.began == began { return span.began + span.length }
        }
        // Of several watchers of a loop, one may have set the alarm on a later span.
        if suspected == alarmedWord, let end = loop.beacon.alarmAnswer { return end }
        // It was left before the alarm was set. The loop counts every span that is as long as the threshold: this one was
        // shorter.
        let isComplete = stored <= knownStalls && !detector.isStalled
        return isComplete && detector.policy.threshold >= policies.base.threshold ? began : nil
    }

    func noteSuspicion(began: MonotonicInstant) {
        suspected[suspicionCount % Int(LoopBeacon.storedStallCount)] = began.nanoseconds
        suspicionCount += 1
    }

    /// The last suspicion ended without a report.
    func forgetSuspicion() {
        guard suspicionCount > 0 else { return }
        suspected[(suspicionCount - 1) % Int(LoopBeacon.storedStallCount)] = 0
    }

    private func wasSuspected(_ began: MonotonicInstant) -> Bool {
        var index = 0
        while index < Int(LoopBeacon.storedStallCount) {
            if suspected[index] == began.nanoseconds { return true }
            index += 1
        }
        return false
    }

    /// Reports stalls that began and ended while the watchdog had no CPU. The loop has counted them up to `count`.
    ///
    /// - Parameters:
    ///   - history: The thread's evidence from before this poll.
    ///   - busy: How long the loop has been busy since the previous poll.
    func reportMissed(
        upTo count: UInt64, history: ThreadHistory, busy: Duration, _ evidence: ThreadEvidence,
        at now: MonotonicInstant, suspendedIntervals: SuspendedIntervals
    ) {
        let known = knownStalls
        guard count > known else { return }
        knownStalls = count
        guard loop.responder.isExact else { return }
        var next = max(known, count - min(count, LoopBeacon.storedStallCount))
        while next < count {
            let span = loop.beacon.stall(number: next)
            // The samples of a stall that lasts would be attributed to this one.
            let isProvable =
                !span.isDivisible && next >= stallsBeforeEvidence && sampleCount == 0
            next += 1
            guard !wasSuspected(span.began) else { continue }
            let incident =
                isProvable
                ? detector.judgeAfterwards(
                    began: span.began, length: span.length, threshold: policies.longestThreshold,
                    history: history, busyElsewhere: busy - span.length, evidence, at: now,
                    suspendedIntervals: suspendedIntervals) : nil
            if let incident {
                loop.responder.stallChanged(incident)
            } else {
                countUnproven(span.length)
            }
        }
        // The loop has counted more than it stores.
        unproven.count += count - known - min(count - known, LoopBeacon.storedStallCount)
    }

    /// Counts a long span, or piece of one, that is in no report.
    func countUnproven(_ length: Duration) {
        unproven.count += 1
        unproven.time &+= UInt64(max(0, length.nanoseconds))
    }

    /// The loop's counters, with the long spans that are in no report.
    func counters(at now: MonotonicInstant, runDelay: Duration?) -> LoopCounters {
        var counters = loop.beacon.counters(at: now, runDelay: runDelay)
        counters.microStallCount &+= unproven.count
        counters.microStallTime &+= unproven.time
        return counters
    }

    /// Updates the record of the open stall. While there is one, the loop is polled often enough that at most a
    /// sixteenth of the stall's time is lost if the process is killed.
    func updateOpenSlot(
        at now: MonotonicInstant, open incident: StallIncident?, _ record: ProcessRecordEntry
    ) {
        guard detector.isStalled else {
            guard openSlot != nil else { return }
            loop.beacon.setOpenSlot(nil, of: record.wakeup)
            openSlot = nil
            return
        }
        if openSlot == nil, let incident, !incident.hasEnded {
            openFacts.threshold_ns = UInt64(max(0, incident.threshold.nanoseconds))
            openFacts.verdict = UInt32(incident.verdict.rawValue)
            openSlot = stall_process_record_open(
                record.monitor, incident.began.nanoseconds, now.nanoseconds, &openFacts)
            loop.beacon.setOpenSlot(openSlot, of: record.wakeup)
        }
        guard let slot = openSlot else { return }
        stall_open_slot_update(slot, now.nanoseconds)
        stall_page_copy_wake(record.monitor)
        let elapsed = now - MonotonicInstant(nanoseconds: slot.pointee.began_ns)
        let next = now + max(.milliseconds(10), elapsed / 16)
        nextPoll = nextPoll.map { min($0, next) } ?? next
    }

    func discardSamples() {
        if sampleCount > 0 { loop.responder.discardSamples(.stall) }
        sampleCount = 0
    }

    func discardSaturationSamples() {
        if saturationSampleCount > 0 { loop.responder.discardSamples(.saturation) }
        saturationSampleCount = 0
    }

    /// Counts the long spans that no poll will evaluate any more.
    private func countRest() {
        let count = loop.beacon.stallCount
        while knownStalls < count {
            let span = loop.beacon.stall(number: knownStalls)
            knownStalls += 1
            if !wasSuspected(span.began) { countUnproven(span.length) }
        }
    }

    /// Ends the interval of watched time.
    ///
    /// - Parameter isLast: No poll follows.
    func measure(at now: MonotonicInstant, isLast: Bool = false) {
        let delay = loop.responder.evidence(isSuspect: false).runDelay
        if isLast, loop.responder.isExact { countRest() }
        let counters = counters(at: now, runDelay: delay)
        if loop.responder.measured(from: measured, to: counters) { measured = counters }
    }
}
