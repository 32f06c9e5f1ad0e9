#define _GNU_SOURCE
#include "crash_suspension.h"

#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent_threads.h"
#include "stall_system_call.h"

enum { LONGEST_WAIT_NS = 500000000, STEP_NS = 200000 };

#define BIT(number) (UINT64_C(1) << ((number) - 1))

bool stall_suspends_threads(const struct sigaction *action) {
    const uint64_t handled = BIT(SIGQUIT) | BIT(SIGABRT) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGSEGV)
        | BIT(SIGTRAP);
    // The kernel takes the first two from every mask, another copy of the agent the third. libc has 32 and 33 for itself.
    const uint64_t standard = (BIT(32) - 1) & ~(BIT(SIGKILL) | BIT(SIGSTOP) | BIT(SIGSYS));
    uint64_t mask;
    __builtin_memcpy(&mask, &action->sa_mask, sizeof mask);
    const int flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    return (action->sa_flags & flags) == flags && (mask & standard) == (standard & ~handled);
}

// Their addresses mark the requests. The number of answers is of both kinds.
static char lets_through, blocks_again;
static uint32_t answer_count;

static bool is_handled_by(void (*handler)(int, siginfo_t *, void *)) {
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } action;
    return stall_system_call(SYS_rt_sigaction, SIGSYS, 0, (uintptr_t)&action, sizeof action.mask, 0, 0) == 0
        && action.handler == (void *)handler;
}

static void set_own(bool is_suspendable) {
    const uint64_t signal = BIT(SIGPROF);
    stall_system_call(
        SYS_rt_sigprocmask, is_suspendable ? SIG_UNBLOCK : SIG_BLOCK, (uintptr_t)&signal, 0, sizeof signal, 0, 0);
}

void stall_set_suspendable(bool is_suspendable, void (*handler)(int, siginfo_t *, void *)) {
    const int32_t process = stall_own_process(), own = stall_own_thread();
    siginfo_t request = {.si_signo = SIGSYS, .si_code = SI_QUEUE};
    request.si_value.sival_ptr = is_suspendable ? &lets_through : &blocks_again;
    const uint32_t before = __atomic_load_n(&answer_count, __ATOMIC_ACQUIRE);
    uint32_t asked_count = 0;
    for (int place = 0; place < STALL_AGENT_THREAD_COUNT; place++) {
        const int32_t thread = stall_agent_thread(place, process);
        if (thread == 0) continue;
        if (thread == own) {
            set_own(is_suspendable);
            continue;
        }
        if (!is_handled_by(handler)) return;
        asked_count += stall_system_call(
            SYS_rt_tgsigqueueinfo, (uint64_t)process, (uint64_t)thread, SIGSYS, (uintptr_t)&request, 0, 0) == 0;
    }
    const uint64_t deadline_ns = stall_handler_now_ns() + LONGEST_WAIT_NS;
    const struct timespec step = {.tv_nsec = STEP_NS};
    while (__atomic_load_n(&answer_count, __ATOMIC_ACQUIRE) - before < asked_count
           && stall_handler_now_ns() < deadline_ns)
        stall_system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (uintptr_t)&step, 0, 0, 0);
}

bool stall_answers_request(int number, const siginfo_t *info, void *context) {
    if (number != SIGSYS || info->si_code != SI_QUEUE) return false;
    const void *request = info->si_value.sival_ptr;
    if (request != &lets_through && request != &blocks_again) return false;
    uint64_t *mask = (uint64_t *)&((ucontext_t *)context)->uc_sigmask;  // of the interrupted code: set at the return
    *mask = request == &lets_through ? *mask & ~BIT(SIGPROF) : *mask | BIT(SIGPROF);
    __atomic_fetch_add(&answer_count, 1, __ATOMIC_ACQ_REL);
    return true;
}
