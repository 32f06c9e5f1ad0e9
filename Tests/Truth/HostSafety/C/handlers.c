// An app around the agent's handlers that emulates system calls, protects pages of its own stacks, or chains the handlers
// of others in a circle.
#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "host_safety.h"

// MARK: Emulated system calls

static const struct {
    const char *name;
    long number;
} calls[] = {
    {"process_vm_readv", SYS_process_vm_readv},
    {"clock_gettime", SYS_clock_gettime},
    {"gettid", SYS_gettid},
    {"getpid", SYS_getpid},
    {"sigaltstack", SYS_sigaltstack},
    {"rt_sigaction", SYS_rt_sigaction},
    {"openat", SYS_openat},
    {"futex", SYS_futex},
};

const char *host_handler_call(int index) {
    return index < (int)(sizeof calls / sizeof *calls) ? calls[index].name : NULL;
}

static void refuse(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
#if defined(__x86_64__)
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
    ((ucontext_t *)context)->uc_mcontext.regs[0] = (uint64_t)-EPERM;
#endif
}

static sigjmp_buf recovered;

static void recover(int number) {
    (void)number;
    siglongjmp(recovered, 1);
}

void host_handle_all_blocked(void) {
    struct sigaction refusing = {.sa_sigaction = refuse, .sa_flags = SA_SIGINFO};
    struct sigaction recovering = {.sa_handler = recover};
    sigfillset(&recovering.sa_mask);
    sigaction(SIGSYS, &refusing, NULL);
    sigaction(SIGSEGV, &recovering, NULL);
}

void host_recover_from_faults(int count) {
    for (volatile int i = 0; i < count; i++) {
        if (!sigsetjmp(recovered, 1)) *(volatile int *)8 = 1;
    }
}

bool host_emulate_handler_call(int index) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[index].number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof program / sizeof *program, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void host_block_refusals(bool is_blocked) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigprocmask(is_blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

// MARK: Pages that cannot be read

enum { PAGE = 4096, ROOM = 1 << 16 };

bool host_spin_below_guard_page(uint64_t ns) {
    char *room = alloca(ROOM);
    char *page = (char *)(((uintptr_t)room + ROOM / 2) & ~(uintptr_t)(PAGE - 1));
    if (mprotect(page, PAGE, PROT_NONE) != 0) return false;
    host_spin(ns);
    return mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0;
}

// MARK: Handlers in a circle

static struct {
    struct sigaction before;
    int calls, pipe;
    bool jumps;
} reporter;

enum { MOST_CALLS = 50, ENDLESS = 77 };

// Knows that it is installed already only where no other handler is in front of it.
static void report(int number, siginfo_t *info, void *context) {
    reporter.calls++;
    (void)!write(reporter.pipe, "x", 1);
    if (reporter.calls > MOST_CALLS) _exit(ENDLESS);
    if (reporter.before.sa_flags & SA_SIGINFO && reporter.before.sa_sigaction != report) {
        if (reporter.jumps) __attribute__((musttail)) return reporter.before.sa_sigaction(number, info, context);
        reporter.before.sa_sigaction(number, info, context);
        // A release build would jump there, too.
        __asm__ volatile("" ::: "memory");
    } else if (number != SIGPROF && number != SIGURG) {
        signal(number, SIG_DFL);
    }
}

static void install_reporter(int number) {
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before;
    sigaction(number, NULL, &before);
    if (before.sa_flags & SA_SIGINFO && before.sa_sigaction == report) return;
    sigaction(number, &action, &reporter.before);
}

static struct sigaction found;
static int chained;

static void chain(int number, siginfo_t *info, void *context) {
    if (found.sa_flags & SA_SIGINFO) found.sa_sigaction(number, info, context);
}

void host_chain_without_end(void) {
    const struct sigaction action = {.sa_sigaction = chain, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(chained, &action, &found);
}

int host_report_in_circle(int number, bool is_sent, bool jumps, void (*start)(void), int *status) {
    int ends[2], count = 0;
    char byte;
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        reporter.pipe = ends[1];
        reporter.jumps = jumps;
        chained = number;
        install_reporter(number);
        start();
        install_reporter(number);
        if (is_sent) raise(number);
        else *(volatile int *)8 = 1;
        _exit(0);
    }
    close(ends[1]);
    while (read(ends[0], &byte, 1) == 1) count++;
    close(ends[0]);
    waitpid(child, status, 0);
    return count;
}
