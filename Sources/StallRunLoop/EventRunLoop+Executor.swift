// A loop as the executor of actors: their jobs run on its thread, in its common modes.

extension EventRunLoop: SerialExecutor {
    /// Takes a job of an actor that runs on this loop:
    ///
    ///     actor Library {
    ///         let thread: LoopThread
    ///         nonisolated var unownedExecutor: UnownedSerialExecutor { thread.loop.asUnownedSerialExecutor() }
    ///     }
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        post(inMode: .common) { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// What an actor gives as its executor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// What `assumeIsolated` of such an actor asks: code on the loop's thread is isolated to its actors.
    public func checkIsolated() {
        precondition(isCurrent, "this code does not run on the thread of the actor's run loop")
    }
}
