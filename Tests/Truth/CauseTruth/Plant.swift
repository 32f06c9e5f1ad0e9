// A way to stall, and what a report of it must say.

import CLinux
import Dispatch
import Foundation
import StallModel

/// What a stall was made of.
struct Plant: Sendable {
    enum Pace: Sendable {
        /// Only waits: many at once do not disturb each other.
        case together
        /// Uses a CPU or the disk: one at a time.
        case alone
    }

    var name: String
    var cause: CauseClass
    var pace = Pace.together
    /// Its holder must be named: the lock's ABI says who it is.
    var namesHolder = false
    var isDeadlock = false
    /// Stalls the calling thread; returns the thread that holds what it waited for, if any. Nil if the machine does not
    /// allow it.
    var stall: @Sendable () -> Outcome?
}

struct Outcome: Sendable {
    var holder: Int32?
    /// Waits for a CPU took longer than the planted wait.
    var isSpoiled = false
}

/// How long a stall is to last.
let stallTime: Duration = .milliseconds(300)
let stallSeconds = 0.3
let stallMicroseconds: UInt32 = 300_000

/// Starts a thread that takes a lock, holds it for the duration of a stall, and releases it.
func hold(
    for time: UInt32 = stallMicroseconds + 60_000, _ lock: @escaping () -> Void,
    _ unlock: @escaping () -> Void
) -> Int32 {
    let isHeld = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var holder: Int32 = 0
    nonisolated(unsafe) let (lock, unlock) = (lock, unlock)
    Thread.detachNewThread {
        lock()
        holder = threadID()
        isHeld.signal()
        usleep(time)
        unlock()
    }
    isHeld.wait()
    return holder
}

func threadID() -> Int32 { stall_gettid() }
