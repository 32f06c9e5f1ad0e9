// How a site stalls. Transparent: the code belongs to the site, in debug builds as well. Line tables still show it as
// an inlined call; victims.rules skips it.

import CGroupingSites
import Glibc

typealias Leaf = site_leaf

let leaves: [(name: String, leaf: Leaf)] = [
    ("sleep", site_leaf_sleep), ("lock", site_leaf_lock), ("cpu", site_leaf_cpu),
]

/// A site stalls once when it is hit, however often its closure or comparator is called.
var isArmed = false
/// What sites compute goes here, so that no optimizer removes it.
var sink = 0
private(set) var visits = 0
let stallMilliseconds = 40
let closedGate = {
    let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    sem_init(semaphore, 0, 0)
    return semaphore
}()

@_transparent func stall(_ leaf: Leaf) {
    if isArmed {
        isArmed = false
        if leaf == site_leaf_sleep {
            usleep(UInt32(stallMilliseconds) * 1000)
        } else if leaf == site_leaf_lock {
            var limit = timespec()
            clock_gettime(CLOCK_REALTIME, &limit)
            limit.tv_nsec += stallMilliseconds * 1_000_000
            limit.tv_sec += limit.tv_nsec / 1_000_000_000
            limit.tv_nsec %= 1_000_000_000
            sem_timedwait(closedGate, &limit)
        } else {
            var begin = timespec()
            var now = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin)
            repeat {
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
            } while (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1_000_000
                < stallMilliseconds
        }
    }
}

/// Work after a call, without which the call would be a jump and the caller not on the stack.
@inline(never) func visited() { visits += 1 }
