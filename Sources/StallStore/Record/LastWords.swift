// What a process left behind about the stalls that were open when it went (CLinux/stall_last_words.h). A stranger's
// page: each number is checked before it is used, and a report's own row counts where it makes no sense.

internal import CLinux
internal import Glibc
internal import StallModel

/// What became of a stall that was open when its process was last heard of.
struct OpenStallEnd: Hashable {
    var state: StallState
    var ending: StallEnding
    /// Nil keeps what the row says.
    var duration_ns: Int64?
}

/// The page of one run, if it left one.
struct LastWords {
    private let run: ProcessRun
    private let page: stall_last_words?
    var isThere: Bool { page != nil }

    /// - Parameter store: The file that its reports are in: only its owner's page is believed.
    init(of run: ProcessRun, besideStore store: String) {
        var page = stall_last_words()
        let isThere =
            FileFacts(store).map {
                stall_last_words_read(run.id.words.high, run.id.words.low, $0.owner, &page)
            } ?? false
        self.run = run
        self.page = isThere ? page : nil
    }

    /// Whether the agent that made the page can still be in the process; true where that cannot be seen.
    func isOfLivingAgent(in process: Int32) -> Bool {
        if process == getpid() {
            return stall_last_words_is_own(run.id.words.high, run.id.words.low)
        }
        return stall_process_has_thread(process, "stall-watchdog")
    }

    /// - Parameters:
    ///   - otherwise: How the process ended when it left no word.
    ///   - known: How long the report says that the stall has lasted.
    func end(
        of report: UniqueID, otherwise: StallEnding, known_ns known: Int64
    ) -> OpenStallEnd {
        guard let page else { return OpenStallEnd(state: .hang, ending: otherwise) }
        let processEnding = StallEnding(rawValue: UInt8(truncatingIfNeeded: page.ending))
        let ending = processEnding ?? otherwise
        guard let slot = slot(of: report, in: page) else {
            return OpenStallEnd(state: .hang, ending: ending)
        }
        func length(until end: UInt64) -> Int64? {
            guard end >= slot.began_ns, end - slot.began_ns < UInt64(Self.longest) else {
                return nil
            }
            return Int64(end - slot.began_ns)
        }
        if slot.ended_ns != 0, let length = length(until: slot.ended_ns) {
            return OpenStallEnd(state: .ended, ending: .recovered, duration_ns: length)
        }
        if processEnding != nil, let length = length(until: page.ending_ns) {
            return OpenStallEnd(state: .hang, ending: ending, duration_ns: length)
        }
        let seen = length(until: slot.seen_ns) ?? known
        return OpenStallEnd(state: .hang, ending: ending, duration_ns: max(known, seen))
    }

    /// A year; no number of a page that says more is believed.
    private static let longest = Int64(366) * 86400 * 1_000_000_000

    private func slot(of report: UniqueID, in page: stall_last_words) -> stall_open_slot? {
        withUnsafeBytes(of: page.slots) { bytes in
            bytes.bindMemory(to: stall_open_slot.self).first {
                $0.began_ns != 0 && $0.report == report.words
            }
        }
    }

    /// Removes the page: the store has what it says.
    static func remove(of run: ProcessRun) {
        var path = [CChar](repeating: 0, count: 64)
        stall_last_words_path(run.id.words.high, run.id.words.low, &path)
        unlink(path)
    }
}
