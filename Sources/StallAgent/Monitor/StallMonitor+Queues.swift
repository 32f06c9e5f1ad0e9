// Dispatch queues, and what runs on them: MainActor and the cooperative pool.

public import Dispatch
internal import StallDetection
internal import StallModel

extension StallMonitor {
    /// Watches a Dispatch queue until the monitor stops or the app lets go of the queue.
    ///
    /// A stall is one item that runs for at least the threshold. The thread that runs it is found whichever it is, also
    /// one that waits in `sync`. While the queue is idle it is looked at, at an eighth of the threshold, and not
    /// touched; while it works, one probe at a time waits in it. A suspended queue is not stalled. Of a concurrent
    /// queue, barriers are seen, and that nothing of it is run.
    ///
    /// `DispatchQueue.main` is watched as whatever serves it: a run loop on the main thread, or under `dispatchMain()`
    /// a worker. Watching begins when it is served for the first time.
    ///
    /// - Parameters:
    ///   - queue: The queue. It is not kept alive.
    ///   - name: What reports call it.
    ///   - threshold: How long an item may run; the configuration's threshold when nil. At least 20 ms.
    public func watch(_ queue: DispatchQueue, as name: String, threshold: Duration? = nil) {
        guard agent != nil, let beacon = SharedBeacon() else { return }
        let target = DispatchQueueTarget(queue, beacon: beacon) { queue, probe in
            queue.async(execute: probe)
        }
        watch(
            target, target, beacon, as: name, threshold: threshold,
            key: .queue(queue.dispatchObject.map { UInt(bitPattern: $0) } ?? 0))
    }

    /// Watches the main actor: a stall is a piece of its work that runs for at least the threshold without suspending.
    ///
    /// Under `async main` that work leaves the main thread at the first suspension; reports show the thread it is on.
    /// Watching begins when the main actor first serves a task.
    ///
    /// - Parameter threshold: How long it may be busy; the configuration's threshold when nil. At least 20 ms.
    public func watchMainActor(threshold: Duration? = nil) {
        guard agent != nil, let beacon = SharedBeacon() else { return }
        let target = DispatchQueueTarget(.main, beacon: beacon) { _, probe in
            Task { @MainActor in probe() }
        }
        watch(target, target, beacon, as: "MainActor", threshold: threshold, key: .mainActor)
    }

    /// Watches the threads of the Swift cooperative pool: a stall is when a task waits for a thread and none takes one
    /// for at least the threshold, because all of them are held by code that does not suspend.
    ///
    /// The report's threads are the members of the pool with their stacks. Tasks of default priority are what is
    /// watched.
    ///
    /// - Parameter threshold: How long a task may wait; the configuration's threshold when nil. At least 20 ms.
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
        let probe = QueueProbe(
            probed, beacon: beacon, threshold: effectiveThreshold(threshold, of: name))
        watch(
            target, LoopBeacon(beacon.pointer), as: name, threshold: threshold, key: key,
            thread: nil,
            detach: { agent.probeThread.remove(probe) })
        agent.probeThread.add(probe)
    }
}
