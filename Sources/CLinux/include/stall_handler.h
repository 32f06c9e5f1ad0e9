// What the agent's signal handlers have in common.
//
// None blocks a signal that the kernel forces on a thread: such a signal ends the process if it is blocked, whatever
// handler the app has. An app may emulate system calls in its handler of SIGSYS, and a handler's calls are among them.
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

/// The signal's frame if it is on the stack of the handler; NULL if that is not so, as under a tool that calls it later.
static inline ucontext_t *stall_own_frame(void *context, uintptr_t stack_pointer) {
    const uintptr_t address = (uintptr_t)context;
    const bool is_near = address > stack_pointer && address - stack_pointer < UINT64_C(1) << 20;
    return is_near && address % sizeof(void *) == 0 ? context : 0;
}
