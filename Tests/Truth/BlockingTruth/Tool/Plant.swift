// The calls that are made, each in a function of its own, so that a stack shows which it was.

import CBlockingPlants
import Dispatch
import Foundation
import Synchronization

/// One call that may block, or one that does not.
struct Plant: @unchecked Sendable {
    // Unchecked because of C's function pointers.
    let name: String
    /// A part of the name of the function that has to be on the stack.
    let function: String
    let prepare: () -> Void
    let play: () -> Void

    init(_ name: String, prepare: @escaping () -> Void = {}, _ play: @escaping () -> Void) {
        (self.name, function) = (name, "plant_" + name)
        (self.prepare, self.play) = (prepare, play)
    }

    /// Calls that may block.
    static var all: [Plant] {
        (0..<plant_count()).map { number in
            let plant = plant_at(number).pointee
            return Plant(String(cString: plant.name), prepare: { plant.prepare?() }, plant.play)
        } + ofSwift
    }

    /// Calls that do not.
    static var innocents: [Plant] {
        (0..<innocent_count()).map { number in
            let innocent = innocent_at(number).pointee
            return Plant(String(cString: innocent.name), innocent.play)
        } + [Plant("swift_mutex", plant_free_mutex)]
    }

    private static let ofSwift = [
        Plant("data_contents", prepare: writeFile, plant_data_contents),
        Plant("string_contents", prepare: writeFile, plant_string_contents),
        Plant("data_write", plant_data_write),
        Plant("file_handle", prepare: writeFile, plant_file_handle),
        Plant("file_manager", prepare: writeFile, plant_file_manager),
        Plant("thread_sleep", plant_thread_sleep),
        Plant("queue_sync", plant_queue_sync),
        Plant("dispatch_semaphore", plant_dispatch_semaphore),
        Plant("dispatch_group", plant_dispatch_group),
        Plant("lock", plant_lock),
        Plant("condition", plant_condition),
        Plant("operations", plant_operations),
    ]
}

private let file = FileManager.default.currentDirectoryPath + "/plant.txt"
private let queue = DispatchQueue(label: "plants")
private let mutex = Mutex(0)

private func writeFile() {
    try? Data(repeating: 1, count: 100_000).write(to: URL(filePath: file))
}

/// Runs `body` on another thread, a millisecond after the call or sooner.
private func soon(_ body: @escaping @Sendable () -> Void) {
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1), execute: body)
}

@inline(never) private func plant_data_contents() {
    _ = try? Data(contentsOf: URL(filePath: file))
}
@inline(never) private func plant_string_contents() {
    _ = try? String(contentsOfFile: file, encoding: .utf8)
}
@inline(never) private func plant_data_write() {
    try? Data([1]).write(to: URL(filePath: file))
}
@inline(never) private func plant_file_handle() {
    _ = try? FileHandle(forReadingAtPath: file)?.readToEnd()
}
@inline(never) private func plant_file_manager() {
    _ = FileManager.default.contents(atPath: file)
}
@inline(never) private func plant_thread_sleep() { Thread.sleep(forTimeInterval: 0.0001) }
@inline(never) private func plant_queue_sync() { queue.sync {} }
@inline(never) private func plant_dispatch_semaphore() {
    let semaphore = DispatchSemaphore(value: 0)
    soon { semaphore.signal() }
    semaphore.wait()
}
@inline(never) private func plant_dispatch_group() {
    let group = DispatchGroup()
    group.enter()
    soon { group.leave() }
    group.wait()
}
@inline(never) private func plant_lock() {
    let (lock, isLocked) = (NSLock(), DispatchSemaphore(value: 0))
    DispatchQueue.global().async {
        lock.lock()
        isLocked.signal()
        usleep(1000)
        lock.unlock()
    }
    while isLocked.wait(timeout: .now()) == .timedOut {}
    lock.lock()
    lock.unlock()
}
@inline(never) private func plant_condition() {
    let condition = NSCondition()
    condition.lock()
    _ = condition.wait(until: Date(timeIntervalSinceNow: 0.001))
    condition.unlock()
}
@inline(never) private func plant_operations() {
    let operations = OperationQueue()
    operations.addOperation { usleep(1000) }
    operations.waitUntilAllOperationsAreFinished()
}
@inline(never) private func plant_free_mutex() { mutex.withLock { $0 += 1 } }
