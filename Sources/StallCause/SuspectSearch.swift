// Finds the threads that may hold the lock that a thread waits for, and what those wait for in turn. Function names are
// unknown here, so every thread whose id the memory around the futex may contain is a suspect; the waiter's stack later
// rules out all but one.

internal import CLinux
internal import Glibc
package import StallModel

private let futexWait: UInt32 = 0
private let futexLock: UInt32 = 6
private let futexWaitBitset: UInt32 = 9
private let futexLock2: UInt32 = 13
private let ownerMask: UInt32 = 0x3fff_ffff

/// The words behind a futex that would contain a thread's id in each kind of lock.
///
/// Where the C library was tried at the start and has another layout, there is none.
///
/// **Source:** glibc 2.36, `struct __pthread_mutex_s` and `struct __pthread_rwlock_arch_t`; futex(2), "FUTEX_LOCK_PI".
func possibleOwners(
    of futex: WaitedFutex
) -> [(field: LockSuspect.Field, owner: ThreadID)] {
    var owners: [(field: LockSuspect.Field, owner: ThreadID)] = []
    futex.words.withUnsafeBufferPointer { words in
        forEachPossibleOwner(
            operation: futex.operation, words, drainer: futex.drainer?.rawValue ?? 0
        ) { owners.append(($0, $1)) }
    }
    return owners
}

/// Does not allocate.
private func forEachPossibleOwner(
    operation: UInt32, _ words: UnsafeBufferPointer<UInt32>, drainer: Int32,
    _ body: (LockSuspect.Field, ThreadID) -> Void
) {
    func offer(_ field: LockSuspect.Field, _ index: Int, _ isKnown: Bool = true) {
        guard isKnown, index < words.count else { return }
        let id = Int32(words[index] & ownerMask)
        if id > 0 { body(field, ThreadID(rawValue: id)) }
    }
    if drainer > 0 { body(.queueState, ThreadID(rawValue: drainer)) }
    switch operation & 127 {
    case futexLock, futexLock2: offer(.word, 0)
    case futexWait, futexWaitBitset:
        offer(.mutexOwner, 2, stall_mutex_layout_is_known())
        offer(.rwlockWriterFromWriter, 3, stall_rwlock_layout_is_known())
        offer(.rwlockWriterFromReader, 4, stall_rwlock_layout_is_known())
        offer(.word, 0)
    default: break
    }
}

/// Follows the owners of what a thread waits for, and of what they wait for. Its memory is allocated once; a search
/// does not allocate.
package final class SuspectSearch {
    private static let limit = 8
    /// A thread that waits for a futex: the stalled one, or an owner.
    private struct Waiter {
        var thread: ThreadID
        var snapshot: stall_wait_snapshot
    }
    private let waiters = UnsafeMutablePointer<Waiter>.allocate(capacity: limit + 1)
    private let owners = UnsafeMutablePointer<ThreadID>.allocate(capacity: limit)
    private let snapshot = WaitSnapshot()

    package init() {}

    deinit {
        waiters.deallocate()
        owners.deallocate()
    }

    /// Receives the results. An owner is visited before the first suspicion of it.
    package protocol Visitor {
        /// An owner, with its own wait. Capture its stack now, unless it is the stalled thread itself.
        func owner(_ thread: ThreadID, _ snapshot: WaitSnapshot, isStalledThread: Bool)
        func suspect(
            waiter: ThreadID, address: UInt64, field: LockSuspect.Field, owner: ThreadID)
    }

    /// Nearest first. Owners that are not threads of this process are left out.
    package func run(
        behind first: WaitSnapshot, of thread: ThreadID, _ visitor: some Visitor
    ) {
        guard first.isOfFutex else { return }
        waiters[0] = Waiter(thread: thread, snapshot: first.pointer.pointee)
        var (waiterCount, ownerCount, found, index) = (1, 0, 0, 0)
        while index < waiterCount, found < 2 * Self.limit {
            let waiter = waiters[index]
            index += 1
            let arguments = waiter.snapshot.thread.arguments
            withUnsafeBytes(of: waiter.snapshot.futex_words) { bytes in
                let words = UnsafeBufferPointer(
                    start: bytes.baseAddress!.assumingMemoryBound(to: UInt32.self),
                    count: Int(waiter.snapshot.futex_word_count))
                forEachPossibleOwner(
                    operation: UInt32(truncatingIfNeeded: arguments.1), words,
                    drainer: waiter.snapshot.drainer
                ) { field, owner in
                    if !isKnown(owner, ownerCount) {
                        guard ownerCount < Self.limit, stall_task_exists(owner.rawValue) else {
                            return
                        }
                        var reader = ThreadStateReader(owner)
                        reader.snapshot(into: snapshot)
                        visitor.owner(owner, snapshot, isStalledThread: owner == thread)
                        owners[ownerCount] = owner
                        ownerCount += 1
                        if owner != thread, snapshot.isOfFutex {
                            waiters[waiterCount] = Waiter(
                                thread: owner, snapshot: snapshot.pointer.pointee)
                            waiterCount += 1
                        }
                    }
                    visitor.suspect(
                        waiter: waiter.thread, address: arguments.0, field: field, owner: owner)
                    found += 1
                }
            }
        }
    }

    /// Runs one search for a thread that waits for itself, so that the Swift runtime creates its metadata at first use
    /// now.
    package func warmUp(_ thread: ThreadID, _ snapshot: WaitSnapshot, _ visitor: some Visitor) {
        snapshot.clear()
        snapshot.pointer.pointee.detail = STALL_WAIT_FUTEX
        snapshot.pointer.pointee.thread.arguments.1 = UInt64(futexLock)
        snapshot.pointer.pointee.futex_words.0 = UInt32(bitPattern: thread.rawValue)
        snapshot.pointer.pointee.futex_word_count = 1
        run(behind: snapshot, of: thread, visitor)
    }

    private func isKnown(_ owner: ThreadID, _ count: Int) -> Bool {
        var index = 0
        while index < count {
            if owners[index] == owner { return true }
            index += 1
        }
        return false
    }
}
