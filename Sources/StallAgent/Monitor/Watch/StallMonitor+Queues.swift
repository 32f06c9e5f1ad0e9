// Dispatch queues, and what runs on them: the main actor and the cooperative pool.

public import Dispatch
internal import StallDetection
internal import StallModel

extension StallMonitor {
    /// Watches a Dispatch queue until the monitor stops or the queue is deallocated.
    ///
    /// A stall is one item that runs for at least the threshold. Whichever thread runs it is found, including one in
    /// `sync`. While the queue is idle it is polled at an eighth of the threshold and not touched; while it is busy,
    /// one probe at a time waits in it. A suspended queue is not stalled. On a concurrent queue, long barriers are
    /// found, and that none of its items is run.
    ///
    /// `DispatchQueue.main` is watched on the thread that serves it: the main thread with a run loop, or a worker under
    /// `dispatchMain()`. Watching begins when it is first served.
    ///
    /// - Parameters:
    ///   - queue: The queue. It is not retained.
    ///   - name: The target's name in reports.
    ///   - threshold: How long an item may run; the configuration's threshold if nil. At least 20 ms.
    public func watch(_ queue: DispatchQueue, as name: String, threshold: Duration? = nil) {
        guard agent != nil, let beacon = SharedBeacon() else { return }
        let target = DispatchQueueTarget(queue, beacon: beacon) { queue, probe in
            queue.async(execute: probe)
        }
        watch(
            target, target, beacon, as: name, threshold: threshold,
            key: .queue(queue.dispatchObject.map { UInt(bitPattern: $0) } ?? 0))
    }

    /// Watches the main actor: a stall is a job that runs for at least the threshold without suspending.
    ///
    /// Under `async main` that work leaves the main thread at the first suspension; reports show the thread it is on.
    /// Watching begins when the main actor first runs a job.
    ///
    /// - Parameter threshold: How long it may be busy; the configuration's threshold if nil. At least 20 ms.
    public func watchMainActor(threshold: Duration? = nil) {
        guard agent != nil, let beacon = SharedBeacon() else { return }
        let target = DispatchQueueTarget(.main, beacon: beacon) { _, probe in
            Task { @MainActor in probe() }
        }
        watch(target, target, beacon, as: "MainActor", threshold: threshold, key: .mainActor)
    }

    /// Watches the threads of the Swift cooperative pool. A stall: a task waits for a thread for at least the
    /// threshold, because code that does not suspend occupies all of them.
    ///
    /// The report's threads are the members of the pool with their stacks. Only tasks of default priority are watched.
    ///
    /// - Parameter threshold: How long a task may wait; the configuration's threshold if nil. At least 20 ms.
    public func watchCooperativePool(threshold: Duration? = nil) {
        guard agent != nil, let beacon = SharedBeacon() else { return }
        let target = CooperativePoolTarget(beacon: beacon)
        watch(
            target, target, beacon, as: "cooperative pool", threshold: threshold,
            key: .cooperativePool)
    }

    private func watch(
        _ target: any MonitoredTarget, _ probed: any ProbeTarget, _ beacon: SharedBeacon,
        as name: String, threshold: Duration?, key: RegistrationKey
    ) {
        guard let agent else { return }
        logUnknownQueueLayout(to: configuration.logger)
        let probe = QueueProbe(
            probed, beacon: beacon, threshold: effectiveThreshold(threshold, of: name))
        watch(
            target, LoopBeacon(beacon.pointer), as: name, threshold: threshold, key: key,
            thread: nil,
            detach: { agent.probeThread.remove(probe) })
        agent.probeThread.add(probe)
    }
}
