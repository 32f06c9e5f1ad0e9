// What the agent's signals meet in an app: waits between short bursts of work, small alternate stacks, handlers that are
// set while the agent installs its own.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host_safety.h"

enum { WAIT_MS = 3 };

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool wait_is_ended(int kind, int epoll) {
    const struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};
    struct epoll_event event;
    int result;
    switch (kind) {
    case 0: result = nanosleep(&pause, NULL); break;
    case 1: result = epoll_wait(epoll, &event, 1, WAIT_MS); break;
    default: result = poll(NULL, 0, WAIT_MS); break;
    }
    return result < 0 && errno == EINTR;
}

host_waits host_work_in_bursts(uint64_t shortest_ns, uint64_t longest_ns, uint64_t for_ns) {
    const uint64_t end = monotonic_ns() + for_ns;
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    host_waits waits = {0};
    for (uint32_t seed = 1; monotonic_ns() < end; waits.count++) {
        seed = seed * 1103515245 + 12345;
        host_spin(shortest_ns + (seed >> 8) % (longest_ns - shortest_ns));
        waits.ended += wait_is_ended((int)(waits.count % 3), epoll);
    }
    close(epoll);
    return waits;
}

enum { PAGE = 4096 };

bool host_use_small_alternate_stack(size_t beyond_minimum) {
    const size_t size = getauxval(AT_MINSIGSTKSZ) + beyond_minimum;
    const size_t pages = (size + PAGE - 1) / PAGE + 1;
    char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE) != 0) return false;
    // Its lowest byte is the first one behind the page that faults.
    const stack_t stack = {.ss_sp = memory + PAGE, .ss_size = size};
    return sigaltstack(&stack, NULL) == 0;
}

// MARK: Handlers that are set meanwhile

enum { CALLED = 7 };

static _Atomic(bool) is_starting;
static _Atomic(int) raced_signal, raced_pause;

static void note_call(int number) {
    (void)number;
    _exit(CALLED);
}

static void *set_handler(void *unused) {
    while (!atomic_load(&is_starting)) {}
    for (volatile int i = atomic_load(&raced_pause); i > 0; i--) {}
    signal(atomic_load(&raced_signal), note_call);
    return unused;
}

static struct sigaction before_replacement;

static void pass_on(int number, siginfo_t *info, void *context) {
    const struct sigaction *action = &before_replacement;
    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, info, context);
    } else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
        action->sa_handler(number);
    } else {
        _exit(0);
    }
}

void host_replace_handlers(void) {
    const struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
    sigaction(atomic_load(&raced_signal), NULL, &before_replacement);
    sigaction(atomic_load(&raced_signal), &action, NULL);
}

static bool handler_is_called(int number, int pause, void (*start)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        pthread_t app;
        atomic_store(&raced_signal, number);
        atomic_store(&raced_pause, pause);
        if (pthread_create(&app, NULL, set_handler, NULL) != 0) _exit(CALLED);
        host_rest(200000);
        atomic_store(&is_starting, true);
        start();
        pthread_join(app, NULL);
        raise(number);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == CALLED;
}

int host_lost_handlers(int number, int count, void (*start)(void)) {
    int lost = 0;
    for (int i = 0; i < count; i++) lost += !handler_is_called(number, i % 400, start);
    return lost;
}
