// A run loop: waits in the kernel for timers, sources, descriptors and blocks, and calls their handlers on its thread.
// The semantics are those of CFRunLoop, rule by rule; the conformance suite plays every rule on both.
//
//     one iteration:  beforeTimers, beforeSources, blocks, signalled sources, (blocks), beforeWaiting, sleep,
//                     afterWaiting, then one of: due timers, a ready descriptor, the main queue; blocks
//
// The loop publishes its state in a beacon (stall_beacon.h), so that a watchdog can distinguish waiting from stalling.
// Files: +Modes (the items of modes), +Running (runs and iterations), +Waiting, +Callouts, +Perform.

package import CLinux
internal import Dispatch
internal import Glibc
public import StallModel
internal import Synchronization

/// The run loop of one thread, with the semantics of CFRunLoop.
///
/// Every thread has one loop, made when it first asks for ``current``. It lives until its thread ends; then its sources
/// are cancelled and blocks that did not run are dropped.
///
/// **Thread safety:** only the loop's own thread may run it. Everything else is allowed on any thread.
public final class EventRunLoop: @unchecked Sendable {
    /// How ready descriptors are served.
    public enum DescriptorDelivery: Sendable {
        /// One descriptor an iteration, as CFRunLoop does, so that timers and sources get their turn in between.
        case strict
        /// All that the kernel reports at once, in one iteration. A handler may find that an earlier one of
        /// the same iteration has already used up what made its descriptor ready.
        case batch
    }

    /// The thread that runs it.
    public let thread: ThreadID

    /// How ready descriptors are served, from the next time that the loop asks for them. Any thread may set it.
    public var descriptorDelivery: DescriptorDelivery {
        get { deliversBatches.load(ordering: .relaxed) ? .batch : .strict }
        set { deliversBatches.store(newValue == .batch, ordering: .relaxed) }
    }
    let deliversBatches = Atomic<Bool>(false)

    /// How many blocks the loop runs in one pass, at least 1; the others wait for the next one, which comes after what is due or
    /// ready by then. Without a limit, as in CFRunLoop, a flood of blocks delays everything else. Any thread may set it.
    public var blocksPerPass: Int {
        get { mostBlocksPerPass.load(ordering: .relaxed) }
        set { mostBlocksPerPass.store(max(1, newValue), ordering: .relaxed) }
    }
    let mostBlocksPerPass = Atomic<Int>(.max)

    /// The state that the loop publishes for a watchdog. Lives at least as long as the loop; retain it to keep it
    /// longer.
    package let beacon: UnsafeMutablePointer<stall_beacon>

    /// Its number among all loops the process ever had.
    let number = LivingLoops.newNumber()
    let wake: WakeSignal
    /// The thread has ended: no block is taken any more.
    let hasEnded = Atomic<Bool>(false)
    /// The forking thread has the lock; see ``ForkHandlers``.
    @exclusivity(unchecked) var isHeldForFork = false
    let blocks = BlockQueue()
    /// Ends a sleep at a deadline on kernels whose waits take no nanoseconds, and reports one to another loop. -1 while
    /// it is not needed, and when the process had none left.
    @exclusivity(unchecked) var timerDescriptor: CInt = -1
    /// Its waits have a timeout instead: one system call less a sleep.
    @exclusivity(unchecked) var waitsPrecisely: Bool
    /// How late the kernel may end such a wait, and when that was last looked up; the loop's thread only.
    @exclusivity(unchecked) var slack = stall_slack()
    @exclusivity(unchecked) var slackTime: UInt64 = 0
    /// The thread that its descriptors are marked for: its own, which has another number in a forked child.
    @exclusivity(unchecked) var descriptorOwner: pid_t
    /// The process that the descriptors are of.
    @exclusivity(unchecked) var forkGeneration = stall_fork_generation()
    /// When they were last renewed; the loop's thread only.
    @exclusivity(unchecked) var lastRenewal: UInt64 = 0
    let isMain: Bool
    /// No reference that may be the last one is released while it is held: a `deinit` of the app's may need it.
    let lock = LoopLock()

    // Guarded by `lock`. Not checked for exclusive access at run time: the lock, and the one thread, see to that, and
    // the checks would cost as much as the rest of an iteration.
    /// The modes that exist, the default mode first; by name as soon as there are many.
    @exclusivity(unchecked) var modes: [ModeItems]
    var modesByName: [LoopMode: ModeItems] = [:]
    let defaultItems = ModeItems(.default, isCommon: true)
    var commonModes: Set<LoopMode> = [.default, .tracking]
    /// The common modes that exist. The tracking mode exists from its first use.
    @exclusivity(unchecked) var commonModeItems: [ModeItems]
    @exclusivity(unchecked) var commonObservers = ItemList<LoopObserver>()
    @exclusivity(unchecked) var commonTimers = ItemList<LoopTimer>()
    @exclusivity(unchecked) var commonSources = ItemList<LoopSource>()
    @exclusivity(unchecked) var commonDescriptors = ItemList<DescriptorSource>()
    var idleWork: [LoopMode: IdleWork] = [:]
    @exclusivity(unchecked) var isDead = false
    /// The mode that a loop of another kind waits for.
    @exclusivity(unchecked) var embeddedItems: [ModeItems] = []
    /// The innermost run: its mode, and whether `stop()` was called for it.
    @exclusivity(unchecked) var running: ModeItems?
    @exclusivity(unchecked) var isStopRequested = false
    @exclusivity(unchecked) var runDepth = 0
    /// How many drains of blocks are under way, in runs that are nested in a block.
    @exclusivity(unchecked) var drainDepth = 0
    /// Wake-ups do not count now: from the end of a wait to the next iteration, and between runs.
    @exclusivity(unchecked) var ignoresWakeUps = true
    /// The instant that the timer descriptor is set to; 0 or the largest number when it is not.
    @exclusivity(unchecked) var armedDeadline: UInt64 = 0

    // Touched by the loop's thread alone, and often: far from what others read with every post.
    /// The last reading of the clock, and whether a callout has run since.
    @exclusivity(unchecked) var now: UInt64 = 0
    @exclusivity(unchecked) var isNowStale = true
    @exclusivity(unchecked) var phase = LoopPhase.unknown
    @exclusivity(unchecked) var isInMainQueue = false
    @exclusivity(unchecked) var servedTimersLast = false
    /// The main queue was ready with a batch of descriptors, which came first.
    @exclusivity(unchecked) var owesMainQueue = false
    /// The set of the mode has nothing to report now; known until a handler runs.
    @exclusivity(unchecked) var isSetQuiet = false
    /// The innermost run has taken a wake-up.
    @exclusivity(unchecked) var tookWakeUp = false
    /// For batches of events; nil while one is being served.
    @exclusivity(unchecked) var spareBatch: DescriptorBatch?
    /// -1 for all loops but the main one. A forked child has none: Dispatch cannot be used there, and the descriptor is the
    /// parent's.
    @exclusivity(unchecked) var mainQueueDescriptor: CInt = -1
    /// There is a main queue, but no descriptor for it yet.
    @exclusivity(unchecked) var lacksMainQueue = false

    /// Runs the jobs of actors once the thread has ended.
    let jobsAfterEnd = Locked<DispatchQueue?>(nil)

    /// The loop of the main thread. Any thread may ask for it.
    public static let main = EventRunLoop(thread: ThreadID(rawValue: getpid()), isMain: true)

    private static let mainExists = Atomic<Bool>(false)
    /// Whether the main loop, if it was made, sleeps until an event comes. Does not make it.
    package static var isMainWaiting: Bool {
        mainExists.load(ordering: .acquiring)
            && stall_beacon_word(main.beacon) >> 56 == UInt64(STALL_LOOP_WAITING)
    }

    /// The loop of the calling thread, made at the first call.
    ///
    /// A loop that gets no descriptors from the kernel works nevertheless: it looks at everything every few
    /// milliseconds, and asks for descriptors again each second. ``makeCurrent()`` throws instead.
    public static var current: EventRunLoop { LoopOfThread.current }

    /// The loop of the calling thread, with everything that it needs to sleep in the kernel.
    ///
    /// - Throws: ``LoopError/system(call:errno:)`` when the process or the machine has no descriptor left (`EMFILE`, `ENFILE`),
    ///   or the kernel no memory (`ENOMEM`). A loop that the thread had before stays as it was.
    public static func makeCurrent() throws(LoopError) -> EventRunLoop {
        let loop = LoopOfThread.current
        try loop.requireDescriptors()
        return loop
    }

    init(thread: ThreadID, isMain: Bool) {
        guard let beacon = stall_beacon_create() else {
            fatalError("no memory for a run loop's beacon")
        }
        self.thread = thread
        self.isMain = isMain
        self.beacon = beacon
        ForkHandlers.install()
        descriptorOwner = thread.rawValue
        wake = WakeSignal(thread: thread.rawValue)
        waitsPrecisely = stall_can_wait_precisely() && !Self.hasOldWaits
        stall_beacon_publish_thread(beacon, thread.rawValue)
        modes = [defaultItems]
        commonModeItems = [defaultItems]
        if !waitsPrecisely { timerDescriptor = makeTimerDescriptor() }
        if isMain { takeMainQueue() }
        LivingLoops.add(self)
        if isMain { Self.mainExists.store(true, ordering: .releasing) }
    }

    /// A loop that no thread has, and nothing finds: see ``ForkHandlers``. It has no descriptors.
    init(rehearsing: Void) {
        guard let beacon = stall_beacon_create() else {
            fatalError("no memory for a run loop's beacon")
        }
        self.beacon = beacon
        (thread, isMain, descriptorOwner) = (ThreadID(rawValue: 0), true, 0)
        wake = WakeSignal(thread: 0)
        waitsPrecisely = true
        modes = [defaultItems]
        commonModeItems = [defaultItems]
    }

    deinit {
        stall_descriptor_close_for(timerDescriptor, descriptorOwner)
        spareBatch?.deallocate()
        stall_beacon_release(beacon)
    }

    /// Whether the calling thread is the loop's own.
    public var isCurrent: Bool { LoopOfThread.isCurrent(self) }

    /// Whether a run of it is inside of another one. On the loop's own thread.
    var isNested: Bool { runDepth > 1 }

    /// The mode of the innermost run; nil while the loop does not run.
    public var currentMode: LoopMode? {
        lock.lock()
        defer { lock.unlock() }
        return running?.mode
    }

    /// Whether the loop is in the kernel, waiting for something to do. Any thread may call it.
    public var isWaiting: Bool { wake.isSleeping }

    /// Ends the loop's sleep, so that it looks at its blocks and signalled sources.
    ///
    /// Wake-ups coalesce. One that comes while the loop is awake and about to look anyway is dropped, as is one that
    /// comes while the loop does not run.
    public func wakeUp() { wake.wakeUp() }

    /// Ends the innermost run. Does nothing while the loop does not run.
    public func stop() {
        lock.lock()
        let isRunning = running != nil
        if isRunning { isStopRequested = true }
        lock.unlock()
        if isRunning { wake.wakeToStop() }
    }

    /// The name of the mode that the beacon shows as `number`. Never waits for a lock: nil when it would.
    package func modeName(number: UInt32) -> String? { LoopModeNames.nameIfAvailable(of: number) }

    /// The loop's thread ends: cancels sources, releases everything, drops blocks. The items' handlers may hold the
    /// loop: whatever stays in it would keep it forever.
    func threadEnded() {
        LivingLoops.remove(self)
        lock.lock()
        isDead = true
        hasEnded.store(true, ordering: .sequentiallyConsistent)
        let cancelled = forgetPlaces()
        var contents: [AnyObject] = Array(commonObservers) + Array(commonTimers)
        contents += Array(commonSources) as [AnyObject] + Array(commonDescriptors)
        contents += modes.flatMap { $0.removeAll() }
        let idle = idleWork
        (commonObservers, commonTimers) = (ItemList(), ItemList())
        (commonSources, commonDescriptors) = (ItemList(), ItemList())
        (modes, modesByName, commonModeItems, idleWork) = ([], [:], [], [:])
        embeddedItems = []
        lock.unlock()
        for (source, mode) in cancelled { source.wasCancelled(in: self, mode) }
        withExtendedLifetime((contents, idle)) { dropBlocks() }
    }

    /// No item belongs to the loop any more. Returns the sources that leave a mode by it.
    private func forgetPlaces() -> [(LoopSource, LoopMode)] {
        var cancelled: [(LoopSource, LoopMode)] = []
        func forget(_ observer: LoopObserver) {
            observer.places = []
            observer.owner.disclaim()
        }
        func forget(_ timer: LoopTimer) {
            timer.places.removeAll()
            timer.commonSlot = ItemList<LoopTimer>.none
            timer.owner.disclaim()
        }
        commonObservers.forEach(forget)
        commonTimers.forEach(forget)
        for source in commonSources { takePlaces(of: source.places) }
        for source in commonDescriptors { takePlaces(of: source.places) }
        for items in modes {
            items.observers.forEach(forget)
            items.timers.pointee.forEach(forget)
            for source in items.descriptors { takePlaces(of: source.places) }
            for source in items.sources {
                takePlaces(of: source.places)
                cancelled.append((source, items.mode))
            }
        }
        return cancelled
    }

    /// Releases the blocks of an ended loop, also of one that was posted while it ended.
    func dropBlocks() {
        lock.lock()
        let dropped = blocks.takeEverything()
        lock.unlock()
        withExtendedLifetime(dropped) {}
    }
}
