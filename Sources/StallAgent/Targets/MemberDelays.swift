// How long the threads of a pool waited for a CPU. Nothing here allocates after `init`, because the watchdog calls it.

internal import StallCapture
internal import StallModel

/// The wait for a CPU of all threads that may take a target's work.
struct GroupDelay {
    /// Their waits since some fixed time, added up. The kernel adds a wait when it is over.
    var runDelay = Duration.zero
    /// One of them is runnable without a CPU now.
    var waitsForCPU = false
}

/// Reads the waits of a pool's threads.
struct MemberDelays: ~Copyable {
    private let readers = UnsafeMutablePointer<ThreadStatReader>.allocate(
        capacity: DelayTotal.limit)
    private let ids = UnsafeMutablePointer<ThreadID>.allocate(capacity: DelayTotal.limit)
    private var count = 0
    private var listed: MonotonicInstant?
    private var total = DelayTotal()

    deinit {
        readers.deinitialize(count: count)
        readers.deallocate()
        ids.deallocate()
    }

    /// Reads the waits of all threads.
    ///
    /// - Parameter members: Passes each thread of the pool to its argument. Called once a second, because it reads all
    ///   threads of the process.
    mutating func read(
        at now: MonotonicInstant, _ members: ((ThreadID) -> Void) -> Void
    ) -> GroupDelay {
        if listed.map({ now - $0 >= .seconds(1) }) ?? true {
            listed = now
            list(members)
        }
        var waitsForCPU = false
        for index in 0..<count {
            // The state before the counter, which then has every wait that is over by now.
            if !waitsForCPU { waitsForCPU = readers[index].scheduling().waitsForCPU }
            if let delay = readers[index].runDelay() { total.note(delay, of: ids[index]) }
        }
        return GroupDelay(runDelay: total.sum, waitsForCPU: waitsForCPU)
    }

    private mutating func list(_ members: ((ThreadID) -> Void) -> Void) {
        readers.deinitialize(count: count)
        let (readers, ids) = (readers, ids)
        var found = 0
        members { id in
            guard found < DelayTotal.limit else { return }
            (readers + found).initialize(to: ThreadStatReader(id))
            ids[found] = id
            found += 1
        }
        count = found
        total.forget(allBut: UnsafeBufferPointer(start: ids, count: found))
    }
}
