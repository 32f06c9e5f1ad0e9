// Who may hold the lock that a thread waits for, and what that one waits for in turn. Names are not known here, so that
// every thread that the memory around the futex can mean is a suspect; the waiter's stack acquits all but one.

internal import CLinux
package import StallModel

private let futexWait: UInt32 = 0
private let futexLock: UInt32 = 6
private let futexWaitBitset: UInt32 = 9
private let futexLock2: UInt32 = 13
private let ownerMask: UInt32 = 0x3fff_ffff

/// The words of the memory behind a futex that hold a thread's id, when it belongs to a lock of that kind.
///
/// **Source:** glibc 2.36, `struct __pthread_mutex_s` and `struct __pthread_rwlock_arch_t`; futex(2), "FUTEX_LOCK_PI".
package func possibleOwners(
    of futex: WaitedFutex
) -> [(field: LockSuspect.Field, owner: ThreadID)] {
    func owner(_ index: Int) -> ThreadID? {
        guard futex.words.indices.contains(index) else { return nil }
        let id = Int32(futex.words[index] & ownerMask)
        return id > 0 ? ThreadID(rawValue: id) : nil
    }
    let fields: [(LockSuspect.Field, Int)] =
        switch futex.operation {
        case futexLock, futexLock2: [(.word, 0)]
        case futexWait, futexWaitBitset:
            [
                (.mutexOwner, 2), (.rwlockWriterFromWriter, 3), (.rwlockWriterFromReader, 4),
                (.word, 0),
            ]
        default: []
        }
    return fields.compactMap { field, index in owner(index).map { (field, $0) } }
}

/// Follows the owners of what a thread waits for, and of what they wait for.
///
/// - Parameters:
///   - capture: Takes the stack of a thread of this process.
///   - limit: The most threads to look at.
/// - Returns: The nearest first. Owners that are no threads of this process are left out.
package func suspects(
    behind wait: Wait, of thread: ThreadID, limit: Int = 8,
    capture: (ThreadID) -> Result<CapturedStack, any Error>
) -> [LockSuspect] {
    var found: [LockSuspect] = []
    var looked:
        [ThreadID: (
            wait: Wait, counters: Counters, name: String, stack: Result<CapturedStack, any Error>?
        )] = [:]
    var queue = [(thread: thread, wait: wait)]
    var begun: Set<ThreadID> = [thread]
    while !queue.isEmpty, found.count < 2 * limit {
        let (waiter, wait) = queue.removeFirst()
        guard let futex = wait.futex else { continue }
        for (field, owner) in possibleOwners(of: futex) {
            if looked[owner] == nil {
                guard looked.count < limit, let name = threadName(owner) else { continue }
                let (itsWait, counters) = ThreadGatherer(owner).look()
                looked[owner] = (itsWait, counters, name, owner == thread ? nil : capture(owner))
            }
            guard let look = looked[owner] else { continue }
            var suspect = LockSuspect(
                waiter: waiter, address: futex.address, field: field, owner: owner,
                name: look.name, wait: look.wait, counters: look.counters)
            switch look.stack {
            case .success(let stack): suspect.stack = stack
            case .failure(let error): suspect.failure = String(describing: error)
            case nil: break
            }
            found.append(suspect)
            if begun.insert(owner).inserted { queue.append((owner, look.wait)) }
        }
    }
    return found
}

/// The thread's name in the kernel; nil when it is no thread of this process.
private func threadName(_ thread: ThreadID) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16) { name in
        stall_thread_read_name(thread.rawValue, name.baseAddress!)
            ? Wait.text(UnsafeRawBufferPointer(name)) : nil
    }
}
