// libstallwatch-preload.so: what `stallctl run` loads into a program that was not built with the agent.
//
//     the program's wait -> calls.c (CWaitCalls) -> threads.c: is it a loop's? -> the agent, loaded at the first such wait
//
// It is small, because every program that is executed loads it, and most never wait for events: they pay for some
// hundred microseconds of the dynamic linker. Whatever fails here, the program runs as if it were not there.
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "blocking_door.h"
#include "preload_environment.h"

enum { OFF, READY_TO_LOAD, LOADING, STARTING, RUNNING };
// Longer than loading takes on a loaded machine.
enum { LONGEST_WAIT_NS = 1000000000 };

// Of libstallwatch-blocking.so, if that is loaded as well.
extern __typeof__(stallwatch_blocking_set) stallwatch_blocking_set __attribute__((weak));

static uint32_t state = OFF;
static pid_t process;
static int filter_mode;
static preload_environment environment;
static stall_preload_agent agent;
static bool has_agent;  ///< `agent` is filled in, perhaps by a parent process

const stall_preload_agent *preload_agent(void) {
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == RUNNING ? &agent : NULL;
}

bool preload_is_active(void) { return __atomic_load_n(&state, __ATOMIC_RELAXED) != OFF; }

static void set_state(uint32_t next) {
    __atomic_store_n(&state, next, __ATOMIC_RELEASE);
    syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

// Waits while the agent is being loaded or, if `last` is STARTING, started.
static void wait_while(uint32_t last, int64_t timeout_ns) {
    struct timespec deadline;
    const int saved = errno;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += (deadline.tv_nsec + timeout_ns) / 1000000000;
    deadline.tv_nsec = (deadline.tv_nsec + timeout_ns) % 1000000000;
    for (;;) {
        const uint32_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
        if (now < LOADING || now > last) break;
        const long result = syscall(
            SYS_futex, &state, FUTEX_WAIT_BITSET_PRIVATE, now, &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
        if (result != 0 && errno == ETIMEDOUT) break;
    }
    errno = saved;
}

void preload_wait_for_agent(int64_t timeout_ns) { wait_while(STARTING, timeout_ns); }

// MARK: The agent

// The base of the image whose function of this name the program calls.
static const void *image_with(const char *name) {
    Dl_info image;
    const ElfW(Sym) *symbol = NULL;
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found || dladdr1(found, &image, (void **)&symbol, RTLD_DL_SYMENT) == 0) return NULL;
    // A program that is not position-independent has an address of its own for it, and calls what comes behind.
    if (symbol && symbol->st_shndx == SHN_UNDEF) {
        found = dlsym(RTLD_NEXT, name);
        if (!found || dladdr(found, &image) == 0) return NULL;
    }
    return image.dli_fbase;
}

// The Swift runtime gets the size of what malloc gave from malloc_usable_size. A program whose allocator lacks it answers with
// libc's, which knows nothing of that memory.
static bool has_strange_heap(void) {
    const void *allocator = image_with("malloc"), *sizes = image_with("malloc_usable_size");
    return allocator != sizes;
}

static bool load_agent(void) {
    Dl_info own;
    char path[PATH_MAX];
    if (dladdr(&state, &own) == 0 || !own.dli_fname) return false;
    const char *slash = strrchr(own.dli_fname, '/');
    const int length = slash ? (int)(slash - own.dli_fname) : 0;
    const int written = snprintf(path, sizeof path, "%.*s/libstallwatch-agent.so", length, own.dli_fname);
    if (length == 0 || written >= (int)sizeof path || has_strange_heap()) return false;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        if (environment.settings.logs) dprintf(STDERR_FILENO, "stallwatch: not watched: %s\n", dlerror());
        return false;
    }
    const stall_preload_start start = (stall_preload_start)dlsym(library, "stallwatch_preload_start");
    set_state(STARTING);
    return start && start(STALL_PRELOAD_INTERFACE, &environment.settings, &agent);
}

static bool restart_agent(void) {
    set_state(STARTING);
    return agent.restart(&environment.settings);
}

// On a thread of its own: the one that waits may have a small stack, and does not wait for this.
static void *start_agent(void *nothing) {
    (void)nothing;
    prctl(PR_SET_NAME, "stall-start", 0, 0, 0);
    const bool is_running = has_agent ? restart_agent() : load_agent();
    has_agent = has_agent || is_running;
    set_state(is_running ? RUNNING : OFF);
    return NULL;
}

static bool start_thread(void) {
    enum { STACK_BYTES = 1 << 20 };
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    // The thread must not run the program's signal handlers.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_attr_init(&attributes);
    if (error == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        // The program's thread-local variables may not fit.
        if (pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0
            || pthread_create(&thread, &attributes, start_agent, NULL) != 0) {
            error = pthread_create(&thread, NULL, start_agent, NULL);
            if (error == 0) pthread_detach(thread);
        }
        pthread_attr_destroy(&attributes);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

// A filter of system calls that the program has installed since its start may end it for one of the agent's.
static bool has_new_filter(void) { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != filter_mode; }

void preload_start_agent(void) {
    const int saved = errno;
    uint32_t expected = READY_TO_LOAD;
    // In a child of vfork, which shares this memory, nothing is started.
    if (__atomic_load_n(&state, __ATOMIC_RELAXED) == READY_TO_LOAD && getpid() == process
        && __atomic_compare_exchange_n(&state, &expected, LOADING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
        && (has_new_filter() || !start_thread())) set_state(OFF);
    errno = saved;
}

// MARK: The process

// The child of a process whose loader is at work could load nothing, whatever it needs. An agent that starts is not waited
// for: it may wait for the end of this fork itself.
static void before_fork(void) { wait_while(LOADING, LONGEST_WAIT_NS); }

static void in_child(void) {
    preload_forget_threads();
    process = getpid();
    if (__atomic_load_n(&state, __ATOMIC_RELAXED) == OFF) return;
    __atomic_store_n(&state, environment.follows_children ? READY_TO_LOAD : OFF, __ATOMIC_RELEASE);
    if (environment.settings.set_blocking && !environment.follows_children) stallwatch_blocking_set(NULL, false);
}

// Nothing of the agent is being set up while the program's destructors run.
static void at_exit(void) {
    preload_wait_for_agent(LONGEST_WAIT_NS);
    const stall_preload_agent *running = preload_agent();
    // A child that was made without fork has the agent's memory, but not its threads.
    if (running && environment.settings.set_blocking && process == getpid()) running->finish();
}

// Programs that are linked with libseccomp confine themselves, usually before they wait for anything.
static bool needs_filter_library(void) {
    const struct link_map *program = _r_debug.r_map;
    const ElfW(Dyn) *entry = program ? program->l_ld : NULL;
    const char *strings = NULL;
    for (const ElfW(Dyn) *i = entry; i && i->d_tag != DT_NULL; i++) {
        // The loader may have added the load address to it.
        if (i->d_tag != DT_STRTAB) continue;
        strings = (const char *)(i->d_un.d_ptr < program->l_addr ? program->l_addr + i->d_un.d_ptr : i->d_un.d_ptr);
    }
    for (const ElfW(Dyn) *i = entry; strings && i->d_tag != DT_NULL; i++) {
        if (i->d_tag == DT_NEEDED && strncmp(strings + i->d_un.d_val, "libseccomp.so", 13) == 0) return true;
    }
    return false;
}

__attribute__((constructor)) static void begin(void) {
    const int saved = errno;
    environment = preload_read_environment();
    environment.settings.set_blocking = environment.forbids_blocking ? stallwatch_blocking_set : NULL;
    if (environment.is_wanted && !needs_filter_library() && pthread_atfork(before_fork, NULL, in_child) == 0) {
        process = getpid();
        filter_mode = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
        atexit(at_exit);
        __atomic_store_n(&state, READY_TO_LOAD, __ATOMIC_RELEASE);
    }
    errno = saved;
}
