// Turns the watchdog's records into durable reports: first the raw stack, then function names. All of it happens on the
// recorder's own thread; the watchdog only writes into a ring of bounded size.

internal import CLinux
internal import Logging
internal import StallCapture
internal import StallCause
internal import StallDetection
internal import StallModel
internal import StallStore
internal import StallSymbols

/// A request to the recorder.
enum RecorderRequest: Sendable {
    case openStore
    case record(PendingReport)
    case measured(PendingMeasure)
    case limit(RateLimits, DebuggerPolicy)
    case reportCalls(CallReporting)
}

/// The source of calls that the app forbids, and how their targets are called.
struct CallReporting: Sendable {
    let source: any ForbiddenCallSource
    let loopName: @Sendable (_ target: UInt) -> String?
}

/// The recorder's thread and its input queues.
final class Recorder: Sendable {
    let handover: Handover
    let notifier: StallNotifier
    let end = RecorderEnd()
    /// Requests of app threads. The watchdog must not use it, because it has a lock.
    private let requests = BoundedQueue<RecorderRequest>(capacity: 64)
    private let thread: AgentThread

    /// Starts the thread; nil if the system refuses.
    init?(
        _ configuration: StallMonitor.Configuration, watchdog: Watchdog, expected: ExpectedScopes
    ) {
        guard let wakeup = stall_wakeup_create(), let ring = HandoverRing() else { return nil }
        let handover = Handover(ring: ring, wakeup: wakeup)
        watchdog.setCollector(wakeup)
        self.handover = handover
        let (requests, notifier) = (
            requests, StallNotifier(deadline: configuration.callbackDeadline)
        )
        let end = end
        self.notifier = notifier
        requests.push(.openStore)
        let thread = AgentThread(name: "stall-recorder") {
            stall_fork_begin_work()
            defer { stall_fork_end_work() }
            var recording = Recording(
                configuration, notifier: notifier, ring: handover.ring, watchdog: watchdog,
                expected: expected)
            recording.run(requests, handover.wakeup, until: end)
            let waits = stall_fork_begin_wait()
            end.runTeardown()
            stall_fork_end_wait(waits)
            end.reach(wasFlushed: recording.finish())
        }
        guard let thread else { return nil }
        self.thread = thread
    }

    /// Changes the limits, from the next report on.
    func limit(_ limits: RateLimits, _ debuggerPolicy: DebuggerPolicy) {
        requests.push(.limit(limits, debuggerPolicy))
        stall_wakeup_signal(handover.wakeup)
    }

    /// Reports the calls of a source, from now on and until the end.
    func reportCalls(
        of source: any ForbiddenCallSource, loopName: @escaping @Sendable (UInt) -> String?
    ) {
        requests.push(.reportCalls(CallReporting(source: source, loopName: loopName)))
        stall_wakeup_signal(handover.wakeup)
    }

    /// Makes the recorder write pending reports, run the callbacks that are due, end the agent's other parts and then
    /// itself. Neither allocates nor waits.
    func beginStop() {
        end.request()
        stall_wakeup_signal(handover.wakeup)
    }

    /// Waits for the end. Nil if it has not come by the deadline; else whether everything was written.
    func waitForEnd(until deadline: MonotonicInstant) -> Bool? {
        // The caller may be the recorder's own log handler.
        thread.isCurrent ? nil : end.wait(until: deadline)
    }

    /// Detaches the thread: it will not be joined.
    func detach() { thread.detach() }
}

/// Where the page of open stalls may be lost, a thread copies it to a file beside the store.
private func keepPageCopy(ofMonitor monitor: Int32, _ run: ProcessRun, besideStore store: String) {
    let isInvoked = processEnvironment(["INVOCATION_ID"])["INVOCATION_ID"]?.isEmpty == false
    guard stall_page_copy_is_needed(isInvoked),
        stall_page_copy_prepare(monitor, run.id.words.high, run.id.words.low, store)
    else { return }
    let thread = AgentThread(name: "stall-copy") { stall_page_copy_run(monitor) }
    // It ends by itself when the monitor's page does.
    if let thread { thread.detach() } else { stall_page_copy_cancel(monitor) }
}

/// The recorder's own state, confined to its thread.
private struct Recording {
    let configuration: StallMonitor.Configuration
    let notifier: StallNotifier
    let symbolizer: Symbolizer
    let run: ProcessRun
    let hosting: [CauseEvidence]
    var store: StoreConnection
    var limiter: ReportLimiter
    /// Of calls that the app forbids: they do not use up what stalls may.
    private var callLimiter: ReportLimiter
    private var calls: CallReporting?
    private let ring: HandoverRing
    private let watchdog: Watchdog
    private let expected: ExpectedScopes
    private var health = WatchdogHealth()
    /// Whether it was logged that jobs of tasks were not watched for a while.
    private var hasLostJobs = false
    /// The images that were searched for CPython.
    private var searched: Set<Image> = []
    /// Whether it was logged that a fork had waited in vain.
    private var hasVainFork = false
    /// Requests from the ring, in order of arrival.
    private var waiting: [RecorderRequest] = []
    private static let waitingLimit = 256
    /// The stalls that have ended and whose reports may not be written yet, with when they began.
    private var ended: [(report: UniqueID, began: UInt64)] = []
    /// The number of stalls that could not be handed over.
    private var lost = 0
    /// The first loop of a list of those whose end did not fit into the ring; 0 for none.
    private var unannounced: UInt = 0
    /// The symbolication time of open reports so far.
    var namingTime: [UniqueID: Duration] = [:]
    /// Names found so far, for reports passed to callbacks. The store has them all.
    var names: [CodeLocation: [Frame]] = [:]
    /// Names of code that was compiled at run time.
    private var generatedNames = PerfMap()
    /// Locations whose lines and inlined calls are still to be found: the budget was used up. The store has what is
    /// known, as not looked up.
    private var unfinished = Backlog()

    private struct Backlog {
        var locations: Set<CodeLocation> = []
        /// Doubled at each attempt: one unit of debug information may take longer than the first.
        var budget = Duration.zero
    }

    init(
        _ configuration: StallMonitor.Configuration, notifier: StallNotifier, ring: HandoverRing,
        watchdog: Watchdog, expected: ExpectedScopes
    ) {
        self.configuration = configuration
        self.ring = ring
        self.watchdog = watchdog
        self.expected = expected
        self.notifier = notifier
        var options = SymbolizerOptions()
        options.findsLines = configuration.findsLines
        options.budget = configuration.lineBudget
        symbolizer = Symbolizer(options: options)
        limiter = ReportLimiter(
            limits: configuration.limits, debuggerPolicy: configuration.debuggerPolicy)
        callLimiter = limiter
        hosting =
            HostingFacts(
                processEnvironment(HostingFacts.variables), containerID: ContainerID.current()
            ).evidence
        let executable = ImageTable.current().images.first
        run = .current(
            app: configuration.app, version: configuration.version, buildID: executable?.buildID)
        stall_process_record_prepare(watchdog.processRecord, run.id.words.high, run.id.words.low)
        keepPageCopy(ofMonitor: watchdog.processRecord, run, besideStore: configuration.store)
        store = StoreConnection(
            path: configuration.store, limits: StoreLimits(configuration.storeLimits), run: run,
            logger: configuration.logger)
    }

    /// Handles requests until the end is requested.
    mutating func run(
        _ requests: BoundedQueue<RecorderRequest>, _ wakeup: UnsafeMutablePointer<stall_wakeup>,
        until end: RecorderEnd
    ) {
        stall_unwind_tables_prefetch()
        while true {
            if ImageTable.rememberLoaded() { findInterpreter() }
            while let request = requests.poll() ?? nextHandedOver() ?? nextCall() {
                handle(request)
            }
            watchdog.collect()
            if lost > 0 { countLosses() }
            store.countLosses(watchdog.takeRefused(), reason: .blind)
            if end.isRequested { return }
            let deadline = checkWatchdog()
            guard unfinished.locations.isEmpty else {
                findLines()
                continue
            }
            stall_wakeup_prepare(wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT))
            guard requests.isEmpty, ring.isEmpty, calls?.source.isEmpty ?? true,
                !watchdog.hasSpent, !end.isRequested
            else {
                stall_wakeup_prepare(wakeup, UInt32(STALL_WATCHDOG_AWAKE))
                continue
            }
            let waits = stall_fork_begin_wait()
            stall_wakeup_wait(wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT), deadline.nanoseconds)
            stall_fork_end_wait(waits)
        }
    }

    /// Looks for CPython among the images: the program itself or a library of it.
    private mutating func findInterpreter() {
        for image in ImageTable.current().images
        where image.name.hasPrefix("python") || image.name.hasPrefix("libpython3") {
            guard searched.insert(image).inserted else { continue }
            let symbols = symbolizer.exports(named: PythonInterpreter.symbols, of: image)
            let addresses = image.loadAddress..<max(image.loadAddress, image.endAddress)
            PythonInterpreter.use(image: addresses) { symbols[$0] }
        }
    }

    /// The oldest request from the ring. Superseded reports are left out.
    private mutating func nextHandedOver() -> RecorderRequest? {
        drain()
        return waiting.isEmpty ? nil : waiting.removeFirst()
    }

    /// The oldest call that the app forbids, as a report.
    private func nextCall() -> RecorderRequest? {
        while let calls, let call = calls.source.next() {
            // Other monitors may watch other threads.
            guard let loop = calls.loopName(call.target) else { continue }
            return .record(PendingReport(call, loop: loop))
        }
        return nil
    }

    private mutating func drain() {
        while waiting.count < Self.waitingLimit, let record = ring.next() {
            let targetMonitor = Unmanaged<TargetMonitor>.fromOpaque(
                UnsafeRawPointer(bitPattern: record.sender)!)
            let request = targetMonitor._withUnsafeGuaranteedRef { $0.assembly.take(record) }
            let isLast = record.kind == .unwatched
            ring.release()
            if let request { enqueue(request) }
            guard isLast else { continue }
            targetMonitor.release()
        }
        releaseUnannounced()
        lost += ring.takeDropped()
    }

    /// Releases the loops whose end did not fit into the ring, once their records have been read.
    private mutating func releaseUnannounced() {
        if unannounced == 0 { unannounced = ring.takeUnannounced() }
        guard unannounced != 0, ring.isEmpty else { return }
        while let pointer = UnsafeRawPointer(bitPattern: unannounced) {
            let ended = Unmanaged<TargetMonitor>.fromOpaque(pointer)
            unannounced = ended._withUnsafeGuaranteedRef { $0.nextUnannounced }
            ended.release()
        }
    }

    private mutating func enqueue(_ request: RecorderRequest) {
        if case .record(let later) = request {
            let superseded = waiting.firstIndex {
                if case .record(let earlier) = $0 { earlier.id == later.id } else { false }
            }
            if let superseded { return waiting[superseded] = request }
        }
        waiting.append(request)
    }

    /// Logs once if the watchdog is overdue. Returns when to check again.
    private mutating func checkWatchdog() -> MonotonicInstant {
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        let delay = watchdog.delay(at: now)
        switch health.poll(delay: delay, at: now) {
        case .away(let time):
            configuration.logger.warning(
                "the watchdog has not come back for \(time): stalls are missed meanwhile")
            store.countLosses(1, reason: .blind)
        case .isBack: configuration.logger.notice("the watchdog is back")
        case nil: break
        }
        if stall_jobs_restore() {
            store.countLosses(1, reason: .blind)
            if !hasLostJobs {
                configuration.logger.notice(
                    "another tool had removed the hook for jobs of tasks; it is set again")
            }
            hasLostJobs = true
        }
        if stall_fork_take_vain() > 0, !hasVainFork {
            hasVainFork = true
            configuration.logger.notice(
                "a fork has not waited long enough for the agent's threads: its child may hang")
        }
        return health.nextPoll(delay: delay, isWaiting: watchdog.isWaiting, at: now)
    }

    mutating func handle(_ request: RecorderRequest) {
        switch request {
        case .openStore: store.open()
        case .record(let pending): record(pending)
        case .measured(let pending): store.record(LoopExposure(pending, run: run))
        case .limit(let limits, let debuggerPolicy):
            limiter.limits = limits
            limiter.debuggerPolicy = debuggerPolicy
            callLimiter.limits = limits
        case .reportCalls(let reporting):
            calls?.source.end()
            calls = reporting
        }
        notifyDurable()
    }

    /// Calls callbacks only for reports that are in the store.
    private mutating func notifyDurable() {
        for report in store.takeDurable() { notifier.notify(report) }
    }

    /// Continues the search for lines and inlined calls, which the names of groups depend on.
    private mutating func findLines() {
        unfinished.budget = min(unfinished.budget * 2, Self.longestSearch)
        let (frames, rest) = symbolizer.resolve(
            Array(unfinished.locations), images: ImageTable.current(), budget: unfinished.budget)
        // One that takes longer than this stays as it is.
        let isStuck = unfinished.budget == Self.longestSearch && rest == unfinished.locations
        // A location whose image was unloaded meanwhile keeps its names, and may be resolved from its file later.
        let found = frames.filter { location, frames in
            (isStuck || !rest.contains(location))
                && (frames.last?.function != nil || names[location]?.last?.function == nil)
        }
        names.merge(found) { $1 }
        store.symbolize(found, areFinal: true)
        unfinished.locations = isStuck ? [] : rest
    }

    /// The longest search without checking for requests, in CPU time.
    private static let longestSearch = Duration.seconds(10)
    /// How long `stop` waits for lines.
    private static let longestEnd = Duration.seconds(1)

    /// Writes what is left. Returns whether all of it was written.
    mutating func finish() -> Bool {
        while let request = nextHandedOver() ?? nextCall() { handle(request) }
        calls?.source.end()
        store.flushForEnd()
        notifyDurable()
        let waits = stall_fork_begin_wait()
        notifier.stop()
        stall_fork_end_wait(waits)
        let limit = ContinuousClock.now + Self.longestEnd
        while !unfinished.locations.isEmpty, !stall_process_record_is_exiting(),
            ContinuousClock.now < limit
        {
            findLines()
        }
        countLosses()
        let isWritten = store.close()
        if isWritten {
            stall_process_record_remove(watchdog.processRecord)
        } else {
            stall_process_record_release(watchdog.processRecord, store.knowsRun)
        }
        return isWritten
    }

    private mutating func countLosses() {
        store.countLosses(lost, reason: .dropped)
        store.countLosses(notifier.takeMissed(), reason: .callback)
        store.countLosses(watchdog.takeRefused(), reason: .blind)
        lost = 0
        if let calls { store.countLosses(calls.source.takeDropped(), reason: .dropped) }
    }

    private mutating func record(_ pending: PendingReport) {
        let images = ImageTable.current()
        var pending = pending
        if configuration.symbolizes { pending.nameGeneratedCode(by: &generatedNames, images) }
        var report = StallReport(
            pending, run: run, images: images, naming: namingTime[pending.id] ?? .zero)
        if let call = pending.call {
            if configuration.symbolizes {
                nameScripts(of: &pending)
                resolve(Set(report.locations), images)
            }
            report.leaveOutFunction(called: call.name, names)
            guard isReported(report) else { return }
            return write(&report, &pending, images)
        }
        pending.declare(&report, in: expected)
        let answer = limiter.answer(
            report, place: report.place,
            at: MonotonicInstant(nanoseconds: stall_monotonic_ns()))
        if let count = answer.count {
            let stalls = SuppressedStalls(
                run: run, loop: report.loop, place: answer.place, reason: count.reason,
                count: count.stalls, total: count.time)
            store.countSuppressed(stalls, threshold: report.threshold)
        }
        guard answer.isReported else {
            let began = pending.incident.began.nanoseconds
            if report.state == .open {
                let none = STALL_REPORT_COUNTED
                stall_process_record_name(watchdog.processRecord, began, none, none)
            } else {
                stall_process_record_close(watchdog.processRecord, began)
            }
            return
        }
        write(&report, &pending, images)
    }

    private mutating func write(
        _ report: inout StallReport, _ pending: inout PendingReport, _ images: ImageTable
    ) {
        if report.state != .open { namingTime[report.id] = nil }
        countLosses()
        guard configuration.symbolizes else {
            pending.explain(&report, images: images) { _ in [] }
            report.cause?.evidence += hosting
            keep(report, images, of: pending)
            return store.notifyOnceDurable(report)
        }
        if names.count > 20_000 { names = [:] }
        nameScripts(of: &pending)
        let locations = Set(report.locations + pending.suspectLocations(images))
        let unknown = locations.filter { names[$0] == nil }
        if !unknown.isEmpty {
            // Symbolication takes time, and the cause needs the names: first store what is known.
            keep(report, images, of: pending)
            let began = ContinuousClock.now
            resolve(unknown, images)
            if report.state == .open {
                namingTime[report.id, default: .zero] += began.duration(to: .now)
            }
        }
        pending.explain(&report, images: images) { frames(of: $0) }
        report.cause?.evidence += hosting
        keep(report, images, of: pending)
        let unnamed = store.unsymbolized(report.locations)
        if !unnamed.isEmpty {
            for areFinal in [true, false] {
                let chosen = unnamed.filter { unfinished.locations.contains($0) != areFinal }
                store.symbolize(
                    Dictionary(chosen.map { ($0, names[$0] ?? [Frame($0)]) }) { first, _ in first },
                    areFinal: areFinal)
            }
        }
        guard notifier.isWanted(report.state) else { return }
        for index in report.samples.indices {
            report.samples[index].frames = frames(of: report.samples[index].locations)
        }
        for index in report.threads.indices {
            report.threads[index].frames = frames(of: report.threads[index].locations)
        }
        store.notifyOnceDurable(report)
    }

    private mutating func nameScripts(of pending: inout PendingReport) {
        for script in pending.scripts() {
            for isGuessed in [false, true] {
                var location = script.location
                location.isGuessed = isGuessed
                names[location] = [script.frame]
            }
        }
    }

    /// Finds the names of locations that have none yet.
    private mutating func resolve(_ locations: Set<CodeLocation>, _ images: ImageTable) {
        let unknown = locations.filter { names[$0] == nil }
        guard !unknown.isEmpty else { return }
        let (frames, rest) = symbolizer.resolve(
            Array(unknown), images: images, budget: configuration.lineBudget)
        names.merge(frames) { $1 }
        guard !rest.isEmpty else { return }
        unfinished.locations.formUnion(rest)
        unfinished.budget = max(configuration.lineBudget, .milliseconds(1))
    }

    /// Whether a call that may block gets a report: no function on its stack is allowed to, and the limits are not reached.
    private mutating func isReported(_ report: StallReport) -> Bool {
        let frames = frames(of: report.locations)
        if frames.areOfFoundationsLoop
            || calls.map({ frames.contains(where: $0.source.allows) }) == true
        {
            return false
        }
        let answer = callLimiter.answer(
            report, place: report.place, at: MonotonicInstant(nanoseconds: stall_monotonic_ns()))
        if !answer.isReported { store.countLosses(1, reason: .suppressed) }
        return answer.isReported
    }

    /// Writes the report. Before that, notes its id in the process record, because the process may be killed before the
    /// write.
    private mutating func keep(
        _ report: StallReport, _ images: ImageTable, of pending: PendingReport
    ) {
        let began = pending.incident.began.nanoseconds
        stall_process_record_name(
            watchdog.processRecord, began, report.id.words.high, report.id.words.low)
        // Nothing would give a script's names once the process has ended.
        let scripts = report.locations.filter { names[$0]?.first?.isScript == true }
        let known = Dictionary(scripts.map { ($0, names[$0] ?? []) }) { first, _ in first }
        store.record(report, images: images, names: known)
        // A report is kept again when its cause is known.
        if report.state != .open, ended.last?.report != report.id {
            ended.append((report.id, began))
        }
        freeSlots()
    }

    /// Frees the slots of stalls whose end is in the store, or was given up.
    private mutating func freeSlots() {
        while let oldest = ended.first,
            store.hasWritten(oldest.report) || ended.count > Int(STALL_PROCESS_RECORD_SLOTS)
        {
            stall_process_record_close(watchdog.processRecord, oldest.began)
            ended.removeFirst()
        }
    }

    private func frames(of locations: [CodeLocation]) -> [Frame] {
        locations.flatMap { location in
            (names[location] ?? [Frame(location)]).map { frame in
                var frame = frame
                frame.isGuessed = location.isGuessed
                return frame
            }
        }
    }
}
