// A thread that runs jobs of Swift tasks, or its successor (CLinux/stall_jobs.h).

internal import CLinux
internal import StallCapture
internal import StallDetection
internal import StallModel

/// A watched worker. Its beacon shows exactly when a job begins and ends. Within one job, an actor may run the work of
/// many tasks in turn, and that is progress.
final class WorkerThreadTarget: MonitoredTarget, @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches what changes, and a worker lives as long as the process.
    private let worker: UnsafeMutablePointer<stall_worker>
    private let beacon: SharedBeacon
    /// The worker's current thread, and the number of its predecessors.
    private var known: (thread: RegisteredThread?, generation: UInt64) = (nil, 0)
    /// The task at the last poll, and the beacon's word then.
    private var seen: (word: UInt64, task: UInt64) = (0, 0)

    init(_ worker: UnsafeMutablePointer<stall_worker>) {
        self.worker = worker
        beacon = SharedBeacon(worker.pointee.beacon)
    }

    func findThread() -> RegisteredThread? {
        let id = ThreadID(rawValue: stall_beacon_thread(beacon.pointer))
        guard id.rawValue != 0 else { return nil }
        let generation = stall_worker_generation(worker)
        if known.generation != generation || known.thread?.id != id {
            known = (try? RegisteredThread.found(id), generation)
        }
        return known.thread
    }

    /// If the task changed since the last poll, the thread is occupied but no single task has run for long.
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        if known.thread?.hasEnded == true {
            beacon.correct(word, to: UInt8(STALL_LOOP_IDLE), at: now)
            return true
        }
        let task = stall_worker_task(worker)
        if seen.word == word, seen.task != task, task != 0 {
            beacon.correct(word, to: UInt8(STALL_LOOP_BUSY), at: now)
            seen = (stall_beacon_word(beacon.pointer), task)
        } else {
            seen = (word, task)
        }
        return true
    }

    /// The label of the thread or of its task; otherwise, if the pool is exhausted, that.
    func readLabel(of beacon: LoopBeacon, into text: UnsafeMutablePointer<CChar>) {
        beacon.readLabel(into: text)
        if text[0] != 0 || stall_task_note_read(stall_worker_task(worker), text) { return }
        let count = stall_worker_exhausted_count(worker)
        if count > 0 { stall_pool_make_label(text, UInt32(count)) }
    }

    /// All threads of the queue, if no other one is left for a job that waits.
    func forEachMember(_ body: (RegisteredThread) -> Void) {
        guard stall_worker_exhausted_count(worker) > 0 else { return }
        var number: Int32 = 0
        while number < stall_worker_count() {
            let other = stall_worker_numbered(number)
            number += 1
            guard stall_worker_shares_queue(other, worker) else { continue }
            let id = ThreadID(rawValue: stall_beacon_thread(other.pointee.beacon))
            if id.rawValue != 0, let thread = try? RegisteredThread.found(id) { body(thread) }
        }
    }
}
