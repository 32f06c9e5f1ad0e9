#define _GNU_SOURCE
#include "stall_thread.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "agent_threads.h"
#include "stall_memory.h"
#include "stall_clock.h"
#include "stall_fork.h"
#include "stall_system_call.h"

enum {
    // The loader reserves room for thread-local variables of libraries that are loaded later.
    LOADER_RESERVE = 1 << 16,
    LARGEST_STACK = 1 << 28,
};

// A fault on a thread that blocks its signal ends the process without its handler: a crash reporter would miss it.
static const int synchronous_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

static int add_thread_locals(struct dl_phdr_info *image, size_t size, void *context) {
    (void)size;
    size_t *total = context;
    for (size_t i = 0; i < image->dlpi_phnum; i++) {
        ElfW(Phdr) segment;  // in a file mapping, so read through the kernel
        if (stall_read_memory(&segment, (uintptr_t)&image->dlpi_phdr[i], sizeof segment) != sizeof segment) break;
        if (segment.p_type == PT_TLS) *total += segment.p_memsz + segment.p_align;
    }
    return 0;
}

// glibc subtracts the program's thread-local variables from the requested size. Its own symbol for that size is
// private, so their size is read from the images.
static size_t with_thread_locals(size_t stack_bytes) {
    size_t total = stack_bytes + LOADER_RESERVE;
    dl_iterate_phdr(add_thread_locals, &total);
    return total;
}

// The scheduling that the process was started with. The caller of `start` may have pinned itself since, or changed its
// priority. A library that is loaded later takes what the first thread has then: its loader may be any thread.
static cpu_set_t process_cpus;
static bool knows_cpus;
static int process_nice;

__attribute__((constructor)) static void remember_process(void) {
    const pid_t first = getpid();
    errno = 0;
    knows_cpus = sched_getaffinity(first, sizeof process_cpus, &process_cpus) == 0;
    process_nice = getpriority(PRIO_PROCESS, (id_t)first);
    if (errno != 0) process_nice = getpriority(PRIO_PROCESS, 0);
}

typedef struct {
    void *(*body)(void *);
    void *context;
    int nice;
} beginning;

// Process << 32 | thread. A place of another process is free: a forked child has none of its parent's threads.
static uint64_t listed[STALL_AGENT_THREAD_COUNT];

int32_t stall_agent_thread(int place, int32_t process) {
    const uint64_t name = __atomic_load_n(&listed[place], __ATOMIC_ACQUIRE);
    return (int32_t)(name >> 32) == process ? (int32_t)name : 0;
}

static void *begin(void *context) {
    const beginning given = *(beginning *)context;
    free(context);
    if (getpriority(PRIO_PROCESS, 0) != given.nice) setpriority(PRIO_PROCESS, 0, given.nice);
    const uint64_t process = (uint32_t)stall_own_process(), name = process << 32 | (uint32_t)stall_own_thread();
    uint64_t *place = NULL;
    for (int i = 0; !place && i < STALL_AGENT_THREAD_COUNT; i++) {
        uint64_t other = __atomic_load_n(&listed[i], __ATOMIC_RELAXED);
        if (other >> 32 != process
            && __atomic_compare_exchange_n(&listed[i], &other, name, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            place = &listed[i];
    }
    void *result = given.body(given.context);
    if (place) __atomic_store_n(place, 0, __ATOMIC_RELEASE);
    return result;
}

// How far a thread leaves the scheduling of its creator behind.
typedef enum { AHEAD, PLAIN, PLAIN_HERE, INHERITED } scheduling;

enum { SHORTEST_REALTIME_US = 200000 };

// One step above a real-time creator. Not where the kernel would end the process for a short use of the CPU.
static bool set_ahead(pthread_attr_t *attributes) {
    struct sched_param parameters;
    struct rlimit limit;
    const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    if ((policy != SCHED_FIFO && policy != SCHED_RR) || sched_getparam(0, &parameters) != 0) return false;
    if (getrlimit(RLIMIT_RTTIME, &limit) == 0 && limit.rlim_cur < SHORTEST_REALTIME_US) return false;
    if (parameters.sched_priority < sched_get_priority_max(policy)) parameters.sched_priority++;
    return pthread_attr_setschedpolicy(attributes, policy) == 0
        && pthread_attr_setschedparam(attributes, &parameters) == 0
        && pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED) == 0;
}

static bool set_ordinary(pthread_attr_t *attributes) {
    // The kernel's inheritance does that for an ordinary creator. The validation of parameters makes system calls.
    if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER) return true;
    const struct sched_param none = {0};
    return pthread_attr_setschedpolicy(attributes, SCHED_OTHER) == 0
        && pthread_attr_setschedparam(attributes, &none) == 0
        && pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED) == 0;
}

static bool set_scheduling(pthread_attr_t *attributes, scheduling scheduling) {
    if (scheduling == INHERITED) return true;
    if (scheduling == AHEAD ? !set_ahead(attributes) : !set_ordinary(attributes)) return false;
    return scheduling == PLAIN_HERE || !knows_cpus
        || pthread_attr_setaffinity_np(attributes, sizeof process_cpus, &process_cpus) == 0;
}

static int start(pthread_t *thread, size_t stack_bytes, scheduling scheduling, beginning *beginning) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    if (!set_scheduling(&attributes, scheduling)) error = EPERM;
    for (size_t size = with_thread_locals(stack_bytes); !error; size *= 2) {
        error = pthread_attr_setstacksize(&attributes, size);
        if (!error) error = pthread_create(thread, &attributes, begin, beginning);
        if (error != EINVAL || size >= LARGEST_STACK) break;  // EINVAL: still too small
        error = 0;
    }
    pthread_attr_destroy(&attributes);
    return error;
}

static int start_named(
    unsigned long *thread, const char *name, size_t stack_bytes, scheduling first, void *(*body)(void *), void *context
) {
    beginning *beginning = malloc(sizeof *beginning);
    if (!beginning) return ENOMEM;
    beginning->body = body;
    beginning->context = context;
    const int own_nice = getpriority(PRIO_PROCESS, 0);
    beginning->nice = first == INHERITED ? own_nice
        : first == AHEAD && own_nice <= process_nice ? own_nice - 1 : process_nice;
    // A thread inherits its creator's mask: set it during the creation.
    sigset_t mask, before;
    sigfillset(&mask);
    for (size_t i = 0; i < sizeof synchronous_signals / sizeof *synchronous_signals; i++) {
        sigdelset(&mask, synchronous_signals[i]);
    }
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    int error = EPERM;
    // The kernel may refuse a priority, a class or a CPU.
    // Lists the images, and takes the lock of the loader's thread-local variables.
    stall_fork_defer();
    for (scheduling scheduling = first; error && scheduling <= INHERITED; scheduling++)
        error = start(thread, stack_bytes, scheduling, beginning);
    stall_fork_allow();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        free(beginning);
        return error;
    }
    char short_name[16] = {0};
    strncpy(short_name, name, sizeof short_name - 1);
    pthread_setname_np(*thread, short_name);
    return 0;
}

int stall_thread_start(
    unsigned long *thread, const char *name, size_t stack_bytes, void *(*body)(void *), void *context) {
    return start_named(thread, name, stack_bytes, PLAIN, body, context);
}

int stall_thread_start_ahead(
    unsigned long *thread, const char *name, size_t stack_bytes, void *(*body)(void *), void *context) {
    return start_named(thread, name, stack_bytes, AHEAD, body, context);
}

int stall_thread_start_alike(
    unsigned long *thread, const char *name, size_t stack_bytes, void *(*body)(void *), void *context) {
    return start_named(thread, name, stack_bytes, INHERITED, body, context);
}

// ThreadSanitizer does not intercept pthread_clockjoin_np: it would consider the thread alive even when its id is
// reused.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define JOINS_BY_WALL_CLOCK 1
#endif
#endif

bool stall_thread_join_until(unsigned long thread, uint64_t deadline_ns) {
#ifdef JOINS_BY_WALL_CLOCK
    const uint64_t now_ns = stall_monotonic_ns();
    deadline_ns = (uint64_t)stall_unix_us() * 1000 + (deadline_ns > now_ns ? deadline_ns - now_ns : 0);
#endif
    struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / 1000000000), .tv_nsec = (long)(deadline_ns % 1000000000)};
#ifdef JOINS_BY_WALL_CLOCK
    return pthread_timedjoin_np(thread, NULL, &deadline) == 0;
#else
    return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &deadline) == 0;
#endif
}

void stall_thread_wake_on_time(void) { prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

void stall_end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); }

void stall_thread_set_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

int32_t stall_thread_id(void) {
    // A forked child's only thread has its parent's copy, but another id.
    static __thread struct {
        int32_t id;
        uint32_t generation;
    } known;
    uint32_t generation = stall_fork_generation();
    if (known.id == 0 || known.generation != generation) {
        known.id = stall_gettid();
        known.generation = generation;
    }
    return known.id;
}
