// The record of stalls that were open when a process ended (CLinux/stall_process_record.h). An untrusted page: each
// number is checked before it is used, and a report's own row counts where a number makes no sense.

internal import CLinux
internal import Glibc
package import StallModel

/// The end of a stall that was open when its process last wrote.
package struct OpenStallEnd: Equatable {
    package var outcome: StallOutcome
    /// Nil keeps the row's value.
    package var duration_ns: Int64?

    fileprivate init(
        _ state: StallState, _ ending: StallEnding, duration_ns: Int64? = nil
    ) {
        outcome = StallOutcome(state, ending)
        self.duration_ns = duration_ns
    }

    /// Of a process that left no record.
    package static let ofKilledProcess = OpenStallEnd(.hang, .killed)
}

extension StallReport {
    /// A stall of a process that is gone.
    ///
    /// - Parameter slot: Checked here: nil if its numbers make no sense.
    fileprivate init?(_ slot: stall_open_slot, of run: ProcessRun, _ end: OpenStallEnd) {
        let now_ns = stall_monotonic_ns()
        guard slot.began_ns < now_ns, now_ns - slot.began_ns < UInt64(ProcessRecord.longest),
            slot.facts.threshold_ns < UInt64(ProcessRecord.longest), let duration = end.duration_ns,
            duration >= Int64(slot.facts.threshold_ns),
            let verdict = StallVerdict(rawValue: UInt8(truncatingIfNeeded: slot.facts.verdict))
        else { return nil }
        let loop = withUnsafeBytes(of: slot.facts.loop) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        // Another agent that finds the slot at the same time derives the same id.
        let id = slot.report == (0, 0) ? run.id.derived(slot.began_ns) : UniqueID(slot.report)
        let age_us = Int64((now_ns - slot.began_ns) / 1000)
        self.init(
            id: id, run: run, loop: loop, mode: "", phase: .unknown,
            start: UnixTime(microseconds: UnixTime.now().microseconds - age_us),
            duration: .nanoseconds(duration),
            threshold: .nanoseconds(Int64(slot.facts.threshold_ns)),
            state: end.outcome.state, verdict: verdict)
        outcome = end.outcome
    }
}

/// The page of one run, if it left one.
package struct ProcessRecord {
    private let run: ProcessRun
    private let store: String
    private let page: stall_process_record?

    /// - Parameter store: The file that its reports are in: only its owner's page is believed.
    init(of run: ProcessRun, besideStore store: String) {
        var page = stall_process_record()
        let (high, low) = run.id.words
        let exists =
            FileFacts(store).map {
                stall_process_record_read(high, low, $0.owner, &page)
                    || stall_page_copy_read(store, high, low, $0.owner, &page)
            } ?? false
        (self.run, self.store) = (run, store)
        self.page = exists ? page : nil
    }

    /// How the process ended where it recorded no end itself; nil while it may live.
    private func unrecordedEnding(_ here: ProcessLife) -> StallEnding? {
        switch here.sight(of: run, store: store) {
        case .isOver: .killed
        // It lives, and the agent that has written in it does not: another program runs in it now.
        case .lives: page != nil && !isOfLivingAgent ? .exec : nil
        case .isUnknown: nil
        }
    }

    /// Whether the agent that made the page can still be in the process; true where that cannot be seen.
    private var isOfLivingAgent: Bool {
        if run.pid == getpid() {
            return stall_process_record_is_own(run.id.words.high, run.id.words.low)
        }
        return stall_process_has_thread(run.pid, "stall-watchdog")
    }

    /// How a stall ended; nil while its process may live.
    ///
    /// - Parameter known: The duration of the stall in its report.
    func end(of report: UniqueID, _ here: ProcessLife, known_ns known: Int64) -> OpenStallEnd? {
        guard let otherwise = unrecordedEnding(here) else { return nil }
        guard let page else { return OpenStallEnd(.hang, otherwise) }
        guard let slot = slots(of: page).first(where: { $0.report == report.words }) else {
            return OpenStallEnd(.hang, processEnding(page) ?? otherwise)
        }
        return end(of: slot, in: page, otherwise: otherwise, known_ns: known)
    }

    /// Reports of its stalls, whether or not a store has them; nil without a page, and while the process may live.
    func reports(_ here: ProcessLife) -> [StallReport]? {
        guard let page, let otherwise = unrecordedEnding(here) else { return nil }
        return slots(of: page).compactMap { slot in
            guard slot.report.1 != STALL_REPORT_COUNTED else { return nil }
            return StallReport(
                slot, of: run, end(of: slot, in: page, otherwise: otherwise, known_ns: 0))
        }
    }

    private func processEnding(_ page: stall_process_record) -> StallEnding? {
        StallEnding(rawValue: UInt8(truncatingIfNeeded: page.ending))
    }

    private func end(
        of slot: stall_open_slot, in page: stall_process_record, otherwise: StallEnding,
        known_ns known: Int64
    ) -> OpenStallEnd {
        let processEnding = processEnding(page)
        let ending = processEnding ?? otherwise
        func length(until end: UInt64) -> Int64? {
            guard end >= slot.began_ns, end - slot.began_ns < UInt64(Self.longest) else {
                return nil
            }
            return Int64(end - slot.began_ns)
        }
        // A crash reporter stops the other threads and lets them run for a moment before the process ends.
        let isAfterCrash = processEnding == .crash && slot.ended_ns > page.ending_ns
        if slot.ended_ns != 0, !isAfterCrash, let length = length(until: slot.ended_ns) {
            return OpenStallEnd(.ended, .recovered, duration_ns: length)
        }
        if processEnding != nil, let length = length(until: page.ending_ns) {
            return OpenStallEnd(.hang, ending, duration_ns: length)
        }
        let seen = length(until: slot.seen_ns) ?? known
        return OpenStallEnd(.hang, ending, duration_ns: max(known, seen))
    }

    /// A year; a larger number in a page is not believed.
    fileprivate static let longest = Int64(366) * 86400 * 1_000_000_000

    private func slots(of page: stall_process_record) -> [stall_open_slot] {
        withUnsafeBytes(of: page.slots) { bytes in
            bytes.bindMemory(to: stall_open_slot.self).filter { $0.began_ns != 0 }
        }
    }

    /// Removes the page and its copy: the store has their content.
    static func remove(of run: ProcessRun, besideStore store: String) {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        stall_process_record_path(run.id.words.high, run.id.words.low, &path)
        unlink(path)
        removeCopy(of: run, besideStore: store)
    }

    /// Removes the copies of all runs, with their store.
    package static func removeCopies(besideStore store: String) {
        let directory = store.deletingLastComponent
        let prefix = (store.split(separator: "/").last.map(String.init) ?? store) + "-open-"
        let descriptor = stall_descriptor_open_to_read(directory, O_DIRECTORY)
        guard descriptor >= 0 else { return }
        guard let stream = fdopendir(descriptor) else { return stall_descriptor_end(descriptor) }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let bytes = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            let name = String(decoding: bytes, as: UTF8.self)
            guard name.hasPrefix(prefix), name.utf8.count == prefix.utf8.count + 32 else {
                continue
            }
            unlink(directory + "/" + name)
        }
    }

    /// Removes the copy of a run whose times are those of another boot.
    static func removeCopy(of run: ProcessRun, besideStore store: String) {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let (high, low) = run.id.words
        if stall_page_copy_path(store, high, low, &path, path.count) { unlink(path) }
    }
}
