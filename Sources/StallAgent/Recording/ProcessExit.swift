// At `exit` and at the return from `main`: records the true ends of stalls that are open or have just ended. The exit
// waits for that, up to a limit.
//
// Another thread may never release the heap's lock: that is why a supervisor exits. So what an exit needs is made when an
// agent starts. From then on nothing here allocates, frees, or takes a lock.

internal import CLinux
internal import Glibc
internal import StallDetection
internal import StallModel
internal import Synchronization

/// The monitors that must be stopped when the process exits.
enum ProcessExit {
    /// One monitor of a list that only grows: entries are reused, never freed.
    private final class Entry: Sendable {
        /// The address of a retained monitor: an app may release its own reference, and the agent continues. 0: free.
        let monitor = Atomic<UInt>(0)
        /// The same, once the exit stops it.
        let stopping = Atomic<UInt>(0)
        /// The process that started the monitor's threads. A forked child inherits the list, but none of them.
        let process = Atomic<Int32>(0)
        let next = Atomic<UInt>(0)
    }

    private static let first = Atomic<UInt>(0)
    private static let isRegistered = Atomic<Bool>(false)
    private static let isDone = Atomic<Bool>(false)
    /// How long an exit waits for the store.
    private static let limit = Duration.milliseconds(100)

    /// Whether an exit has waited long enough: the app's objects are being destroyed, so none of its code may be called.
    static var isOver: Bool { isDone.load(ordering: .acquiring) }

    /// Stops the monitor when the process exits.
    static func stop(_ monitor: StallMonitor) {
        let address = UInt(bitPattern: Unmanaged.passRetained(monitor).toOpaque())
        if !reuseEntry(for: address) { addEntry(for: address) }
        if !isRegistered.exchange(true, ordering: .acquiringAndReleasing) {
            atexit { ProcessExit.stopAll() }
        }
    }

    /// Releases the monitor, unless an exit holds it now.
    static func forget(_ monitor: StallMonitor) {
        let pointer = Unmanaged.passUnretained(monitor)
        let address = UInt(bitPattern: pointer.toOpaque())
        forEach { entry in
            let taken = entry.monitor.compareExchange(
                expected: address, desired: 0, ordering: .acquiringAndReleasing)
            if taken.exchanged { pointer.release() }
        }
    }

    private static func stopAll() {
        let process = getpid()
        let deadline = MonotonicInstant(nanoseconds: stall_monotonic_ns()) + limit
        var isStopping = false
        forEach { entry in
            guard entry.process.load(ordering: .acquiring) == process else { return }
            let address = entry.monitor.exchange(0, ordering: .acquiringAndReleasing)
            guard let monitor = monitor(at: address) else { return }
            if !isStopping { stall_process_record_note_exit() }
            isStopping = true
            entry.stopping.store(address, ordering: .releasing)
            monitor.beginStop()
        }
        // A stuck disk or callback must not keep the process alive. Reports that are not in the store by then are in
        // the process record.
        forEach { entry in
            let address = entry.stopping.load(ordering: .acquiring)
            if let monitor = monitor(at: address) { _ = monitor.waitForEnd(until: deadline) }
        }
        isDone.store(true, ordering: .releasing)
    }

    // MARK: The list

    private static func forEach(_ body: (Entry) -> Void) {
        var address = first.load(ordering: .acquiring)
        while let pointer = UnsafeRawPointer(bitPattern: address) {
            let entry = Unmanaged<Entry>.fromOpaque(pointer).takeUnretainedValue()
            body(entry)
            address = entry.next.load(ordering: .acquiring)
        }
    }

    private static func monitor(at address: UInt) -> StallMonitor? {
        UnsafeRawPointer(bitPattern: address).map {
            Unmanaged<StallMonitor>.fromOpaque($0).takeUnretainedValue()
        }
    }

    private static func reuseEntry(for monitor: UInt) -> Bool {
        var isFound = false
        forEach { entry in
            guard !isFound else { return }
            isFound =
                entry.monitor.compareExchange(
                    expected: 0, desired: monitor, ordering: .acquiringAndReleasing
                ).exchanged
            if isFound { entry.process.store(getpid(), ordering: .releasing) }
        }
        return isFound
    }

    private static func addEntry(for monitor: UInt) {
        let entry = Entry()
        entry.process.store(getpid(), ordering: .relaxed)
        entry.monitor.store(monitor, ordering: .relaxed)
        let address = UInt(bitPattern: Unmanaged.passRetained(entry).toOpaque())
        var head = first.load(ordering: .acquiring)
        while true {
            entry.next.store(head, ordering: .relaxed)
            let (exchanged, original) = first.compareExchange(
                expected: head, desired: address, ordering: .acquiringAndReleasing)
            if exchanged { return }
            head = original
        }
    }
}
