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

/// Adds up the waits of a pool's threads; continuous when threads come and go.
struct MemberDelays: ~Copyable {
    private static let limit = 32
    private let readers = UnsafeMutablePointer<ThreadStatReader>.allocate(capacity: limit)
    private var count = 0
    private var listed: MonotonicInstant?
    /// The waits of threads that ended, less those of new ones from before they were found.
    private var shift = Duration.zero
    private var total = Duration.zero

    deinit {
        readers.deinitialize(count: count)
        readers.deallocate()
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
        var delay = GroupDelay(runDelay: shift)
        for index in 0..<count {
            delay.runDelay += readers[index].runDelay() ?? .zero
            if !delay.waitsForCPU, readers[index].scheduling().waitsForCPU {
                delay.waitsForCPU = true
            }
        }
        // A thread that ended meanwhile takes its waits with it.
        delay.runDelay = max(delay.runDelay, total)
        total = delay.runDelay
        return delay
    }

    private mutating func list(_ members: ((ThreadID) -> Void) -> Void) {
        readers.deinitialize(count: count)
        let readers = readers
        var found = 0
        members { id in
            guard found < Self.limit else { return }
            (readers + found).initialize(to: ThreadStatReader(id))
            found += 1
        }
        count = found
        var sum = Duration.zero
        for index in 0..<count { sum += readers[index].runDelay() ?? .zero }
        shift = total - sum
    }
}
