// What few apps do, and none may be harmed for: coroutines in the heap, handlers on the interrupted stack, emulated system
// calls, waits for signals, sandboxes, descriptors that are replaced while the process is stopped.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <setjmp.h>
#include <ucontext.h>
#include <unistd.h>

#include "host_safety.h"

enum { STACK = 64 << 10 };

void host_run_in_coroutine(void (*body)(void)) {
    static ucontext_t outside, inside;
    // Not from a mapping of its own, as larger ones are.
    char *stack = malloc(STACK);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, body, 0);
    swapcontext(&outside, &inside);
    free(stack);
}

void host_restart_without_stack_limit(char *const *arguments) {
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_STACK, &none) == 0) execv("/proc/self/exe", arguments);
}

// MARK: Handlers

static sigjmp_buf recovered;

static void use_much_stack(int number) {
    (void)number;
    volatile char large[STACK];
    memset((void *)large, 1, sizeof large);
    siglongjmp(recovered, 1);
}

void host_handle_on_own_stack(void) {
    signal(SIGSEGV, use_much_stack);
    host_use_small_alternate_stack(2048);
}

void host_fault_on_own_stack(void) {
    if (!sigsetjmp(recovered, 1)) *(volatile int *)8 = 1;
}

static bool filter(struct sock_filter *program, unsigned short length) {
    const struct sock_fprog filter = {length, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

bool host_allow_only(const int *calls, int count) {
    struct sock_filter *program = calloc(2 * (size_t)count + 2, sizeof *program);
    if (!program) return false;
    unsigned short length = 0;
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < count; i++) {
        program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    return filter(program, length);  // which copies it; nothing may be freed without a call now
}

enum { EMULATED = 4711 };

static void emulate(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
#if defined(__x86_64__)
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = EMULATED;
#else
    ((ucontext_t *)context)->uc_mcontext.regs[0] = EMULATED;
#endif
}

bool host_emulate_getpid(void) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filter(program, sizeof program / sizeof *program);
}

pid_t host_emulated_getpid(void) { return (pid_t)syscall(SYS_getpid); }

void host_handle_refused_calls(void) {
    struct sigaction action = {.sa_sigaction = emulate, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
}

// MARK: SIGPROF

int host_wait_for_profile_signals(int count) {
    const struct timespec limit = {.tv_sec = 1};
    sigset_t set;
    int came = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < count; i++) {
        kill(getpid(), SIGPROF);
        came += sigtimedwait(&set, NULL, &limit) == SIGPROF;
    }
    return came;
}

void host_ignore_profile_signals(void) { signal(SIGPROF, SIG_IGN); }

bool host_ignores_profile_signals(void) {
    struct sigaction action;
    return sigaction(SIGPROF, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN;
}

// MARK: Descriptors

bool host_refuse_marks(void) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETSIG, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filter(program, sizeof program / sizeof *program);
}

int host_count_descriptors(void) {
    int count = 0;
    for (int i = 0; i < 4096; i++) count += fcntl(i, F_GETFD) >= 0;
    return count;
}

int host_lost_bytes_after_stop(int numbers) {
    enum { MESSAGE = 18, MOST = 256 };
    int writers[MOST], lost = 0;
    closefrom(3);
    if (numbers > MOST) numbers = MOST;
    for (int i = 0; i < numbers; i++) {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK) != 0) return -1;
        writers[i] = fcntl(ends[1], F_DUPFD, 1024 - MOST);
        close(ends[1]);
        if (ends[0] != 3 + i && (dup2(ends[0], 3 + i), close(ends[0])) != 0) return -1;
        if (fcntl(3 + i, F_SETFL, 0) != 0) return -1;  // what reads it waits
    }
    const pid_t own = getpid(), child = fork();
    if (child == 0) {
        for (int round = 0; round < 3; round++) {
            kill(own, SIGSTOP);
            host_rest(100000000);
            kill(own, SIGCONT);
            host_rest(100000000);
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
    for (int i = 0; i < numbers; i++) (void)!write(writers[i], "message of the app", MESSAGE);
    host_rest(200000000);
    for (int i = 0; i < numbers; i++) {
        char message[MESSAGE];
        fcntl(3 + i, F_SETFL, O_NONBLOCK);
        const ssize_t count = read(3 + i, message, sizeof message);
        lost += MESSAGE - (count > 0 ? (int)count : 0);
    }
    return lost;
}
