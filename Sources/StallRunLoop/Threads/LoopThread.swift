// A thread that lives for its loop: it sleeps until it gets a task, and ends when it is stopped.

internal import CLinux
internal import Glibc
internal import Synchronization

/// A thread kept alive by its run loop, which runs tasks in the order they are submitted.
///
/// Every task that was submitted runs, also those that wait when the thread is stopped. Releasing the last reference
/// stops the thread and waits for it.
///
/// **Thread safety:** any thread may use it, its own included.
public final class LoopThread: Sendable {
    /// The thread's loop. It ends with the thread.
    public let loop: EventRunLoop

    /// 63: stopped; 62...0: how many threads are handing over a task. The end is posted behind all tasks: by
    /// `stop()` if no thread is handing one over, else by the last of them.
    private let gate = Atomic<UInt64>(0)
    private static let isStopping: UInt64 = 1 << 63
    private let isEndPosted = Atomic<Bool>(false)
    /// The process that has the thread.
    private let forkGeneration = stall_fork_generation()
    /// Taken by the one who joins it.
    private let thread: Locked<pthread_t?>
    private let body: ThreadBody

    /// Starts the thread.
    ///
    /// - Parameter name: The thread's name in debuggers and `top -H`; cut to 15 bytes, which is all that Linux keeps.
    /// - Throws: ``LoopError/system(call:errno:)`` when the system has no thread to give, or no descriptors for its
    /// loop.
    public convenience init(name: String = "loop") throws(LoopError) {
        try self.init(ThreadBody(name: name, nice: nil), stackSize: nil)
    }

    /// Starts the thread with a stack and a priority of its own.
    ///
    /// - Parameters:
    ///   - name: The thread's name in debuggers and `top -H`; cut to 15 bytes, which is all that Linux keeps.
    ///   - stackSize: In bytes, rounded up to whole pages; nil for the system's default, mostly 8 MB. At least 128 KB, of
    ///     which the loop and its dump use less than half, and the minimum of the process's threads, mostly 24 KB.
    ///   - nice: The thread's nice value, from -20 (first) to 19 (last); nil for that of the calling thread.
    /// - Throws: ``LoopError/system(call:errno:)``: `EINVAL` from `pthread_attr_setstacksize` for a stack that is too
    /// small, `EACCES`
    ///   from `setpriority` for a nice value below the caller's without the right to it; and what ``init(name:)``
    /// throws.
    public convenience init(name: String = "loop", stackSize: Int?, nice: Int? = nil)
        throws(LoopError)
    {
        try self.init(ThreadBody(name: name, nice: nice), stackSize: stackSize)
    }

    /// With 16 KB, which the system accepts, the lookup of a type's metadata runs over the end of the stack; the
    /// dump of a debug build needs more than 48 KB. In glibc, thread-local variables are in the stack too.
    static func smallestStack(_ attributes: inout pthread_attr_t) -> Int {
        typealias Minimum = @convention(c) (UnsafePointer<pthread_attr_t>) -> Int
        let own = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "__pthread_get_minstack")
        return 131_072 + (own.map { unsafeBitCast($0, to: Minimum.self)(&attributes) } ?? 0)
    }

    private init(_ body: ThreadBody, stackSize: Int?) throws(LoopError) {
        self.body = body
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackSize {
            let page = Int(sysconf(CInt(_SC_PAGESIZE)))
            let (rounded, overflow) = max(0, stackSize).addingReportingOverflow(page - 1)
            let size = rounded / page * page
            let error =
                overflow || size < Self.smallestStack(&attributes)
                ? EINVAL : pthread_attr_setstacksize(&attributes, size)
            guard error == 0 else {
                throw .system(call: "pthread_attr_setstacksize", errno: error)
            }
        }
        let argument = Unmanaged.passRetained(body)
        var thread = pthread_t()
        let error = pthread_create(
            &thread, &attributes,
            {
                Unmanaged<ThreadBody>.fromOpaque($0!).takeRetainedValue().run()
                return nil
            }, argument.toOpaque())
        guard error == 0 else {
            argument.release()
            throw .system(call: "pthread_create", errno: error)
        }
        guard body.started.wait(), let loop = body.loop else {
            pthread_join(thread, nil)
            throw body.failure ?? .stopped
        }
        self.loop = loop
        self.thread = Locked(thread)
    }

    deinit { stop() }

    /// Adds a task; it runs on the thread after all that were submitted before.
    ///
    /// - Throws: ``LoopError/stopped`` once `stop()` was called. The task has then not been taken.
    public func submit(_ task: sending @escaping () -> Void) throws(LoopError) {
        let isTaken = beginSubmission()
        defer { endSubmission() }
        guard isTaken else { throw .stopped }
        loop.post(inMode: .common, task)
    }

    /// False once `stop()` was called. Ended by `endSubmission` in either case.
    func beginSubmission() -> Bool {
        gate.add(1, ordering: .acquiringAndReleasing).oldValue & Self.isStopping == 0
    }

    func endSubmission() {
        if gate.subtract(1, ordering: .acquiringAndReleasing).newValue == Self.isStopping {
            postEnd()
        }
    }

    private func postEnd() {
        guard !isEndPosted.exchange(true, ordering: .acquiringAndReleasing) else { return }
        body.finish(loop)
    }

    /// Takes no more tasks, runs those that were submitted, ends the thread and waits for that. On the thread itself it
    /// cannot wait: it returns at once, and the thread ends after the task that called it. The same on the thread of
    /// another
    /// `LoopThread` that this one waits for, directly or through others. In a forked child, which does not have the
    /// thread, it does nothing.
    public func stop() {
        guard forkGeneration == stall_fork_generation() || loop.isCurrent else { return }
        let before = gate.bitwiseOr(Self.isStopping, ordering: .acquiringAndReleasing).oldValue
        if before == 0 { postEnd() }
        let thread = thread.withLock { $0.take() }
        guard !loop.isCurrent, let wait = WaitForThread(loop) else {
            if let thread { pthread_detach(thread) }
            return
        }
        if let thread { pthread_join(thread, nil) } else { _ = body.ended.wait() }
        wait.end()
    }
}

/// The wait of a loop's thread for the end of another one. Two that waited for each other would wait forever.
private struct WaitForThread {
    /// By the number of the loop whose thread waits: the loop whose thread it waits for.
    private static let waits = Locked<[UInt64: UInt64]>([:])

    /// 0 for a thread that has no loop, which is not waited for here.
    private let waiting: UInt64

    /// Nil when the thread of `loop` waits for the calling one.
    init?(_ loop: EventRunLoop) {
        let own = LoopOfThread.ifAny?._withUnsafeGuaranteedRef { $0.number } ?? 0
        waiting = own
        guard own != 0 else { return }
        let isCycle = Self.waits.withLock { waits in
            var next: UInt64? = loop.number
            while let number = next, number != own { next = waits[number] }
            if next == nil { waits[own] = loop.number }
            return next != nil
        }
        if isCycle { return nil }
    }

    func end() {
        guard waiting != 0 else { return }
        _ = Self.waits.withLock { $0.removeValue(forKey: waiting) }
    }
}

/// The body of the thread. It does not keep its `LoopThread` alive.
private final class ThreadBody: @unchecked Sendable {
    let started = Completion()
    let ended = Completion()
    /// Both are written by the new thread before `started`, and read by its maker after it.
    private(set) var loop: EventRunLoop?
    private(set) var failure: LoopError?

    private let name: String
    private let nice: Int?
    /// Touched by the thread alone.
    private var isFinished = false

    init(name: String, nice: Int?) {
        self.name = name
        self.nice = nice
    }

    func run() {
        stall_name_this_thread(name)
        let loop: EventRunLoop
        do throws(LoopError) {
            if let nice, stall_set_nice(CInt(clamping: nice)) != 0 {
                throw .system(call: "setpriority", errno: errno)
            }
            loop = try EventRunLoop.makeCurrent()
        } catch {
            failure = error
            started.finish(done: false)
            return
        }
        loop.add(LoopSource { _ in }, toMode: .default)
        self.loop = loop
        started.finish(done: true)
        // A task may stop the loop; that ends one run, not the thread.
        while !isFinished { loop.run() }
        ended.finish(done: true)
    }

    /// Ends the loop behind all tasks.
    func finish(_ loop: EventRunLoop) {
        loop.post(inMode: .common) { [self] in end(loop) }
    }

    /// A task may be running the loop itself: then every nested run is ended in turn. By a timer that is due, because
    /// a block that is added by a block does not keep the loop from falling asleep.
    private func end(_ loop: EventRunLoop) {
        if loop.isNested {
            loop.perform(after: .zero, inMode: .common) { [self] in end(loop) }
        } else {
            isFinished = true
        }
        loop.stop()
    }
}
