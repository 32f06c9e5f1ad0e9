// Locks of every kind. Each site has a lock of its own.

import CStallSites
import Foundation
import Synchronization

func newMutex(_ kind: Int32, pi: Bool = false, robust: Bool = false) -> UnsafeMutablePointer<
    pthread_mutex_t
> {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    pthread_mutexattr_settype(&attributes, kind)
    if pi { pthread_mutexattr_setprotocol(&attributes, 1) }
    if robust { pthread_mutexattr_setrobust(&attributes, 1) }
    pthread_mutex_init(mutex, &attributes)
    return mutex
}

typealias MutexPointer = UnsafeMutablePointer<pthread_mutex_t>

@inline(never) func takeNormal(_ mutex: MutexPointer) {
    pthread_mutex_lock(mutex)
    sink &+= 1
    pthread_mutex_unlock(mutex)
}

@inline(never) func takeRecursive(_ mutex: MutexPointer) {
    pthread_mutex_lock(mutex)
    pthread_mutex_lock(mutex)
    sink &+= 2
    pthread_mutex_unlock(mutex)
    pthread_mutex_unlock(mutex)
}

@inline(never) func takeChecked(_ mutex: MutexPointer) -> Bool {
    let result = pthread_mutex_lock(mutex)
    if result == 0 { pthread_mutex_unlock(mutex) }
    return result == 0
}

@inline(never) func takeAdaptive(_ mutex: MutexPointer) {
    sink ^= 1
    pthread_mutex_lock(mutex)
    sink &+= 3
    pthread_mutex_unlock(mutex)
}

@inline(never) func takeInheriting(_ mutex: MutexPointer) {
    pthread_mutex_lock(mutex)
    sink &+= 4
    pthread_mutex_unlock(mutex)
    sink ^= 2
}

@inline(never) func takeRobust(_ mutex: MutexPointer) -> Int32 {
    let result = pthread_mutex_lock(mutex)
    pthread_mutex_unlock(mutex)
    sink &+= 5
    return result
}

@inline(never) func takeWithLimit(_ mutex: MutexPointer) {
    var limit = timespec()
    clock_gettime(CLOCK_REALTIME, &limit)
    limit.tv_sec += 5
    if pthread_mutex_timedlock(mutex, &limit) == 0 { pthread_mutex_unlock(mutex) }
    sink &+= 6
}

final class Ledger {
    let lock = NSLock()
    let recursive = NSRecursiveLock()
    let balance = Mutex(0)
    let condition = NSCondition()
    let phase = NSConditionLock(condition: 0)
    var isReady = false

    @inline(never) func post() {
        lock.lock()
        sink &+= 1
        lock.unlock()
    }

    @inline(never) func postTwice() {
        recursive.lock()
        recursive.lock()
        sink &+= 1
        recursive.unlock()
        recursive.unlock()
    }

    @inline(never) func deposit() {
        sink &+= balance.withLock {
            $0 += 1; return $0
        }
    }

    @inline(never) func awaitReady() {
        condition.lock()
        while !isReady { condition.wait() }
        condition.unlock()
        sink &+= 1
    }

    @inline(never) func awaitPhase() {
        guard phase.lock(whenCondition: 1, before: Date(timeIntervalSinceNow: 5)) else { return }
        sink &+= 1
        phase.unlock()
    }
}

typealias RWLockPointer = UnsafeMutablePointer<pthread_rwlock_t>

@inline(never) func readTable(_ lock: RWLockPointer) {
    pthread_rwlock_rdlock(lock)
    sink &+= 1
    pthread_rwlock_unlock(lock)
}

@inline(never) func writeTable(_ lock: RWLockPointer) {
    pthread_rwlock_wrlock(lock)
    sink &+= 2
    pthread_rwlock_unlock(lock)
}

@inline(never) func awaitReaders(_ lock: RWLockPointer) {
    sink ^= 4
    pthread_rwlock_wrlock(lock)
    pthread_rwlock_unlock(lock)
}

@inline(never) func joinWorker(_ thread: pthread_t) {
    var result: UnsafeMutableRawPointer?
    pthread_join(thread, &result)
    sink &+= 1
}

@inline(never) func meetAtBarrier(_ barrier: UnsafeMutablePointer<pthread_barrier_t>) {
    pthread_barrier_wait(barrier)
    sink &+= 1
}

@inline(never) func takeToken(_ semaphore: UnsafeMutablePointer<sem_t>) {
    sem_wait(semaphore)
    sink &+= 1
}

@inline(never) func awaitSignal(
    _ mutex: MutexPointer, _ condition: UnsafeMutablePointer<pthread_cond_t>
) {
    pthread_mutex_lock(mutex)
    pthread_cond_wait(condition, mutex)
    pthread_mutex_unlock(mutex)
    sink &+= 1
}

@inline(never) func lockFileExclusively(_ file: Int32) {
    flock(file, LOCK_EX)
    sink &+= 1
}

@inline(never) func lockRange(_ file: Int32) {
    lockf(file, F_LOCK, 10)
    sink &+= 2
}

private final class Box: @unchecked Sendable {
    let visit: Visit
    let isReady = DispatchSemaphore(value: 0)
    let mayEnd = DispatchSemaphore(value: 0)
    init(_ visit: Visit) { self.visit = visit }
}

private func lockSite(
    _ name: String, in function: String, _ mutex: @escaping () -> MutexPointer,
    _ take: @escaping (MutexPointer) -> Void
) -> Site {
    Site(name, in: function, for: [.lock]) { visit in
        let mutex = mutex()
        visit.hold({ pthread_mutex_lock(mutex) }, { pthread_mutex_unlock(mutex) })
        return { take(mutex) }
    }
}

let lockSites: [Site] = [
    lockSite("mutex", in: "takeNormal(_:)", { newMutex(0) }, { takeNormal($0) }),
    lockSite("recursive mutex", in: "takeRecursive(_:)", { newMutex(1) }, { takeRecursive($0) }),
    lockSite(
        "error-checking mutex", in: "takeChecked(_:)", { newMutex(2) },
        { sink &+= takeChecked($0) ? 1 : 0 }),
    lockSite("adaptive mutex", in: "takeAdaptive(_:)", { newMutex(3) }, { takeAdaptive($0) }),
    lockSite(
        "priority-inheriting mutex", in: "takeInheriting(_:)", { newMutex(0, pi: true) },
        { takeInheriting($0) }),
    lockSite(
        "robust mutex", in: "takeRobust(_:)", { newMutex(0, robust: true) },
        { sink &+= Int(takeRobust($0)) }),
    lockSite(
        "mutex with a time limit", in: "takeWithLimit(_:)", { newMutex(0) }, { takeWithLimit($0) }),
    Site("NSLock", in: "Ledger.post()", for: [.lock]) { visit in
        let ledger = Ledger()
        visit.hold({ ledger.lock.lock() }, { ledger.lock.unlock() })
        return { ledger.post() }
    },
    Site("NSRecursiveLock", in: "Ledger.postTwice()", for: [.lock]) { visit in
        let ledger = Ledger()
        visit.hold({ ledger.recursive.lock() }, { ledger.recursive.unlock() })
        return { ledger.postTwice() }
    },
    Site("Swift Mutex", in: "Ledger.deposit()", for: [.lock]) { visit in
        let ledger = Ledger()
        visit.hold(inside: { body in ledger.balance.withLock { _ in body() } })
        return { ledger.deposit() }
    },
    Site("NSCondition", in: "Ledger.awaitReady()", for: [.lock]) { visit in
        let ledger = Ledger()
        visit.later {
            ledger.condition.lock()
            ledger.isReady = true
            ledger.condition.signal()
            ledger.condition.unlock()
        }
        return { ledger.awaitReady() }
    },
    Site("NSConditionLock", in: "Ledger.awaitPhase()", for: [.lock]) { visit in
        let ledger = Ledger()
        visit.later {
            ledger.phase.lock()
            ledger.phase.unlock(withCondition: 1)
        }
        return { ledger.awaitPhase() }
    },
    Site("rwlock, reader behind a writer", in: "readTable(_:)", for: [.lock]) { visit in
        let lock = RWLockPointer.allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
        visit.hold({ pthread_rwlock_wrlock(lock) }, { pthread_rwlock_unlock(lock) })
        return { readTable(lock) }
    },
    Site("rwlock, writer behind a writer", in: "writeTable(_:)", for: [.lock]) { visit in
        let lock = RWLockPointer.allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
        visit.hold({ pthread_rwlock_wrlock(lock) }, { pthread_rwlock_unlock(lock) })
        return { writeTable(lock) }
    },
    Site("rwlock, writer behind a reader", in: "awaitReaders(_:)", for: [.lock]) { visit in
        let lock = RWLockPointer.allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
        visit.hold({ pthread_rwlock_rdlock(lock) }, { pthread_rwlock_unlock(lock) })
        visit.holder = 0  // readers are only counted
        return { awaitReaders(lock) }
    },
    Site("end of a thread", in: "joinWorker(_:)", for: [.lock]) { visit in
        var thread = pthread_t()
        let box = Box(visit)
        pthread_create(
            &thread, nil,
            { argument in
                let box = Unmanaged<Box>.fromOpaque(argument!).takeRetainedValue()
                box.visit.holder = ownThread()
                box.isReady.signal()
                box.mayEnd.wait()
                return nil
            }, Unmanaged.passRetained(box).toOpaque())
        box.isReady.wait()
        visit.later { box.mayEnd.signal() }
        return { joinWorker(thread) }
    },
    Site("barrier", in: "meetAtBarrier(_:)", for: [.lock]) { visit in
        let barrier = UnsafeMutablePointer<pthread_barrier_t>.allocate(capacity: 1)
        pthread_barrier_init(barrier, nil, 2)
        visit.later { pthread_barrier_wait(barrier) }
        return { meetAtBarrier(barrier) }
    },
    Site("POSIX semaphore", in: "takeToken(_:)", for: [.lock]) { visit in
        let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
        visit.later { sem_post(semaphore) }
        return { takeToken(semaphore) }
    },
    Site("condition", in: "awaitSignal(_:_:)", for: [.lock]) { visit in
        let mutex = newMutex(0)
        let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
        pthread_cond_init(condition, nil)
        visit.later {
            pthread_mutex_lock(mutex)
            pthread_cond_signal(condition)
            pthread_mutex_unlock(mutex)
        }
        return { awaitSignal(mutex, condition) }
    },
    Site("chain of two mutexes", in: "takeNormal(_:)", for: [.lock]) { visit in
        nonisolated(unsafe) let (near, far) = (newMutex(0), newMutex(0))
        visit.hold({ pthread_mutex_lock(far) }, { pthread_mutex_unlock(far) })
        let isHeld = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            pthread_mutex_lock(near)
            visit.holder = ownThread()
            isHeld.signal()
            pthread_mutex_lock(far)
            pthread_mutex_unlock(far)
            pthread_mutex_unlock(near)
        }
        isHeld.wait()
        return { takeNormal(near) }
    },
    Site("flock", in: "lockFileExclusively(_:)", for: [.lock]) { visit in
        let path = scratch + "/flock"
        let (held, wanted) = (open(path, O_RDWR | O_CREAT, 0o600), open(path, O_RDWR))
        flock(held, LOCK_EX)
        visit.later { close(held) }
        visit.atEnd { close(wanted) }
        return { lockFileExclusively(wanted) }
    },
    Site("file range that a child holds", in: "lockRange(_:)", for: [.lock]) { visit in
        let path = scratch + "/range"
        let file = open(path, O_RDWR | O_CREAT, 0o600)
        guard let child = site_child_locking(path, 0, 0) else { return nil }
        visit.later { site_child_end(child) }
        visit.atEnd { close(file) }
        return { lockRange(file) }
    },
    Site("spin lock", in: "spinForFlag()", for: [.cpu, .lock]) { visit in
        let lock = UnsafeMutablePointer<pthread_spinlock_t>.allocate(capacity: 1)
        pthread_spin_init(lock, 0)
        pthread_spin_lock(lock)
        spinLock = lock
        visit.later { pthread_spin_unlock(lock) }
        return { spinForFlag() }
    },
]

nonisolated(unsafe) var spinLock = UnsafeMutablePointer<pthread_spinlock_t>.allocate(capacity: 1)

@inline(never) func spinForFlag() {
    pthread_spin_lock(spinLock)
    sink &+= 1
}
