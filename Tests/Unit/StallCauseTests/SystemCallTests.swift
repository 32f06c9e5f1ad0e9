import CLinux
import Foundation
import StallModel
import Testing

@testable import StallCause

/// Goal: a number means the call that the kernel means, on both architectures.
/// Method: the kernel's own headers, where they are installed, against every row of the table. One test after the other: two
/// wait for the lock of a file, and the kernel's list names the process only.
@Suite(.serialized) struct SystemCallTests {
    static func numbers(_ path: String) -> [String: Int32] {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return text.matches(of: /(?m)^#define __NR(?:3264)?_(\w+)\s+(\d+)/).reduce(into: [:]) {
            $0[String($1.1)] = Int32($1.2)
        }
    }

    static let x86_64 = numbers("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    static let generic = numbers("/usr/include/asm-generic/unistd.h")

    @Test(.enabled(if: !x86_64.isEmpty)) func `numbers of x86_64 are the kernel's`() {
        for row in SystemCall.table { #expect(row.x86_64 == Self.x86_64[row.name], "\(row.name)") }
    }

    @Test(.enabled(if: !generic.isEmpty)) func `numbers of arm64 are the kernel's`() {
        for row in SystemCall.table where row.name != "newfstatat" {
            #expect(row.arm64 == Self.generic[row.name], "\(row.name)")
        }
        let stat = SystemCall.table.first { $0.name == "newfstatat" }
        #expect(stat?.arm64 == Self.generic["fstatat"])
    }

    @Test(.timeLimit(.minutes(1))) func `the process that holds a file lock is found`() throws {
        let path = "/tmp/file-lock-\(getpid())"
        defer { unlink(path) }
        let (held, wanted) = (open(path, O_RDWR | O_CREAT, 0o600), open(path, O_RDWR))
        #expect(flock(held, LOCK_EX) == 0)
        var process: Int32 = 0
        #expect(!stall_file_lock_holder(&process))
        let waiter = Thread { flock(wanted, LOCK_EX) }
        waiter.start()
        // Only the kernel's list shows it while the other thread waits.
        while !stall_file_lock_holder(&process) { sched_yield() }
        #expect(process == getpid())
        close(held)
        while stall_file_lock_holder(&process) { sched_yield() }
        close(wanted)
    }

    @Test(.timeLimit(.minutes(1))) func `the holder of a lease is found`() throws {
        let path = "/tmp/file-lease-\(getpid())"
        defer { unlink(path) }
        let held = open(path, O_RDWR | O_CREAT, 0o600)
        signal(SIGIO, SIG_IGN)  // sent when somebody waits for the lease
        let (setLease, writing, none) = (Int32(1024), Int32(F_WRLCK), Int32(F_UNLCK))
        try #require(fcntl(held, setLease, writing) == 0)
        let waiter = LockWaiter { close(open(path, O_RDONLY)) }
        var reader = ThreadStateReader(waiter.thread)
        var wait = reader.snapshot().wait
        while wait.fileLockHolder == nil {
            sched_yield()
            wait = reader.snapshot().wait
        }
        #expect(wait.fileLockHolder?.process == getpid())
        #expect(wait.waitChannel.contains("break_lease"))
        #expect(fcntl(held, setLease, none) == 0)
        close(held)
    }

    /// Reading /proc/locks may take seconds: the watchdog leaves it to the recorder, which runs later.
    @Test(.timeLimit(.minutes(1)))
    func `the holder of a file lock is found afterwards, while the wait lasts`() throws {
        let path = "/tmp/file-lock-later-\(getpid())"
        defer { unlink(path) }
        let (held, wanted) = (open(path, O_RDWR | O_CREAT, 0o600), open(path, O_RDWR))
        defer { close(wanted) }
        #expect(flock(held, LOCK_EX) == 0)
        let waiter = LockWaiter(wanted)
        var reader = ThreadStateReader(waiter.thread)
        let snapshot = WaitSnapshot()
        repeat { reader.snapshot(into: snapshot) } while Wait(snapshot.copy).call?.name != "flock"
        #expect(snapshot.pointer.pointee.waits_for_file)
        #expect(Wait(snapshot.copy).fileLockHolder == nil)
        var known = snapshot.copy.snapshot
        while known.lock_process == 0 {
            stall_wait_find_file_lock(&known, waiter.thread.rawValue)
        }
        #expect(known.lock_process == getpid())
        close(held)
        waiter.join()
        var over = snapshot.copy.snapshot
        stall_wait_find_file_lock(&over, waiter.thread.rawValue)
        #expect(over.lock_process == 0)
    }

    @Test func `no number stands for two calls`() {
        for numbers in [
            SystemCall.table.compactMap(\.x86_64), SystemCall.table.compactMap(\.arm64),
        ] {
            #expect(Set(numbers).count == numbers.count)
        }
    }
}

/// A thread that waits for the lock of a file.
private final class LockWaiter: @unchecked Sendable {
    // Unchecked because the semaphores order every access.
    private(set) var thread = ThreadID(rawValue: 0)
    private let (began, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))

    convenience init(_ descriptor: Int32) { self.init { flock(descriptor, LOCK_EX) } }

    init(_ wait: @escaping @Sendable () -> Void) {
        let thread = Thread { [self] in
            self.thread = ThreadID(rawValue: stall_gettid())
            began.signal()
            wait()
            ended.signal()
        }
        thread.start()
        began.wait()
    }

    func join() { ended.wait() }
}
