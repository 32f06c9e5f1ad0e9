import CLinux
import Foundation
import StallDetection
import StallModel
import Testing

@testable import StallAgent

/// Goal: an entry for threads that run jobs is judged by the thread that has it now, whichever had it before.
/// Method: threads of the test's own sit down at an entry and mark a job, as the hook for jobs does.
@Suite struct WorkerThreadTargetTests {
    let worker = stall_worker_create()!
    var word: UInt64 { stall_beacon_word(worker.pointee.beacon) }
    let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())

    @Test func `the job of a thread that replaced an ended one is not called idle`() {
        let target = WorkerThreadTarget(worker)
        let first = Sitter(at: worker)
        #expect(target.findThread() != nil)
        first.end()
        let second = Sitter(at: worker)
        let busy = word
        #expect(target.correct(busy, at: now))
        #expect(word == busy && busy >> 56 == UInt64(STALL_LOOP_BUSY))
        second.end()
    }

    @Test func `the job of a thread that ended in it is corrected, also if nobody looked before`() {
        let target = WorkerThreadTarget(worker)
        Sitter(at: worker).end()
        _ = target.correct(word, at: now)
        #expect(word >> 56 == UInt64(STALL_LOOP_IDLE))
    }

    @Test func `what an actor's job was before the first look at it may be another task's`() {
        let target = WorkerThreadTarget(worker)
        let sitter = Sitter(at: worker, job: Sitter.ofActor)
        let busy = word
        #expect(target.undividedSince(busy, at: now) == now, "before the first poll")
        #expect(target.correct(busy, at: now + .milliseconds(50)))
        #expect(target.correct(busy, at: now + .milliseconds(100)))
        #expect(
            target.undividedSince(busy, at: now + .milliseconds(100)) == now + .milliseconds(50))
        #expect(word == busy)
        sitter.end()
    }

    @Test(arguments: [(job: Sitter.ofActor, isSplit: true), (Sitter.ofTask, false)])
    func `another task is progress of an actor's job, and part of a task's own`(
        job: UInt8, isSplit: Bool
    ) {
        let target = WorkerThreadTarget(worker)
        let sitter = Sitter(at: worker, job: job)
        let busy = word
        #expect(target.correct(busy, at: now + .milliseconds(50)))
        // Where the current task is unknown, the job stands for it.
        worker.pointee.job += 64
        #expect(target.correct(busy, at: now + .milliseconds(100)))
        #expect((word != busy) == isSplit)
        sitter.end()
    }

    @Test func `what a thread used and waited before its first job is not the job's`() {
        let target = WorkerThreadTarget(worker)
        let sitter = Sitter(at: worker, computing: 5_000_000)
        let before = target.countersAtStart()
        #expect(before.map { $0.cpuTime >= .milliseconds(5) } ?? false)
        sitter.end()
    }
}

/// A thread that sits down at an entry, begins a job and stays in it until `end`.
private final class Sitter: @unchecked Sendable {
    // Unchecked because of the pointer and the handle: the thread is joined by `end`.
    private let worker: UnsafeMutablePointer<stall_worker>
    private let (isSeated, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    private let computing: UInt64
    /// Memory that reads as a job.
    private let job = calloc(1, 128)!
    private var handle = pthread_t()

    /// Kinds of jobs, by the first byte of the flags in a `swift::Job`.
    static let (ofTask, ofActor): (UInt8, UInt8) = (0, 192)

    /// - Parameter computing: How much CPU time the thread uses before, in nanoseconds.
    init(
        at worker: UnsafeMutablePointer<stall_worker>, computing: UInt64 = 0,
        job kind: UInt8 = ofTask
    ) {
        self.worker = worker
        self.computing = computing
        job.storeBytes(of: kind, toByteOffset: 32, as: UInt8.self)
        let context = Unmanaged.passRetained(self).toOpaque()
        pthread_create(
            &handle, nil,
            { context in
                let sitter = Unmanaged<Sitter>.fromOpaque(context!).takeRetainedValue()
                sitter.sit()
                return nil
            }, context)
        isSeated.wait()
    }

    private func sit() {
        var used: UInt64 = 0
        repeat { stall_thread_cpu_ns(stall_gettid(), &used) } while used < computing
        stall_worker_sit_down(worker)
        stall_worker_begin(worker, nil, UInt64(UInt(bitPattern: job)))
        isSeated.signal()
        mayEnd.wait()
    }

    /// Returns when the thread has ended, in the middle of its job.
    func end() {
        mayEnd.signal()
        pthread_join(handle, nil)
        free(job)
    }
}
