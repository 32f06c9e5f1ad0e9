// Stalls on locks. Each creates new locks, so that plants can run concurrently.

import CLinux
import Dispatch
import Foundation
import StallModel
import Synchronization

extension Plant {
    static let locks: [Plant] = [
        Plant(name: "mutex", cause: .lock, namesHolder: true) { plainMutex(kind: nil) },
        Plant(name: "recursive mutex", cause: .lock, namesHolder: true) {
            plainMutex(kind: Int32(PTHREAD_MUTEX_RECURSIVE))
        },
        Plant(name: "spin-then-park", cause: .lock, namesHolder: true) {
            plainMutex(kind: 3)
        },
        Plant(name: "NSLock", cause: .lock, namesHolder: true) {
            let lock = NSLock()
            return wait(forHolder: hold({ lock.lock() }, { lock.unlock() })) { lock.lock() }
        },
        Plant(name: "NSRecursiveLock", cause: .lock, namesHolder: true) {
            let lock = NSRecursiveLock()
            return wait(forHolder: hold({ lock.lock() }, { lock.unlock() })) { lock.lock() }
        },
        Plant(name: "chain of 3", cause: .lock, namesHolder: true) { chain() },
        Plant(name: "rwlock, reader", cause: .lock, namesHolder: true) {
            readWriteLock(pthread_rwlock_rdlock)
        },
        Plant(name: "rwlock, writer", cause: .lock, namesHolder: true) {
            readWriteLock(pthread_rwlock_wrlock)
        },
        Plant(name: "Swift Mutex", cause: .lock, namesHolder: true) {
            let box = MutexBox()
            let isHeld = DispatchSemaphore(value: 0)
            nonisolated(unsafe) var holder: Int32 = 0
            Thread.detachNewThread {
                box.mutex.withLock { _ in
                    holder = threadID()
                    isHeld.signal()
                    usleep(stallMicroseconds + 60_000)
                }
            }
            isHeld.wait()
            return wait(forHolder: holder) { box.mutex.withLock { $0 += 1 } }
        },
        Plant(name: "dispatch_sync", cause: .lock) {
            let queue = DispatchQueue(label: "truth.queue")
            let isHeld = DispatchSemaphore(value: 0)
            nonisolated(unsafe) var holder: Int32 = 0
            queue.async {
                holder = threadID()
                isHeld.signal()
                usleep(stallMicroseconds + 60_000)
            }
            isHeld.wait()
            return wait(forHolder: holder) { queue.sync {} }
        },
        Plant(name: "semaphore", cause: .lock) {
            let semaphore = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                usleep(stallMicroseconds)
                semaphore.signal()
            }
            semaphore.wait()
            return Outcome()
        },
        Plant(name: "condition", cause: .lock) {
            let condition = NSCondition()
            nonisolated(unsafe) var isReady = false
            Thread.detachNewThread {
                usleep(stallMicroseconds)
                condition.lock()
                isReady = true
                condition.signal()
                condition.unlock()
            }
            condition.lock()
            while !isReady { condition.wait() }
            condition.unlock()
            return Outcome()
        },
        Plant(name: "dispatch group", cause: .lock) {
            let group = DispatchGroup()
            group.enter()
            Thread.detachNewThread {
                usleep(stallMicroseconds)
                group.leave()
            }
            group.wait()
            return Outcome()
        },
        Plant(name: "pthread_join", cause: .lock, namesHolder: true) {
            var thread = pthread_t()
            let isRunning = DispatchSemaphore(value: 0)
            let box = Unmanaged.passRetained(JoinBox(isRunning))
            pthread_create(
                &thread, nil,
                { argument in
                    let box = Unmanaged<JoinBox>.fromOpaque(argument!).takeUnretainedValue()
                    box.id = threadID()
                    box.isRunning.signal()
                    usleep(stallMicroseconds)
                    return nil
                }, box.toOpaque())
            isRunning.wait()
            let id = box.takeUnretainedValue().id
            pthread_join(thread, nil)
            box.release()
            return Outcome(holder: id)
        },
    ]

    /// These never end: the thread is given up.
    static let deadlocks: [Plant] = [
        Plant(name: "deadlock of 2", cause: .lock, namesHolder: true, isDeadlock: true) {
            circle(of: 2)
        },
        Plant(name: "deadlock of 3", cause: .lock, namesHolder: true, isDeadlock: true) {
            circle(of: 3)
        },
        Plant(name: "locked twice", cause: .lock, namesHolder: true, isDeadlock: true) {
            let lock = NSLock()
            lock.lock()
            lock.lock()
            return nil
        },
    ]
}

private final class MutexBox: Sendable {
    let mutex = Mutex(0)
}

private final class JoinBox: @unchecked Sendable {
    let isRunning: DispatchSemaphore
    var id: Int32 = 0
    init(_ isRunning: DispatchSemaphore) { self.isRunning = isRunning }
}

private func wait(forHolder holder: Int32, _ lock: () -> Void) -> Outcome {
    lock()
    return Outcome(holder: holder)
}

private func newMutex(kind: Int32? = nil) -> UnsafeMutablePointer<pthread_mutex_t> {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    if let kind { pthread_mutexattr_settype(&attributes, kind) }
    pthread_mutex_init(mutex, &attributes)
    return mutex
}

private func plainMutex(kind: Int32?) -> Outcome {
    nonisolated(unsafe) let mutex = newMutex(kind: kind)
    let holder = hold({ pthread_mutex_lock(mutex) }, { pthread_mutex_unlock(mutex) })
    return wait(forHolder: holder) { pthread_mutex_lock(mutex) }
}

private func readWriteLock(
    _ lock: (UnsafeMutablePointer<pthread_rwlock_t>) -> Int32
) -> Outcome {
    nonisolated(unsafe) let rwlock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
    pthread_rwlock_init(rwlock, nil)
    let holder = hold({ pthread_rwlock_wrlock(rwlock) }, { pthread_rwlock_unlock(rwlock) })
    return wait(forHolder: holder) { _ = lock(rwlock) }
}

/// Waits for a lock whose holder waits for a lock.
private func chain() -> Outcome {
    nonisolated(unsafe) let (near, far) = (newMutex(), newMutex())
    _ = hold({ pthread_mutex_lock(far) }, { pthread_mutex_unlock(far) })
    let isHeld = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var holder: Int32 = 0
    Thread.detachNewThread {
        pthread_mutex_lock(near)
        holder = threadID()
        isHeld.signal()
        pthread_mutex_lock(far)
        pthread_mutex_unlock(far)
        pthread_mutex_unlock(near)
    }
    isHeld.wait()
    return wait(forHolder: holder) { pthread_mutex_lock(near) }
}

/// The calling thread holds the first lock and waits for the second; so do the others, round to the first.
private func circle(of count: Int) -> Outcome? {
    nonisolated(unsafe) let mutexes = (0..<count).map { _ in newMutex() }
    let areHeld = DispatchSemaphore(value: 0)
    let mayGoOn = DispatchSemaphore(value: 0)
    for index in 1..<count {
        Thread.detachNewThread {
            pthread_mutex_lock(mutexes[index])
            areHeld.signal()
            mayGoOn.wait()
            pthread_mutex_lock(mutexes[(index + 1) % count])
        }
    }
    pthread_mutex_lock(mutexes[0])
    for _ in 1..<count { areHeld.wait() }
    for _ in 1..<count { mayGoOn.signal() }
    pthread_mutex_lock(mutexes[1])
    return nil
}
