// The processes that stall. All plants of a process last at the same time, so that it takes little more than one.

internal import CLinux
internal import Glibc
internal import StallAgent
internal import Synchronization

extension PlantingProcess {
    private static func startMonitor(_ path: String) throws -> StallMonitor {
        try StallMonitor.start(
            .init(
                app: "stallctl-doctor", version: stallwatchVersion, store: path,
                threshold: threshold))
    }

    /// - Parameter patience: Above 1, the stalls follow one another: a small CPU quota is too little for all at once.
    func runRecovering(storePath: String, _ patience: Int) throws {
        let monitor = try Self.startMonitor(storePath)
        monitor.watchTasks()
        // Until a job of its priority has run, a task's jobs are not watched.
        usleep(20_000)
        let results = PlantedStalls()
        let lateness = Lateness()
        var open: [() -> Void] = []
        func plant(_ start: () -> () -> Void) {
            let join = start()
            guard patience > 1 else { return open.append(join) }
            join()
            usleep(100_000)
        }
        func plantOnThread(_ plant: Plant, _ body: @escaping @Sendable () -> Void) -> () -> Void {
            let thread = onThread(plant.rawValue, body)
            return { pthread_join(thread, nil) }
        }
        for kind in Self.plantsOnThreads {
            plant { plantOnThread(kind) { results.add(Self.stall(kind, monitor)) } }
        }
        plant { plantOnThread(.loop) { Self.stallInLoop(monitor, results) } }
        plant {
            results.plant(.task) { begin in Task.detached { begin(blockDoctorsTask) } }
        }
        let queue = DispatchQueue(label: "stallctl-doctor")
        monitor.watch(queue, as: Plant.queue.target)
        plant { results.plant(.queue) { begin in queue.async { begin(blockDoctorsQueue) } } }
        for join in open { join() }
        // Alone, since the others need a CPU as well at their start: a thread that lacks one has another cause.
        results.add(Self.stall(.cpu, monitor))
        // A queue's stall has ended when its next probe has run.
        queue.sync {}
        usleep(20_000)
        monitor.stop()
        results.print()
        say(TrialFact.interrupted.line(interruptions.load(ordering: .relaxed)))
        say(TrialFact.late.line(lateness.worst))
    }

    private static let plantsOnThreads: [Plant] = [.sleep, .lock, .ipc, .network]

    /// The calling thread stalls as `plant` says.
    private static func stall(_ plant: Plant, _ monitor: StallMonitor) -> PlantedStall {
        let thread = monitor.watchCurrentThread(as: plant.target)
        func marked(_ body: () -> Duration) -> PlantedStall {
            thread.begin()
            let began = monotonicTime()
            let ended = body()
            thread.end()
            return PlantedStall(plant, duration: ended - began)
        }
        switch plant {
        case .cpu: return marked(computeForDoctor)
        case .lock: return stallAtLock(marked)
        case .ipc: return stallAtPipe(marked)
        case .network: return stallAtSocket(marked)
        default: return marked(sleepForDoctor)
        }
    }

    private static func stallAtLock(_ marked: (() -> Duration) -> PlantedStall) -> PlantedStall {
        let mutex = PlantedMutex()
        let isHeld = DispatchSemaphore(value: 0)
        let holder = onThread("doctor-holder") { _ = mutex.holdForDoctor(isHeld) }
        isHeld.wait()
        defer { pthread_join(holder, nil) }
        return marked(mutex.waitForDoctorsLock)
    }

    private static func stallAtPipe(_ marked: (() -> Duration) -> PlantedStall) -> PlantedStall {
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else {
            return PlantedStall(.ipc, obstacle: "pipe: \(String(cString: strerror(errno)))")
        }
        let (reader, writer) = (ends[0], ends[1])
        let thread = onThread("doctor-writer") { writeLater(writer) }
        defer { pthread_join(thread, nil) }
        return marked { readFromDoctorsPipe(reader) }
    }

    private static func writeLater(_ descriptor: CInt) {
        _ = sleepForDoctor()
        write(descriptor, "x", 1)
    }

    private static func stallAtSocket(_ marked: (() -> Duration) -> PlantedStall) -> PlantedStall {
        switch LoopbackConnection.open() {
        case .failure(let error): return PlantedStall(.network, obstacle: error.description)
        case .success(let connection):
            let thread = onThread("doctor-sender") { writeLater(connection.server) }
            defer { pthread_join(thread, nil) }
            return marked { receiveForDoctor(connection.client) }
        }
    }

    private static func stallInLoop(_ monitor: StallMonitor, _ results: PlantedStalls) {
        let loop = EventRunLoop.current
        monitor.watch(loop, as: Plant.loop.target)
        loop.perform {
            let began = monotonicTime()
            results.add(PlantedStall(.loop, duration: workInDoctorsLoop() - began))
            EventRunLoop.current.stop()
        }
        loop.run()
    }

    func runDying(storePath: String) throws {
        let monitor = try Self.startMonitor(storePath)
        let thread = monitor.watchCurrentThread(as: Plant.stopped.target)
        thread.begin()
        let began = monotonicTime()
        let ended = workWhileStopped()
        thread.end()
        say(PlantedStall(.stopped, duration: ended - began).line)
        monitor.onStall(at: .open) { report in
            if report.loop == Plant.killed.target { say("stored") }
        }
        let last = monitor.watchCurrentThread(as: Plant.killed.target)
        last.begin()
        _ = stallUntilKilled()
        last.end()
    }

    func runWaiting(_ patience: Int) {
        var (one, other): ([CInt], [CInt]) = ([0, 0], [0, 0])
        guard pipe(&one) == 0, pipe(&other) == 0 else { return }
        // A wait for a single descriptor could be a part of the work.
        var sources = [one[0], other[0]].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        // The agent is loaded at the first wait, which takes a while.
        let limit = monotonicTime() + .seconds(3)
        // It waits on for a while, in which the agent finds names and cause.
        let turnsAfter = 45 * max(1, patience)
        let turns = turnsAfter + 15
        var turnsLeft = turns
        while turnsLeft > 0 {
            poll(&sources, 2, 10)
            guard turnsLeft < turns || Self.hasWatchdog || monotonicTime() > limit else { continue }
            turnsLeft -= 1
            guard turnsLeft == turnsAfter else { continue }
            let began = monotonicTime()
            let ended = workBetweenDoctorsWaits()
            say(PlantedStall(.waits, duration: ended - began).line)
        }
    }

    /// Whether an agent watches this process.
    private static var hasWatchdog: Bool {
        guard let folder = opendir("/proc/self/task") else { return false }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let id = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if firstLineOfFile("/proc/self/task/\(id)/comm") == "stall-watchdog" { return true }
        }
        return false
    }
}

/// Writes a line to standard output at once.
private func say(_ line: String) {
    let text = line + "\n"
    write(STDOUT_FILENO, text, text.utf8.count)
}

/// A thread that sleeps for a moment again and again, until the process ends.
private final class Lateness: Sendable {
    private let nanoseconds = Atomic<Int>(0)

    init() {
        _ = onThread("doctor-clock") {
            while true {
                let began = monotonicTime()
                usleep(2_000)
                let late = Int((monotonicTime() - began - .milliseconds(2)) / .nanoseconds(1))
                self.nanoseconds.max(late, ordering: .relaxed)
            }
        }
    }

    /// By how much the longest sleep so far was longer than it should be.
    var worst: Int { nanoseconds.load(ordering: .relaxed) }
}

private final class PlantedStalls: Sendable {
    private let all = Mutex<[PlantedStall]>([])

    func add(_ stall: PlantedStall) { all.withLock { $0.append(stall) } }

    /// - Parameter start: Runs what it is given where the plant belongs.
    /// - Returns: Waits for its end.
    func plant(
        _ plant: Plant, _ start: (@escaping @Sendable (@Sendable () -> Duration) -> Void) -> Void
    ) -> () -> Void {
        let group = DispatchGroup()
        group.enter()
        start { body in
            let began = monotonicTime()
            self.add(PlantedStall(plant, duration: body() - began))
            group.leave()
        }
        return { group.wait() }
    }

    func print() {
        for stall in all.withLock({ $0 }) { say(stall.line) }
    }
}
