// Adds up the waits for a CPU of threads that come and go. Pure: MemberDelays.swift reads them.

internal import StallModel

/// The waits of a set of threads: a sum that only grows. A thread's waits count from when it is first noted, and a wait
/// that ends between two listings of the threads is not lost.
struct DelayTotal: ~Copyable {
    /// More threads are not counted.
    static let limit = 32

    private struct Member {
        var thread: ThreadID
        var runDelay: Duration
    }
    private let members = UnsafeMutablePointer<Member>.allocate(capacity: limit)
    private var count = 0
    private(set) var sum = Duration.zero

    deinit { members.deallocate() }

    /// - Parameter runDelay: All waits of the thread since it started.
    mutating func note(_ runDelay: Duration, of thread: ThreadID) {
        for index in 0..<count where members[index].thread == thread {
            // The counter of another thread, with the id of one that ended, is smaller.
            sum += max(.zero, runDelay - members[index].runDelay)
            members[index].runDelay = runDelay
            return
        }
        guard count < Self.limit else { return }
        (members + count).initialize(to: Member(thread: thread, runDelay: runDelay))
        count += 1
    }

    /// Forgets threads that have ended; their waits stay in the sum.
    mutating func forget(allBut threads: UnsafeBufferPointer<ThreadID>) {
        var kept = 0
        for index in 0..<count {
            for other in 0..<threads.count where threads[other] == members[index].thread {
                members[kept] = members[index]
                kept += 1
                break
            }
        }
        count = kept
    }
}
