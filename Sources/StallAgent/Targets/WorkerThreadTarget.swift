// A thread that runs jobs of Swift tasks, or its successor (CLinux/stall_jobs.h).

internal import CLinux
internal import StallCapture
internal import StallDetection
internal import StallModel

/// The threads of an executor of the agent, as the watchdog sees them: nothing may allocate or wait.
protocol WorkerGroup: AnyObject, Sendable {
    /// How many threads it has, if all are occupied and a job waits; otherwise 0.
    var exhaustedCount: Int { get }
    func forEachWorker(_ body: (UnsafeMutablePointer<stall_worker>) -> Void)
}

/// A watched worker. Its beacon shows exactly when a job begins and ends. Within one job, an actor may run the work of
/// many tasks in turn, and that is progress.
final class WorkerThreadTarget: MonitoredTarget, @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches what changes, and a worker lives as long as the process.
    private let worker: UnsafeMutablePointer<stall_worker>
    private let beacon: SharedBeacon
    /// Nil for the threads of Swift's pool.
    private let group: (any WorkerGroup)?
    /// The worker's current thread, and the number of its predecessors.
    private var known = Occupant()
    /// The task at the last poll, since when it was there at each poll, and the beacon's word.
    private var seen: (word: UInt64, task: UInt64, since: MonotonicInstant) = (
        0, 0, MonotonicInstant(nanoseconds: 0)
    )

    init(_ worker: UnsafeMutablePointer<stall_worker>, of group: (any WorkerGroup)? = nil) {
        self.worker = worker
        self.group = group
        beacon = SharedBeacon(worker.pointee.beacon)
    }

    private struct Occupant {
        var id = ThreadID(rawValue: 0)
        var generation: UInt64 = 0
        /// Nil if it had ended when it was looked for, or if `/proc` cannot be read.
        var thread: RegisteredThread?
        var hadEnded = false

        var hasEnded: Bool { hadEnded || thread?.hasEnded == true }
    }

    func findThread() -> RegisteredThread? {
        let id = ThreadID(rawValue: stall_beacon_thread(beacon.pointer))
        guard id.rawValue != 0 else { return nil }
        let generation = stall_worker_generation(worker)
        if known.generation != generation || known.id != id {
            known = Occupant(id: id, generation: generation)
            do {
                known.thread = try RegisteredThread.found(id)
            } catch {
                known.hadEnded = error == .threadEnded(id)
            }
        }
        return known.thread
    }

    func countersAtStart() -> (cpuTime: Duration, runDelay: Duration)? {
        (.nanoseconds(worker.pointee.cpu_ns), .nanoseconds(worker.pointee.run_delay_ns))
    }

    /// The thread marks where its jobs begin and end.
    var isExact: Bool { true }

    /// An actor's job runs the work of many tasks in turn: which one it was before the first poll that saw this one is
    /// not known.
    func undividedSince(_ word: UInt64, at now: MonotonicInstant) -> MonotonicInstant? {
        guard stall_worker_runs_many(worker) else { return nil }
        return seen.word == word ? seen.since : now
    }

    /// If the task of an actor's job changed since the last poll, no single task has run for long. A task's own job may run
    /// others on its way (`Task.immediate`), and is one piece of work.
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        // The entry may have a new thread since the last poll; its predecessor has ended, and the job is the new one's.
        _ = findThread()
        if known.hasEnded {
            beacon.correct(word, to: UInt8(STALL_LOOP_IDLE), at: now)
            return true
        }
        guard stall_worker_runs_many(worker) else { return true }
        let task = stall_worker_task(worker)
        guard seen.word != word || seen.task != task else { return true }
        if seen.word == word, task != 0 {
            stall_beacon_split(beacon.pointer, word, now.nanoseconds)
            seen = (stall_beacon_word(beacon.pointer), task, now)
        } else {
            seen = (word, task, now)
        }
        return true
    }

    var currentTask: UInt64 { stall_worker_task(worker) }

    /// The label of the thread or of its task; otherwise, if the pool is exhausted, that.
    func readLabel(of beacon: LoopBeacon, into text: UnsafeMutablePointer<CChar>) {
        beacon.readLabel(into: text)
        if text[0] != 0 || stall_task_note_read(stall_worker_task(worker), text) { return }
        let count = exhaustedCount
        if count > 0 { stall_pool_make_label(text, UInt32(count)) }
    }

    private var exhaustedCount: Int {
        group?.exhaustedCount ?? Int(stall_worker_exhausted_count(worker))
    }

    /// All threads of the queue, if no other one is left for a job that waits.
    func forEachMember(_ body: (RegisteredThread) -> Void) {
        guard exhaustedCount > 0 else { return }
        if let group { return group.forEachWorker { visit($0, body) } }
        var number: Int32 = 0
        while number < stall_worker_count() {
            let other = stall_worker_numbered(number)
            number += 1
            if stall_worker_shares_queue(other, worker) { visit(other, body) }
        }
    }

    private func visit(
        _ worker: UnsafeMutablePointer<stall_worker>, _ body: (RegisteredThread) -> Void
    ) {
        let id = ThreadID(rawValue: stall_beacon_thread(worker.pointee.beacon))
        if id.rawValue != 0, let thread = try? RegisteredThread.found(id) { body(thread) }
    }
}
