// A code location that stalls, and the expected report. The truth comes from the site's own program and clocks, not
// from the agent.

import CStallSites
import Foundation

/// What a stall waits for, in the words of reports.
enum Cause: String {
    case cpu, lock, disk, network, ipc, sleep
    case pageFault = "page-fault"
}

struct Site {
    let name: String
    /// The functions that may account for it: one, or several where the language's compiler may choose.
    var functions: [String]
    let causes: [Cause]
    /// The way there, where the functions have the same code: a report may say that they are merged, under this caller.
    var caller: String?
    /// The machine decides how the time is divided between computing and waiting: the site's own CPU clock measures it.
    var isMeasured = false
    /// Prepares what it stalls on, outside of the loop; the returned closure stalls.
    let prepare: (Visit) -> (() -> Void)?
    var asyncBody: (@MainActor () async -> Void)?
    /// The program may have its function under the name of another one only: counted apart, since no report can tell.
    var hasSharedName = false
    /// It creates something at the first visit that remains: it cannot be visited again.
    var happensOnce = false

    init(
        _ name: String, in functions: String..., for causes: [Cause], caller: String? = nil,
        isMeasured: Bool = false, prepare: @escaping (Visit) -> (() -> Void)?
    ) {
        self.name = name
        self.functions = functions
        self.causes = causes
        self.caller = caller
        self.isMeasured = isMeasured
        self.prepare = prepare
    }

    init(
        _ name: String, in functions: String..., for causes: [Cause],
        async body: @escaping @MainActor () async -> Void
    ) {
        self.name = name
        self.functions = functions
        self.causes = causes
        prepare = { _ in {} }
        asyncBody = body
    }
}

extension Site {
    /// The same, for something that remains after the first visit: it cannot be visited again.
    var once: Site {
        var site = self
        site.happensOnce = true
        return site
    }
}

/// How long a stall is to last.
let stallMicroseconds: UInt32 = 160_000
let stallSeconds = 0.16

/// What sites compute goes here, so that no optimizer removes it. Work after a call keeps the caller on the stack.
nonisolated(unsafe) var sink = 0

/// One visit of a site, with the threads that help it.
final class Visit: @unchecked Sendable {
    /// The thread that holds what the site waits for; 0 if no thread does, or none that the system knows.
    var holder: Int32 = 0
    private let started = DispatchSemaphore(value: 0)
    private var waiting = 0
    private var endings: [() -> Void] = []

    /// Runs `body` on a thread of its own, so long after the stall has begun.
    func later(_ microseconds: UInt32 = stallMicroseconds, _ body: @escaping () -> Void) {
        waiting += 1
        spawn { [self] in
            started.wait()
            usleep(microseconds)
            body()
        }
    }

    /// A thread takes a lock now, and releases it this long after the stall began.
    func hold(_ lock: @escaping () -> Void, _ unlock: @escaping () -> Void) {
        let isHeld = DispatchSemaphore(value: 0)
        waiting += 1
        spawn { [self] in
            lock()
            holder = ownThread()
            isHeld.signal()
            started.wait()
            usleep(stallMicroseconds)
            unlock()
        }
        isHeld.wait()
    }

    /// The same for a lock that is held as long as a closure runs.
    func hold(inside run: @escaping (@escaping () -> Void) -> Void, namesHolder: Bool = true) {
        let isHeld = DispatchSemaphore(value: 0)
        waiting += 1
        spawn { [self] in
            run { [self] in
                if namesHolder { holder = ownThread() }
                isHeld.signal()
                started.wait()
                usleep(stallMicroseconds)
            }
        }
        isHeld.wait()
    }

    func atEnd(_ body: @escaping () -> Void) { endings.append(body) }

    func begin() { for _ in 0..<waiting { started.signal() } }

    func end() { for body in endings { body() } }

    private func spawn(_ body: @escaping () -> Void) {
        nonisolated(unsafe) let body = body
        Thread.detachNewThread { body() }
    }
}

func ownThread() -> Int32 { site_thread() }

/// Nanoseconds of a clock.
@_transparent func clockTime(_ clock: clockid_t) -> Int {
    var time = timespec()
    clock_gettime(clock, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

nonisolated(unsafe) var workEnd = 0

/// Whether a site that computes has computed long enough, in CPU time.
@_transparent func isEnough() -> Bool { site_cpu() >= workEnd }
