// Finishes before a fork what it would otherwise meet half done: other threads add, post and signal at any moment, and
// the child has none of them to finish, or to release a lock. So the forking thread holds all locks of all loops over
// the fork.
//
// These run in every fork of the app. They allocate nothing, and no lock is waited for for long: see `lockForFork`.
// The locks of single sources and channels are left out, which are as many as an app likes. (docs/run-loop.md)

internal import CLinux
internal import Glibc
internal import StallModel
internal import Synchronization

enum ForkHandlers {
    /// Installs them, once in the process.
    static func install() { _ = installed }

    private static let installed: Void = {
        // Handlers before a fork are called in reverse order, those after it in order: the generation has changed by
        // then.
        stall_fork_prepare()
        rehearse()
        pthread_atfork(
            {
                // The agent's wait is before the locks: other threads' loops need these.
                stall_fork_begin()
                LivingLoops.holdForFork()
            }, { letGo(isChild: false) }, { letGo(isChild: true) })
    }()

    private static func letGo(isChild: Bool) {
        LivingLoops.letGoAfterFork(isChild: isChild)
    }

    /// Runs what a child runs, with a loop that no thread has. The Swift runtime makes a type's metadata when it is used
    /// first, under a lock. Another thread may have that lock at the fork, and in the child it is never released.
    private static func rehearse() {
        let loop = EventRunLoop(rehearsing: ())
        loop.fireForRehearsal()
        LivingLoops.holdForFork()
        loop.holdForFork()
        LivingLoops.letGo(loop, own: nil, isChild: true)
        LivingLoops.letGoAfterFork(isChild: false)
    }
}

extension LivingLoops {
    /// Takes the lock of every loop, and what is behind it. The order is that of all code: these, a loop's, its parts'.
    static func holdForFork() {
        if forkHolder.take({ loops.lockForFork() }) {
            loops.heldForFork { loops in
                for loop in loops.values { loop._withUnsafeGuaranteedRef { $0.holdForFork() } }
            }
        }
        LoopModeNames.holdForFork()
    }

    /// In the child, the loops of threads that it does not have come to their end.
    static func letGoAfterFork(isChild: Bool) {
        LoopModeNames.letGoAfterFork(isChild: isChild)
        guard forkHolder.release(isChild: isChild) else { return }
        let own = LoopOfThread.ifAny?.toOpaque()
        loops.heldForFork { loops in
            for loop in loops.values {
                loop._withUnsafeGuaranteedRef { letGo($0, own: own, isChild: isChild) }
            }
        }
        loops.unlockAfterFork()
    }

    fileprivate static func letGo(
        _ loop: EventRunLoop, own: UnsafeMutableRawPointer?, isChild: Bool
    ) {
        // A thread without a loop is now the main thread, and has its loop.
        let isOwn = own.map { $0 == Unmanaged.passUnretained(loop).toOpaque() } ?? loop.isMain
        loop.letGoAfterFork(isChild: isChild, isOwn: isOwn, isAdopted: own == nil)
    }
}

extension EventRunLoop {
    /// As if the loop were in the handler of a timer.
    fileprivate func fireForRehearsal() {
        let timer = LoopTimer(after: .zero) { _ in }
        add(timer, toMode: .default)
        add(LoopObserver { _, _ in }, toMode: .common)
        timer.isFiring = true
        timer.places.forEach { $0.pointee.suspend($1) }
    }

    fileprivate func holdForFork() {
        isHeldForFork = lock.lockForFork()
        guard isHeldForFork else { return }
        blocks.holdForFork()
        for items in modes { items.holdForFork() }
    }

    fileprivate func letGoAfterFork(isChild: Bool, isOwn: Bool, isAdopted: Bool) {
        guard isHeldForFork else { return }
        isHeldForFork = false
        for items in modes { items.letGoAfterFork() }
        blocks.letGoAfterFork()
        if isChild {
            if isOwn {
                blocks.repairAfterFork()
                mainQueueDescriptor = -1
                lacksMainQueue = false
                if isAdopted { forgetRuns() }
                for items in modes { items.forgetMainQueue() }
            } else {
                isDead = true
                hasEnded.store(true, ordering: .sequentiallyConsistent)
            }
        }
        lock.unlock()
    }
}

extension EventRunLoop {
    /// In the child of a thread that had no loop and has the main one now: the runs that the parent's main thread was in are
    /// not this thread's. A handler, or a block, that was being called then is over.
    private func forgetRuns() {
        (running, runDepth, drainDepth, isStopRequested) = (nil, 0, 0, false)
        (tookWakeUp, servedTimersLast, isInMainQueue, isNowStale) = (false, false, false, true)
        ignoresWakeUps = true
        phase = .unknown
        spareBatch = nil
        wake.reset()
        readClock()
        stall_beacon_publish(beacon, UInt8(STALL_LOOP_IDLE), now)
        commonObservers.forEach { $0.firing.store(false, ordering: .relaxed) }
        for items in modes {
            items.observers.forEach { $0.firing.store(false, ordering: .relaxed) }
            for timer in items.timers.pointee.firing() {
                endFiring(timer, timer.deadline)
                // The parent's thread has references as well, so this is not the last one.
                if !timer.repeats { _ = invalidateLocked(timer) }
            }
        }
    }
}
