// The threads that wait for events, and which of them are watched: the main thread from its loop's first wait, another
// one when it has come back to the same descriptors from the same call, unless others wait for these as well: then it is a
// worker of a pool, which may rest anywhere.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"
#include "preload_waits.h"

enum {
    THREAD_LIMIT = 256,
    // Registering with the agent needs less.
    STACK_BYTES = 128 << 10,
    MAIN_STACK_BYTES = 8 << 20,
    // A loop whose first wait returns at once waits as long for the agent, once.
    LONGEST_START_NS = 250000000,
};

extern void *__libc_stack_end;

typedef struct {
    int32_t thread;       ///< gettid; 0: free
    uint32_t is_shared;   ///< another thread waits for the same descriptors
    void *watch;
    uint64_t waits_for;   ///< kind << 32 | descriptor of its loop
    // The rest is confined to the thread itself, but for the loop's descriptors.
    bool is_main, is_refused, was_awaited;
    bool is_inside;       ///< the wait that lasts was reported to the agent
    bool is_pending;      ///< the loop's wait lasts, and the agent is not there yet
    thread_waits waits;
    door_place inner;      ///< of the last wait within one
    uint32_t inner_count;  ///< how often that came, one after another
} waiting_thread;

static waiting_thread threads[THREAD_LIMIT];
static uint32_t highest;   ///< elements in use so far
static bool has_key;
static pthread_key_t key;

__thread stall_door *door_of_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));
static __thread bool has_no_place __attribute__((tls_model("initial-exec")));

static bool is_shared(const waiting_thread *thread) {
    return __atomic_load_n(&thread->is_shared, __ATOMIC_ACQUIRE);
}

static bool is_watched(const waiting_thread *thread) {
    return __atomic_load_n(&thread->watch, __ATOMIC_RELAXED) != NULL;
}

static void *take_watch(waiting_thread *thread) {
    return __atomic_exchange_n(&thread->watch, NULL, __ATOMIC_ACQ_REL);
}

static void end_watch(waiting_thread *thread) {
    const stall_preload_agent *agent = preload_agent();
    void *watch = take_watch(thread);
    if (watch && agent) agent->unwatch(watch);
}

// At the end of the thread.
static void leave_place(void *context) {
    waiting_thread *thread = context;
    door_of_thread = NULL;
    has_no_place = true;  // it may still wait in another destructor
    end_watch(thread);
    __atomic_store_n(&thread->waits_for, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->thread, 0, __ATOMIC_RELEASE);
}

static void make_key(void) { has_key = pthread_key_create(&key, leave_place) == 0; }

static waiting_thread *take_place(int32_t id) {
    for (uint32_t i = 0; i < THREAD_LIMIT; i++) {
        int32_t none = 0;
        if (!__atomic_compare_exchange_n(
                &threads[i].thread, &none, id, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
        uint32_t before = __atomic_load_n(&highest, __ATOMIC_RELAXED);
        while (before <= i && !__atomic_compare_exchange_n(
                                  &highest, &before, i + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
        return &threads[i];
    }
    return NULL;
}

static stall_door *find_door(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (has_no_place || !preload_is_active()) return NULL;
    const int saved = errno;
    const int32_t id = (int32_t)syscall(SYS_gettid);
    const bool is_main = id == getpid();
    pthread_once(&once, make_key);
    waiting_thread *thread = has_key ? take_place(id) : NULL;
    if (thread) {
        thread->is_shared = 0;
        thread->is_main = is_main;
        thread->is_refused = thread->was_awaited = thread->is_inside = thread->is_pending = false;
        memset(&thread->waits, 0, sizeof thread->waits);
        // The main thread's is needed until the end of the process.
        if (!is_main) pthread_setspecific(key, thread);
    }
    door_of_thread = (stall_door *)thread;
    has_no_place = !thread;
    errno = saved;
    return door_of_thread;
}

stall_door *(*const door_find)(void) = find_door;

void preload_forget_threads(void) {
    const uint32_t count = __atomic_load_n(&highest, __ATOMIC_RELAXED);
    memset(threads, 0, count * sizeof *threads);
    highest = 0;
    if (has_key) pthread_setspecific(key, NULL);
    door_of_thread = NULL;
    has_no_place = false;
}

// MARK: Whether to watch a thread

static bool has_room(const waiting_thread *thread, uintptr_t frame) {
    if (thread->is_main) {
        const uintptr_t high = (uintptr_t)__libc_stack_end;
        struct rlimit limit;
        const bool is_limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
        const uintptr_t size = is_limited ? limit.rlim_cur : MAIN_STACK_BYTES;
        return frame < high && high - frame < size && size - (high - frame) > STACK_BYTES;
    }
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return frame > (uintptr_t)low && frame - (uintptr_t)low < size && frame - (uintptr_t)low > STACK_BYTES;
}

// Two threads that wait for the same descriptors share the work: none of them is a loop that serves events alone.
static void note_descriptors(waiting_thread *thread, uintptr_t frame) {
    const seen_wait *loop = &thread->waits.loop;
    const uint64_t now = loop->file_count > 0 ? loop->call.kind << 32 | (uint32_t)loop->files[0] : 0;
    if (now == thread->waits_for) return;
    __atomic_store_n(&thread->waits_for, now, __ATOMIC_SEQ_CST);
    const uint32_t count = __atomic_load_n(&highest, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; now != 0 && i < count; i++) {
        waiting_thread *other = &threads[i];
        if (other == thread || __atomic_load_n(&other->waits_for, __ATOMIC_SEQ_CST) != now) continue;
        __atomic_store_n(&other->is_shared, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&thread->is_shared, 1, __ATOMIC_RELEASE);
        if (is_watched(other) && has_room(thread, frame)) end_watch(other);
    }
}

static bool is_loop(const waiting_thread *thread) {
    const seen_wait *loop = &thread->waits.loop;
    if (is_shared(thread)) return false;
    return thread->is_main || (loop->strength >= WAIT_FOR_SEVERAL && loop->returns >= ENOUGH_RETURNS);
}

// A signal handler may have interrupted the allocator. It runs with its signal blocked or on a stack of its own, and
// hardly ever comes back to the same call with the same frame.
static bool may_be_handler(const waiting_thread *thread) {
    stack_t alternate;
    sigset_t blocked, none;
    if (sigaltstack(NULL, &alternate) != 0 || alternate.ss_flags & SS_ONSTACK) return true;
    if (thread->waits.loop.returns >= ENOUGH_RETURNS) return false;
    sigemptyset(&none);
    return pthread_sigmask(SIG_SETMASK, NULL, &blocked) != 0 || memcmp(&blocked, &none, 8) != 0;
}

static void watch(waiting_thread *thread, uintptr_t frame) {
    const stall_preload_agent *agent = preload_agent();
    char name[16] = "main";
    if (!agent || thread->is_refused || may_be_handler(thread)) return;
    if (!has_room(thread, frame)) {
        thread->is_refused = !thread->is_main;
        return;
    }
    if (!thread->is_main) prctl(PR_GET_NAME, name, 0, 0, 0);
    void *watch = agent->watch(name, (bool (*)(const void *))waits_are_over, &thread->waits);
    thread->is_refused = !watch;
    __atomic_store_n(&thread->watch, watch, __ATOMIC_RELEASE);
    // Another thread may have come meanwhile.
    if (is_shared(thread)) end_watch(thread);
}

// MARK: The thread's waits

// The agent is started at the first wait, and is usually there when it is over.
static void prepare(waiting_thread *thread, uintptr_t frame) {
    if (is_watched(thread) || thread->is_refused || !is_loop(thread)) return;
    if (preload_agent()) return watch(thread, frame);
    if (!preload_is_active() || may_be_handler(thread)) return;
    preload_start_agent();
    thread->is_pending = true;
}

// A signal handler's wait within a wait, unless it is the loop's own again and again: then that one was left by longjmp.
static bool interrupts_wait(waiting_thread *thread, door_identity call, door_place place) {
    const seen_wait *loop = &thread->waits.loop;
    if (!preload_agent()) return true;
    if (place.frame >= loop->place.frame) return false;
    if (loop->call.kind != call.kind || loop->call.key != call.key) return true;
    const bool is_same = thread->inner.frame == place.frame && thread->inner.caller == place.caller;
    thread->inner = place;
    thread->inner_count = is_same ? thread->inner_count + 1 : 1;
    return thread->inner_count < ENOUGH_RETURNS;
}

bool door_enter(
    stall_door *door, door_identity call, const int *descriptors, size_t count, size_t stride, bool is_instant,
    door_place place) {
    waiting_thread *thread = (waiting_thread *)door;
    const stall_preload_agent *agent = preload_agent();
    if (!thread->is_inside && agent && is_watched(thread) && !is_shared(thread)
        && waits_note_again(&thread->waits, call, place)) {
        thread->inner_count = 0;
        thread->is_inside = agent->enter(is_instant, place.frame, place.caller);
        return thread->is_inside;
    }
    const int saved = errno;
    if (thread->is_inside) {
        if (interrupts_wait(thread, call, place)) return false;
        thread->is_inside = false;  // it was left by longjmp
    }
    const wait_call now = {call, descriptors, count, stride, place};
    if (!waits_note(&thread->waits, &now)) return false;
    note_descriptors(thread, place.frame);
    if (is_shared(thread) && is_watched(thread) && has_room(thread, place.frame)) end_watch(thread);
    prepare(thread, place.frame);
    agent = preload_agent();
    thread->is_inside = agent && is_watched(thread)
        && agent->enter(is_instant, place.frame, place.caller);
    thread->inner_count = 0;
    errno = saved;
    return thread->is_inside || thread->is_pending;
}

void door_leave(stall_door *door, bool is_instant) {
    waiting_thread *thread = (waiting_thread *)door;
    const stall_preload_agent *agent = preload_agent();
    if (thread->is_inside) {
        thread->is_inside = false;
        if (agent) agent->leave(is_instant);
        return;
    }
    const int saved = errno;
    if (thread->is_pending) {
        const door_place place = thread->waits.loop.place;
        // Otherwise the work that follows a first wait of no time would not be seen.
        if (!agent && thread->is_main && !thread->was_awaited) preload_wait_for_agent(LONGEST_START_NS);
        thread->was_awaited = true;
        prepare(thread, place.frame);
        agent = preload_agent();
        if (agent && is_watched(thread) && agent->enter(false, place.frame, place.caller))
            agent->leave(false);
    }
    thread->is_pending = false;
    errno = saved;
}
