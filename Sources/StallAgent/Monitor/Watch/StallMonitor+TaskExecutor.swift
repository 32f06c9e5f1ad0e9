// Threads of their own for tasks that prefer them: nothing that blocks on the shared pool delays them, and the reverse.

internal import CLinux
internal import Dispatch
internal import Glibc
internal import StallDetection
internal import StallModel
internal import StallRunLoop
internal import Synchronization

extension StallMonitor {
    /// An executor with as many threads as there are CPUs, whose jobs are watched: one that occupies its thread for at
    /// least the threshold is a stall of `task executor`.
    ///
    ///     try await withTaskExecutorPreference(monitor.taskExecutor) { try await app.runService() }
    ///
    /// The threads are started by the first use and live as long as the process: they run jobs also after ``stop()`` and
    /// if the agent is disabled, unwatched. Jobs run in the order in which they were enqueued, whatever their priority.
    /// The threshold is that of the configuration or of its policy for `task executor`.
    public var taskExecutor: StallTaskExecutor {
        executor.withLock { executor in
            // A forked child has none of its parent's threads.
            if let executor, executor.generation == stall_fork_generation() { return executor }
            let new = StallTaskExecutor()
            executor = new
            watch(new)
            return new
        }
    }

    private func watch(_ executor: StallTaskExecutor) {
        guard agent != nil, !watches.isClosed else { return }
        for (number, worker) in executor.workers.enumerated() {
            watch(
                WorkerThreadTarget(worker, of: executor), LoopBeacon(worker.pointee.beacon),
                as: "task executor", threshold: nil, key: .executorThread(number), thread: nil)
        }
    }
}

/// Runs jobs of tasks on threads of its own, from ``StallMonitor/taskExecutor``.
///
/// **Thread safety:** any thread may use it.
public final class StallTaskExecutor: TaskExecutor, WorkerGroup, @unchecked Sendable {
    // Unchecked because of the pointers: workers live as long as the process and are written by their threads.
    let workers: [UnsafeMutablePointer<stall_worker>]
    let generation = stall_fork_generation()
    /// The number of its threads.
    public var threadCount: Int { workers.count }
    /// Not ``AgentLocked``: every job takes it, and a forked child has an executor of its own.
    private let jobs = Locked(JobList())
    private let available = DispatchSemaphore(value: 0)
    private let waiting = Atomic<Int>(0)

    init(threads count: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))) {
        workers = (0..<count).compactMap { _ in stall_worker_create() }
        for (number, worker) in workers.enumerated() { start(number, worker) }
        // Only a task can find out where threads store their task.
        Task.detached { stall_jobs_learn_task() }
    }

    /// Takes a job of a task.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        waiting.add(1, ordering: .relaxed)
        jobs.withLock { $0.append(job) }
        available.signal()
    }

    /// The thread never ends, so that this object lives as long as tasks may refer to it.
    private func start(_ number: Int, _ worker: UnsafeMutablePointer<stall_worker>) {
        let context = Unmanaged.passRetained(Thread(executor: self, number: number, worker: worker))
        var handle = pthread_t()
        let error = pthread_create(
            &handle, nil,
            { context in
                let thread = Unmanaged<Thread>.fromOpaque(context!).takeUnretainedValue()
                stall_thread_set_name("task-exec-\(thread.number)")
                thread.executor.run(thread.worker)
            }, context.toOpaque())
        if error == 0 { pthread_detach(handle) } else { context.release() }
    }

    private final class Thread: @unchecked Sendable {
        // Unchecked because of the pointer; see above.
        let executor: StallTaskExecutor
        let number: Int
        let worker: UnsafeMutablePointer<stall_worker>

        init(
            executor: StallTaskExecutor, number: Int, worker: UnsafeMutablePointer<stall_worker>
        ) {
            self.executor = executor
            self.number = number
            self.worker = worker
        }
    }

    private func run(_ worker: UnsafeMutablePointer<stall_worker>) -> Never {
        stall_worker_sit_down(worker)
        while true {
            available.wait()
            guard let job = jobs.withLock({ $0.popFirst() }) else { continue }
            waiting.subtract(1, ordering: .relaxed)
            stall_worker_complete(worker)
            stall_worker_begin(worker, nil, job.address)
            job.runSynchronously(on: asUnownedTaskExecutor())
            stall_worker_end(worker)
        }
    }

    var exhaustedCount: Int {
        guard waiting.load(ordering: .relaxed) > 0 else { return 0 }
        var index = 0
        while index < workers.count {
            guard stall_worker_is_busy(workers[index]) else { return 0 }
            index += 1
        }
        return workers.count
    }

    func forEachWorker(_ body: (UnsafeMutablePointer<stall_worker>) -> Void) {
        var index = 0
        while index < workers.count {
            body(workers[index])
            index += 1
        }
    }
}

/// Jobs in the order of their arrival.
private struct JobList {
    private var jobs: [UnownedJob] = []
    private var first = 0

    mutating func append(_ job: UnownedJob) { jobs.append(job) }

    mutating func popFirst() -> UnownedJob? {
        guard first < jobs.count else { return nil }
        defer {
            first += 1
            if first == jobs.count {
                jobs.removeAll(keepingCapacity: jobs.capacity < 4096)
                first = 0
            } else if first >= 1024, first * 2 > jobs.count {
                jobs.removeFirst(first)
                first = 0
            }
        }
        return jobs[first]
    }
}

extension UnownedJob {
    /// Its address, which is its task's unless it is an actor's.
    fileprivate var address: UInt64 {
        withUnsafeBytes(of: self) { UInt64(UInt($0.load(as: UInt.self))) }
    }
}
