// Tests that never end, on locks. A comment at the end of a line names what happens there: `hangs: blocked`, and the
// thread is blocked in it; `hangs: suspended`, and the task awaits in it.

import Dispatch
import Foundation
import Synchronization
import Testing

@Test func semaphoreInTask() async {
    began()
    DispatchSemaphore(value: 0).wait()  // hangs: blocked
}

@Test func dispatchGroup() {
    began()
    let group = DispatchGroup()
    group.enter()
    group.wait()  // hangs: blocked
}

@Test func lockTwice() {
    began()
    let lock = NSLock()
    lock.lock()
    lock.lock()  // hangs: blocked
}

@Test func lockCycle() {
    began()
    let (first, second) = (NSLock(), NSLock())
    let isLocked = DispatchSemaphore(value: 0)
    first.lock()
    Thread.detachNewThread {
        second.lock()
        isLocked.signal()
        first.lock()
    }
    isLocked.wait()
    second.lock()  // hangs: blocked
}

final class Guarded: Sendable {
    let value = Mutex(0)
}

@Test func heldMutex() {
    began()
    let guarded = Guarded()
    let isLocked = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        guarded.value.withLock { _ in
            isLocked.signal()
            sleep(100_000)
        }
    }
    isLocked.wait()
    guarded.value.withLock { $0 += 1 }  // hangs: blocked
}

@Test func queueCycle() {
    began()
    let (first, second) = (DispatchQueue(label: "first"), DispatchQueue(label: "second"))
    let isInside = DispatchSemaphore(value: 0)
    first.sync {
        second.async {
            isInside.signal()
            first.sync {}
        }
        isInside.wait()
        second.sync {}  // hangs: blocked
    }
}

@Test func busyQueue() {
    began()
    let queue = DispatchQueue(label: "busy")
    let isInside = DispatchSemaphore(value: 0)
    queue.async {
        isInside.signal()
        sleep(100_000)
    }
    isInside.wait()
    queue.sync {}  // hangs: blocked
}

@Test func readWriteLock() {
    began()
    var lock = pthread_rwlock_t()
    pthread_rwlock_init(&lock, nil)
    pthread_rwlock_rdlock(&lock)
    pthread_rwlock_wrlock(&lock)  // hangs: blocked
}

@Test func condition() {
    began()
    let condition = NSCondition()
    condition.lock()
    condition.wait()  // hangs: blocked
}

@Test func posixSemaphore() {
    began()
    var semaphore = sem_t()
    sem_init(&semaphore, 0, 0)
    sem_wait(&semaphore)  // hangs: blocked
}

@Test func threadEnd() {
    began()
    var thread = pthread_t()
    pthread_create(
        &thread, nil,
        { _ in
            sleep(100_000)
            return nil
        }, nil)
    pthread_join(thread, nil)  // hangs: blocked
}

@Test func barrier() {
    began()
    var barrier = pthread_barrier_t()
    pthread_barrier_init(&barrier, nil, 2)
    pthread_barrier_wait(&barrier)  // hangs: blocked
}

@Test func operationQueue() {
    began()
    let queue = OperationQueue()
    queue.addOperation { sleep(100_000) }
    queue.waitUntilAllOperationsAreFinished()  // hangs: blocked
}

/// Blocked in another function of the package.
@Test func inAHelper() {
    began()
    waitForAnAnswer()
}

func waitForAnAnswer() {
    DispatchSemaphore(value: 0).wait()  // hangs: blocked (inAHelper)
}
