// The only code of the agent that runs inside a signal handler. It allocates nothing, locks nothing, prints
// nothing, calls no Swift, and restores errno.
//
// One request at a time, for the whole process; `state` says whose turn it is and never goes back:
//
//     generation n, FREE -> REQUESTED -> CLAIMED -> COPIED -> generation n + 1, FREE
//                           |  by the handler       ^ by the handler
//                           '-> generation n + 1, FREE: the watchdog gave up first
//
// A handler that comes late finds another generation and leaves. One that is stuck between CLAIMED and
// COPIED keeps the buffer, and requests are refused until it is done. The buffer and the handler stay for
// the life of the process: a signal may be pending for a thread that blocks it.
#define _GNU_SOURCE
#include "signal_copy.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "process_memory.h"

enum { SHORTEST_PAUSE_NS = 20000, LONGEST_PAUSE_NS = 1000000 };
enum { FREE = 0, REQUESTED = 1, CLAIMED = 2, COPIED = 3, PHASE_MASK = 3, GENERATION_STEP = 4 };

static struct {
    _Atomic(uint32_t) state;  // generation << 2 | phase
    _Atomic(bool) is_busy;    // a watchdog is between request and release
    uint8_t *buffer;
    uint64_t capacity;
    uint64_t stack_low, stack_high;
    stall_registers registers;
    uint64_t base, length;
} slot;

static struct sigaction previous_action;
static _Atomic(bool) is_installed;

// The handler's own stack is this thread's, or its alternate one; either way the interrupted stack begins at
// SP. 128 bytes below it are the red zone, taken only where they share SP's page.
static void copy_stack(uint64_t stack_pointer) {
    uint64_t page = stack_pointer & ~UINT64_C(4095);
    uint64_t base = stack_pointer - page < 128 ? page : (stack_pointer - 128) & ~UINT64_C(7);
    slot.base = base;
    if (stack_pointer < slot.stack_low || stack_pointer >= slot.stack_high) {  // an alternate stack or a coroutine's
        slot.length = stall_read_memory(slot.buffer, base, slot.capacity);
        return;
    }
    uint64_t length = slot.stack_high - base;
    if (length > slot.capacity) length = slot.capacity;
    const volatile uint64_t *from = (const volatile uint64_t *)(uintptr_t)base;
    uint64_t *to = (uint64_t *)(void *)slot.buffer;
    for (uint64_t i = 0; i < length / 8; i++) to[i] = from[i];
    slot.length = length & ~UINT64_C(7);
}

static void pass_on(int number, siginfo_t *info, void *context) {
    if (previous_action.sa_flags & SA_SIGINFO) {
        previous_action.sa_sigaction(number, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(number);
    }
}

static void handle_signal(int number, siginfo_t *info, void *context) {
    int saved_errno = errno;
    if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &slot) {
        uint32_t requested = (uint32_t)info->si_errno;
        if (atomic_compare_exchange_strong(&slot.state, &requested, requested + 1)) {
            stall_registers_from_context(&slot.registers, context);
            copy_stack(slot.registers.value[stall_native_architecture->stack_pointer]);
            atomic_store(&slot.state, requested + 2);
        }
    } else {
        pass_on(number, info, context);
    }
    errno = saved_errno;
}

static bool is_ours(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == handle_signal;
}

static bool is_owned(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

int stall_signal_copy_prepare(uint32_t stack_capacity, stall_signal_use use) {
    static atomic_flag preparing = ATOMIC_FLAG_INIT;
    struct sigaction current;
    int result = 0;
    if (use == STALL_SIGNAL_NEVER || atomic_load(&is_installed)) return 0;
    if (atomic_flag_test_and_set(&preparing)) return 0;
    if (sigaction(SIGPROF, NULL, &current) != 0) {
        result = errno;
    } else if (use == STALL_SIGNAL_CHAINED || !is_owned(&current)) {
        void *buffer = mmap(
            NULL, stack_capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        struct sigaction action = {
            .sa_sigaction = handle_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
        sigfillset(&action.sa_mask);
        slot.capacity = stack_capacity & ~UINT32_C(7);
        slot.buffer = buffer;
        previous_action = current;
        if (buffer == MAP_FAILED || sigaction(SIGPROF, &action, NULL) != 0) {
            result = errno;
        } else {
            atomic_store(&is_installed, true);
        }
    }
    atomic_flag_clear(&preparing);
    return result;
}

bool stall_signal_copy_is_available(void) {
    struct sigaction current;
    return atomic_load(&is_installed) && sigaction(SIGPROF, NULL, &current) == 0 && is_ours(&current);
}

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Returns when the state is not `state` any more, or at the deadline. It looks again and again: waking us would cost the
// stalled thread a system call, and its processor to us, where it shares one.
static void wait_while(uint32_t state, uint64_t deadline_ns) {
    uint64_t pause_ns = SHORTEST_PAUSE_NS, now;
    while (atomic_load(&slot.state) == state && (now = monotonic_ns()) < deadline_ns) {
        const uint64_t rest_ns = deadline_ns - now;
        const struct timespec pause = {.tv_nsec = (long)(pause_ns < rest_ns ? pause_ns : rest_ns)};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        if (pause_ns < LONGEST_PAUSE_NS) pause_ns *= 2;
    }
}

static int send(pid_t thread, uint32_t requested) {
    siginfo_t info = {.si_code = SI_QUEUE, .si_errno = (int)requested};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = &slot;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, SIGPROF, &info) == 0 ? 0 : errno;
}

signal_result stall_signal_copy_request(
    const stall_thread *thread, uint64_t deadline_ns, stall_registers *registers, stall_stack_copy *copy
) {
    if (!stall_signal_copy_is_available() || atomic_exchange(&slot.is_busy, true)) return SIGNAL_UNAVAILABLE;
    uint32_t state = atomic_load(&slot.state);
    if ((state & PHASE_MASK) == COPIED) {  // answered after we had stopped waiting
        explicit_bzero(slot.buffer, slot.length);
        state = (state & ~(uint32_t)PHASE_MASK) + GENERATION_STEP;
        atomic_store(&slot.state, state);
    }
    if ((state & PHASE_MASK) != FREE) {
        atomic_store(&slot.is_busy, false);
        return SIGNAL_UNAVAILABLE;
    }
    slot.stack_low = thread->stack_low;
    slot.stack_high = thread->stack_high;
    const uint32_t requested = state + REQUESTED;
    atomic_store(&slot.state, requested);
    int error = send(thread->id, requested);
    if (error == 0) wait_while(requested, deadline_ns);
    uint32_t expected = requested;
    if (atomic_compare_exchange_strong(&slot.state, &expected, state + GENERATION_STEP)) {
        atomic_store(&slot.is_busy, false);
        if (error == ESRCH) return SIGNAL_THREAD_ENDED;
        return error == 0 ? SIGNAL_TIMED_OUT : SIGNAL_UNAVAILABLE;
    }
    wait_while(state + CLAIMED, deadline_ns);
    if (atomic_load(&slot.state) != state + COPIED) {
        atomic_store(&slot.is_busy, false);
        return SIGNAL_TIMED_OUT;
    }
    *registers = slot.registers;
    *copy = (stall_stack_copy){.bytes = slot.buffer, .base = slot.base, .length = slot.length};
    return SIGNAL_COPIED;
}

void stall_signal_copy_release(void) {
    explicit_bzero(slot.buffer, slot.length);
    memset(&slot.registers, 0, sizeof slot.registers);
    uint32_t state = atomic_load(&slot.state) & ~(uint32_t)PHASE_MASK;
    atomic_store(&slot.state, state + GENERATION_STEP);
    atomic_store(&slot.is_busy, false);
}
