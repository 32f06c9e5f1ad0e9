// A loop as the preference of tasks: their jobs, and those of the default actors that they call, run on its thread.

/// Runs the jobs of tasks on a loop's thread, in its common modes.
///
///     try await withTaskExecutorPreference(loop.taskExecutor) { await render() }
///
/// Once the loop's thread has ended, the jobs run one after another on a queue of their own.
///
/// **Thread safety:** any thread may use it.
public final class LoopTaskExecutor: TaskExecutor {
    private let loop: EventRunLoop

    init(_ loop: EventRunLoop) { self.loop = loop }

    /// Takes a job of a task.
    public func enqueue(_ job: consuming ExecutorJob) {
        loop.take(UnownedJob(job), of: self)
    }
}

extension EventRunLoop {
    /// The executor with which `withTaskExecutorPreference` and `Task(executorPreference:)` run tasks on this loop's
    /// thread.
    public var taskExecutor: LoopTaskExecutor { LoopTaskExecutor(self) }
}
