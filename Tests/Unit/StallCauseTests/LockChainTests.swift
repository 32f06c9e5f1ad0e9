import StallModel
import Testing

@testable import StallCause

/// Goal: the holder is the thread in the lock's memory, and only for a lock that the stack shows; a cycle is a deadlock
/// only if none of its threads has run since.
/// Method: synthetic threads and words.
@Suite struct LockChainTests {
    static let stalled = CauseDecisionTests.thread
    static let mutex = ["__lll_lock_wait", "pthread_mutex_lock", "work()"]

    static func suspect(
        _ waiter: Int32, waitsFor owner: Int32, _ field: LockSuspect.Field = .mutexOwner,
        functions: [String] = ["clock_nanosleep"], isWaiting: Bool = false, waits: UInt64 = 3
    ) -> LockSuspect {
        var counters = Counters()
        counters.waits = waits
        return LockSuspect(
            waiter: ThreadID(rawValue: waiter), address: 0x1000, field: field,
            owner: ThreadID(rawValue: owner), name: "t\(owner)",
            wait: CauseDecisionTests.wait(isWaiting ? "futex" : "clock_nanosleep"),
            counters: counters, functions: isWaiting ? mutex : functions)
    }

    static func explained(_ functions: [String], _ suspects: [[LockSuspect]]) -> ExplainedStall {
        explainStall(
            CauseDecisionTests.facts(CauseDecisionTests.wait("futex"), functions) { facts in
                for index in facts.samples.indices {
                    facts.samples[index].observation.suspects = suspects[index % suspects.count]
                }
            })
    }

    @Test(arguments: [
        (mutex, LockSuspect.Field.mutexOwner, true),
        (["pthread_cond_wait"], .mutexOwner, false), (["sem_wait"], .mutexOwner, false),
        (["pthread_rwlock_rdlock"], .rwlockWriterFromReader, true),
        (["pthread_rwlock_wrlock"], .rwlockWriterFromWriter, true),
        (["pthread_rwlock_rdlock"], .mutexOwner, false),
        (["_MutexHandle._lock()"], .word, true), (["pthread_join"], .word, true),
        (["swift::threading_impl::once_slow(swift::threading_impl::once_t&)"], .word, true),
        (["syscall", "_dispatch_once_wait"], .word, true), (["pthread_once"], .word, false),
        (["syscall", "__DISPATCH_WAIT_FOR_QUEUE__"], .queueState, true),
        (["syscall", "dispatch_sync_orders"], .queueState, false),
        ([], .mutexOwner, false),
    ])
    func `only the owner of the lock that the stack shows is named`(
        functions: [String], field: LockSuspect.Field, isNamed: Bool
    ) {
        let holder = Self.explained(functions, [[Self.suspect(10, waitsFor: 42, field)]]).cause
            .holder
        #expect((holder?.thread.rawValue == 42) == isNamed)
        #expect(holder?.isDeadlock != true)
    }

    @Test func `a chain is followed to its end`() {
        let chain = [
            Self.suspect(10, waitsFor: 11, isWaiting: true), Self.suspect(11, waitsFor: 12),
        ]
        let explained = Self.explained(Self.mutex, [chain])
        #expect(explained.holders.map(\.owner.rawValue) == [11, 12])
        #expect(
            explained.cause.holder
                == LockHolder(thread: ThreadID(rawValue: 11), name: "t11", isDeadlock: false))
    }

    @Test func `a circle that stands still is a deadlock, one that moves is none`() {
        func circle(_ waits: UInt64) -> [LockSuspect] {
            [
                Self.suspect(10, waitsFor: 11, isWaiting: true, waits: waits),
                Self.suspect(11, waitsFor: 10, isWaiting: true, waits: waits),
            ]
        }
        let still = Self.explained(Self.mutex, [circle(3)])
        #expect(still.cause.holder?.isDeadlock == true)
        #expect(still.holders.map(\.owner.rawValue) == [11])
        #expect(
            Self.explained(Self.mutex, [circle(3), circle(4)]).cause.holder?.isDeadlock == false)
        // A circle that was seen once, at the end, proves nothing.
        let once = Self.explained(
            Self.mutex,
            [
                [Self.suspect(10, waitsFor: 11)], [Self.suspect(10, waitsFor: 11)],
                [Self.suspect(10, waitsFor: 11)], circle(3),
            ])
        #expect(once.cause.holder?.isDeadlock == false)
    }

    @Test func `the words behind a futex are read as glibc lays them out`() {
        let futex = WaitedFutex(address: 8, operation: 0, words: [2, 0, 42, 1, 0, 0, 0, 0])
        let owners = possibleOwners(of: futex)
        #expect(owners.contains { $0.field == .mutexOwner && $0.owner.rawValue == 42 })
        let inherited = WaitedFutex(address: 8, operation: 6, words: [0x8000_002a, 0, 7])
        #expect(possibleOwners(of: inherited).map(\.owner.rawValue) == [42])
        #expect(possibleOwners(of: WaitedFutex(address: 8, operation: 0, words: [])).isEmpty)
    }

    @Test(arguments: [
        (["___pthread_mutex_lock"], FrameHint.lock(.mutex)),
        (["futex_wait", "__new_sem_wait_slow64.constprop.0", "f"], .lock(.semaphore)),
        (["", "pthread_cond_timedwait@@GLIBC_2.3.2"], .lock(.condition)),
        (["futex_wait", "__DISPATCH_WAIT_FOR_QUEUE__"], .lock(.dispatchQueue)),
        (["poll", "a()", "getaddrinfo"], .resolver), (["fsync", "save()"], .file),
    ])
    func `functions say what a wait is`(functions: [String], hint: FrameHint) {
        #expect(FrameHint(functions) == hint)
    }
}
