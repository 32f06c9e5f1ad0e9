// A loop as the executor of actors: their jobs run on its thread, in its common modes. A job is a promise to a task, so
// one that the loop cannot run any more is run elsewhere: a dropped job would leave its task waiting forever.

internal import Dispatch
internal import Synchronization

extension EventRunLoop: SerialExecutor {
    /// Takes a job of an actor that runs on this loop:
    ///
    ///     actor Library {
    ///         let thread: LoopThread
    ///         nonisolated var unownedExecutor: UnownedSerialExecutor { thread.loop.asUnownedSerialExecutor() }
    ///     }
    ///
    /// Once the loop's thread has ended, the jobs run one after another on a queue of their own.
    public func enqueue(_ job: consuming ExecutorJob) {
        take(UnownedJob(job), of: nil)
    }

    /// Runs a job in the common modes, or elsewhere when the loop has ended.
    ///
    /// - Parameter executor: The task's preferred executor; nil for the job of an actor.
    func take(_ job: UnownedJob, of executor: LoopTaskExecutor?) {
        let job = LoopJob(job, on: self, executor)
        post(inMode: .common) { job.run() }
    }

    /// The loop as the executor of an actor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// The check of `assumeIsolated` of such an actor: code on the loop's thread is isolated to its actors. Ends the
    /// process with a sentence where it is not.
    public func checkIsolated() {
        guard isIsolatingCurrentContext() == true else {
            fatalError("this code does not run on the thread of the actor's run loop")
        }
    }

    /// Whether the calling code is isolated to the actors of this loop.
    public func isIsolatingCurrentContext() -> Bool? {
        isCurrent || DispatchQueue.getSpecific(key: Self.endedLoop) == number
    }

    private static let endedLoop = DispatchSpecificKey<UInt64>()

    /// The queue where the jobs of an ended loop run.
    fileprivate func queueAfterEnd() -> DispatchQueue {
        jobsAfterEnd.withLock { queue in
            if let queue { return queue }
            let made = DispatchQueue(label: "jobs of an ended run loop")
            made.setSpecific(key: Self.endedLoop, value: number)
            queue = made
            return made
        }
    }
}

/// A job that is run exactly once: by the block that holds it, or elsewhere when the loop drops that block.
private final class LoopJob: @unchecked Sendable {
    /// Nil once it has begun. Touched by the loop's thread, or by the last one that holds this.
    private var job: UnownedJob?
    private let loop: EventRunLoop
    private let executor: LoopTaskExecutor?

    init(_ job: UnownedJob, on loop: EventRunLoop, _ executor: LoopTaskExecutor?) {
        self.job = job
        self.loop = loop
        self.executor = executor
    }

    deinit {
        guard let job else { return }
        loop.queueAfterEnd().async { [loop, executor] in Self.run(job, on: loop, executor) }
    }

    func run() {
        guard let job = job.take() else { return }
        Self.run(job, on: loop, executor)
    }

    private static func run(
        _ job: UnownedJob, on loop: EventRunLoop, _ executor: LoopTaskExecutor?
    ) {
        if let executor {
            job.runSynchronously(on: executor.asUnownedTaskExecutor())
        } else {
            job.runSynchronously(on: loop.asUnownedSerialExecutor())
        }
    }
}
