// Faults from which a program recovers, as interpreters, wasm runtimes and probes of addresses do.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "host_safety.h"

static __thread sigjmp_buf jump;
static __thread ucontext_t context;
static __thread volatile int leaving = -1;

// throw.cpp
void host_throw_here(void);
void host_catch_signal(void);
void host_raise_fault(void);

// Declared here, since C++ takes raise(3) for a function that throws nothing.
void host_raise_fault(void) { raise(SIGBUS); }

static void handle(int number, siginfo_t *info, void *interrupted) {
    (void)info;
    (void)interrupted;
    const int way = leaving;
    leaving = -1;
    switch (way) {
    case HOST_RETURN: return;
    case HOST_SIGLONGJMP: siglongjmp(jump, 1);
    case HOST_LONGJMP_FROM_ABORT: _longjmp(jump, 1);  // the signal stays blocked
    case HOST_SETCONTEXT: setcontext(&context); abort();
    case HOST_EXCEPTION: host_throw_here();
    }
    signal(number, SIG_DFL);
}

void host_handle_faults(bool is_alternate, bool is_nested) {
    struct sigaction action = {.sa_sigaction = handle};
    action.sa_flags = SA_SIGINFO | (is_alternate ? SA_ONSTACK : 0) | (is_nested ? SA_NODEFER : 0);
    const int numbers[] = {SIGSEGV, SIGFPE, SIGABRT, SIGTRAP, SIGBUS};
    for (int i = 0; i < 5; i++) sigaction(numbers[i], &action, NULL);
}

static void give_alternate_stack(void) {
    stack_t stack;
    if (sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_DISABLE)) return;
    stack = (stack_t){.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
}

void host_survive(int way) {
    give_alternate_stack();
    leaving = way;
    switch (way) {
    case HOST_RETURN: raise(SIGTRAP); break;
    case HOST_SIGLONGJMP:
        if (!sigsetjmp(jump, 1)) *(volatile int *)8 = 1;
        break;
    case HOST_LONGJMP_FROM_ABORT:
        if (!sigsetjmp(jump, 0)) abort();
        break;
    case HOST_SETCONTEXT: {
        volatile bool is_back = false;
        getcontext(&context);
        if (!is_back) {
            is_back = true;
            raise(SIGFPE);
        }
        break;
    }
    case HOST_EXCEPTION: host_catch_signal(); break;
    }
}
