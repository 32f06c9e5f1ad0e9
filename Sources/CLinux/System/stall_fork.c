#define _GNU_SOURCE
#include "stall_fork.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stall_clock.h"

enum { LONGEST_WAIT_NS = 100000000, LONGEST_LIBRARY_WAIT_NS = 20000000, LONGEST_DEFERRAL_NS = 1000000000 };

uint32_t stall_fork_count = 0;

static uint32_t forking;   // threads between the beginning of a fork and its end
static uint32_t deferring; // threads that defer forks
static uint32_t in_library; // threads inside a library with locks of its own
static uint32_t vain;      // forks that waited in vain

static __thread struct {
    uint32_t depth, generation;
    uint32_t begun;  // forks of this thread that have begun
    uint32_t ahead;  // those of them that `stall_fork_begin` began, and `begin_fork` has not met
    bool works;
    bool is_inside;  // a library
} own;

// Waits while the word has this value. False after the deadline.
static bool wait_on(const uint32_t *word, uint32_t value, uint64_t deadline_ns) {
    const struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / 1000000000), .tv_nsec = (long)(deadline_ns % 1000000000)};
    if (stall_monotonic_ns() >= deadline_ns) return false;
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    return true;
}

static void wake_all(const uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

static bool is_deferring(void) { return own.depth > 0 && own.generation == stall_fork_generation(); }

static void leave(uint32_t *threads) {
    __atomic_fetch_sub(threads, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&forking, __ATOMIC_SEQ_CST) != 0) wake_all(threads);
}

static void enter(uint32_t *threads) {
    uint64_t deadline_ns = 0;
    for (;;) {
        const uint32_t others = __atomic_load_n(&forking, __ATOMIC_SEQ_CST);
        // A handler of the app's before fork, on the thread that forks, would wait for itself.
        const bool is_forking = own.begun > 0;
        if (others == 0 || is_forking) {
            __atomic_fetch_add(threads, 1, __ATOMIC_SEQ_CST);
            if (is_forking || __atomic_load_n(&forking, __ATOMIC_SEQ_CST) == 0) break;
            leave(threads);
        }
        if (deadline_ns == 0) deadline_ns = stall_monotonic_ns() + LONGEST_DEFERRAL_NS;
        // Or another handler waits for this thread.
        if (stall_monotonic_ns() >= deadline_ns) {
            __atomic_fetch_add(threads, 1, __ATOMIC_SEQ_CST);
            break;
        }
        wait_on(&forking, others, deadline_ns);
    }
}

void stall_fork_defer(void) {
    if (is_deferring()) {
        own.depth++;
        return;
    }
    const int saved = errno;
    own.depth = 1;
    own.generation = stall_fork_generation();
    enter(&deferring);
    errno = saved;
}

void stall_fork_allow(void) {
    // In a child whose fork a signal handler called meanwhile, nothing is deferred.
    if (!is_deferring() || --own.depth > 0) return;
    const int saved = errno;
    leave(&deferring);
    errno = saved;
}

void stall_fork_begin_work(void) {
    stall_fork_defer();
    own.works = true;
}

void stall_fork_end_work(void) {
    own.works = false;
    stall_fork_allow();
}

bool stall_fork_begin_wait(void) {
    if (!own.works || !is_deferring() || own.depth > 1) return false;
    stall_fork_allow();
    return true;
}

void stall_fork_end_wait(bool began) {
    if (began) stall_fork_defer();
}

bool stall_fork_enter_library(void) {
    if (!stall_fork_begin_wait()) return false;
    const int saved = errno;
    enter(&in_library);
    own.is_inside = true;
    errno = saved;
    return true;
}

void stall_fork_leave_library(bool entered) {
    if (!entered) return;
    const int saved = errno;
    own.is_inside = false;
    // In a child that a callback of the library forked, no thread is inside.
    if (own.generation == stall_fork_generation()) leave(&in_library);
    errno = saved;
    stall_fork_end_wait(true);
}

void stall_fork_let_pass(void) {
    if (__atomic_load_n(&forking, __ATOMIC_RELAXED) != 0) stall_fork_end_wait(stall_fork_begin_wait());
}

// Waits while there are more threads than `least`. False if there still are at the deadline.
static bool wait_for(const uint32_t *threads, uint32_t least, uint64_t deadline_ns) {
    uint32_t count = __atomic_load_n(threads, __ATOMIC_SEQ_CST);
    while (count > least && wait_on(threads, count, deadline_ns)) count = __atomic_load_n(threads, __ATOMIC_SEQ_CST);
    return count <= least;
}

static void begin(void) {
    const int saved = errno;
    __atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
    uint64_t now_ns = stall_monotonic_ns();
    const uint64_t deadline_ns = now_ns + LONGEST_WAIT_NS;
    if (!wait_for(&deferring, is_deferring() ? 1 : 0, deadline_ns)) __atomic_fetch_add(&vain, 1, __ATOMIC_RELAXED);
    // The child sees itself which locks of the library are taken.
    now_ns = stall_monotonic_ns();
    const uint64_t longest_ns = now_ns + LONGEST_LIBRARY_WAIT_NS;
    wait_for(&in_library, own.is_inside ? 1 : 0, longest_ns < deadline_ns ? longest_ns : deadline_ns);
    own.begun++;
    errno = saved;
}

void stall_fork_begin(void) {
    begin();
    own.ahead++;
}

static void begin_fork(void) {
    if (own.ahead == 0) begin(); else own.ahead--;
}

static void end_fork(void) {
    const int saved = errno;
    if (own.begun > 0) own.begun--;
    // The child of a fork that a signal handler called within another one returns into that, and has no fork to end.
    uint32_t others = __atomic_load_n(&forking, __ATOMIC_SEQ_CST);
    while (others > 0
           && !__atomic_compare_exchange_n(&forking, &others, others - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    if (others == 1) wake_all(&forking);
    errno = saved;
}

// A forked child of a multithreaded process may do little more than this before exec.
static void begin_child(void) {
    __atomic_fetch_add(&stall_fork_count, 1, __ATOMIC_RELAXED);
    // It may be the child of a fork within another one, and return into that.
    if (own.begun > 0) own.begun--;
    __atomic_store_n(&forking, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&deferring, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&in_library, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&vain, 0, __ATOMIC_RELAXED);
}

static void register_once(void) { pthread_atfork(begin_fork, end_fork, begin_child); }

void stall_fork_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
}

uint32_t stall_fork_take_vain(void) { return __atomic_exchange_n(&vain, 0, __ATOMIC_RELAXED); }
