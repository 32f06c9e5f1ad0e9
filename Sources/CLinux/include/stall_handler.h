// The rules that all of the agent's signal handlers share.
//
// None blocks a signal that the kernel forces on a thread: such a signal ends the process if it is blocked, whatever
// handler the app has. An app may emulate system calls in its handler of SIGSYS, and a handler's calls are among them.
//
// A handler passes signals on to the one that was installed before. If that one is installed again afterwards, each
// of the two has the other before it. So while a signal is passed on, its context names the handlers that have it: in
// `uc_link`, which the kernel clears in each frame and does not read.
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "stall_system_call.h"

#define STALL_SIGNAL_BIT(number) (UINT64_C(1) << ((number) - 1))

/// The signals that the kernel forces on the thread that causes them, in a mask.
static inline uint64_t stall_forced_signals(void) {
    return STALL_SIGNAL_BIT(SIGSYS) | STALL_SIGNAL_BIT(SIGSEGV) | STALL_SIGNAL_BIT(SIGBUS) | STALL_SIGNAL_BIT(SIGILL)
        | STALL_SIGNAL_BIT(SIGFPE) | STALL_SIGNAL_BIT(SIGTRAP);
}

/// The kernel's own form of an action, which is smaller than libc's.
typedef struct {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
} stall_kernel_action;

/// NULL too if it cannot be read.
static inline void *stall_current_handler(int number) {
    stall_kernel_action action = {0};
    const long error = stall_system_call(
        SYS_rt_sigaction, (uint64_t)number, 0, (uintptr_t)&action, sizeof action.mask, 0, 0);
    return error == 0 ? action.handler : 0;
}

/// Whether the kernel, not another handler, has called a handler. `stack_pointer`: at its entry.
static inline bool stall_is_called_by_kernel(uintptr_t stack_pointer, const siginfo_t *info, const void *context) {
#if defined(__x86_64__)
    (void)info;
    return (uintptr_t)context == stack_pointer + 8;
#else
    (void)context;
    return (uintptr_t)info == stack_pointer;
#endif
}

/// A handler that passes a signal on, in its frame.
typedef struct stall_passing {
    const void *handler;
    const struct stall_passing *outer;
} stall_passing;

// An address above the stack pointer and below the signal's frame can be read, even if it is not one of these.
static inline bool stall_is_between(const void *address, uintptr_t stack_pointer, const ucontext_t *context) {
    return (uintptr_t)address > stack_pointer && (uintptr_t)address < (uintptr_t)context
        && (uintptr_t)address % sizeof(void *) == 0;
}

/// The signal's frame if it is on the handler's stack, else NULL: a tool may call the handler later, with a copy.
static inline ucontext_t *stall_own_frame(void *context, uintptr_t stack_pointer) {
    const uintptr_t address = (uintptr_t)context;
    const bool is_near = address > stack_pointer && address - stack_pointer < UINT64_C(1) << 20;
    return is_near && address % sizeof(void *) == 0 ? context : 0;
}

/// Whether `handler` is passing this signal on already.
static inline bool stall_is_passing(const ucontext_t *context, uintptr_t stack_pointer, const void *handler) {
    const stall_passing *passing = context ? (const void *)context->uc_link : 0;
    while (stall_is_between(passing, stack_pointer, context)) {
        if (passing->handler == handler) return true;
        if (passing->outer <= passing) return false;
        passing = passing->outer;
    }
    return false;
}

/// Between the two the signal is passed on. `passing` is a variable of the handler.
static inline void stall_begin_passing(ucontext_t *context, stall_passing *passing, const void *handler) {
    if (!context) return;
    *passing = (stall_passing){handler, (const void *)context->uc_link};
    context->uc_link = (ucontext_t *)passing;
}
static inline void stall_end_passing(ucontext_t *context, const stall_passing *passing) {
    if (context) context->uc_link = (ucontext_t *)passing->outer;
}
