#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "host_safety.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/time.h>

// As large programs have them. A thread whose stack was sized without it could not start.
#define HOST_LARGE 66000
_Thread_local volatile char host_large_variable[HOST_LARGE];

void host_touch_large_variable(void) { host_large_variable[HOST_LARGE - 1] = 1; }

bool host_hide_proc(void) {
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
        && mount("none", "/proc", "tmpfs", 0, NULL) == 0;
}

bool host_show(const char *directory, const char *also_at) {
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
        && mount(directory, also_at, NULL, MS_BIND, NULL) == 0;
}

bool host_lock_in(const char *directory) { return chroot(directory) == 0 && chdir("/") == 0; }

bool host_mount_read_only(const char *directory) {
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
        && mount(directory, directory, NULL, MS_BIND, NULL) == 0
        && mount(NULL, directory, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0;
}

enum { NOT_ALLOWED = 99 };

static int wait_for(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == NOT_ALLOWED ? -1 : status;
}

int host_run_in_pid_namespace(const char *program, char *const *arguments) {
    const pid_t parent = fork();
    if (parent != 0) return wait_for(parent);
    // The namespace is that of the children that come after.
    if (unshare(CLONE_NEWPID) != 0) _exit(NOT_ALLOWED);
    const pid_t child = fork();
    if (child == 0) {
        execv(program, arguments);
        _exit(127);
    }
    const int status = wait_for(child);
    if (status == -1) _exit(NOT_ALLOWED);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

bool host_give_capability(const char *program) {
    const struct vfs_cap_data capability = {
        .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, .data = {{.permitted = 1 << CAP_NET_BIND_SERVICE}}};
    return setxattr(program, "security.capability", &capability, XATTR_CAPS_SZ_2, 0) == 0;
}

int host_run_as(uid_t user, const char *program, char *const *arguments) {
    const pid_t child = fork();
    if (child != 0) return wait_for(child);
    if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0) _exit(NOT_ALLOWED);
    execv(program, arguments);
    _exit(127);
}

bool host_is_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1; }

static sigjmp_buf recovery;
static void recover(int number) {
    (void)number;
    siglongjmp(recovery, 1);
}

void host_fault_and_recover(void) {
    struct sigaction action = {.sa_handler = recover}, before;
    sigaction(SIGSEGV, &action, &before);
    if (sigsetjmp(recovery, 1) == 0) *(volatile int *)8 = 1;
    sigaction(SIGSEGV, &before, NULL);
}

static void refuse_call(long number) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    syscall(number);
}

void host_die(const char *how) {
    if (strcmp(how, "trap") == 0) __builtin_debugtrap();
    if (strcmp(how, "sandbox") == 0) refuse_call(SYS_getppid);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "fault") == 0 || strcmp(how, "reset") == 0) *(volatile int *)8 = 1;
}

static int faults;
static void count_fault(int number) {
    (void)number;
    if (++faults > 3) _exit(77);
}

void host_handle_one_fault(void) {
    const struct sigaction action = {.sa_handler = count_fault, .sa_flags = SA_RESETHAND};
    sigaction(SIGSEGV, &action, NULL);
}

static void count_profile(int number) { (void)number; }

void host_profile_itself(void) {
    struct sigaction action = {.sa_handler = count_profile, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    const struct itimerval every = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_PROF, &every, NULL);
}

void host_make_undumpable(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

void host_limit(int resource, uint64_t value) {
    const struct rlimit limit = {value, value};
    setrlimit((__rlimit_resource_t)resource, &limit);
}

void host_block_signals(bool all_but_none) {
    sigset_t set;
    sigemptyset(&set);
    if (all_but_none) sigfillset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

void host_leave_profile_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGPROF);
}

pid_t host_fork(void) { return fork(); }

pid_t host_vfork_exec(const char *program, const char *argument) {
    pid_t child = vfork();
    if (child == 0) {
        execl(program, program, argument, (char *)NULL);
        _exit(127);
    }
    return child;
}

int host_deny_call(long number, int error) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    // All threads: the agent's run already.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ? 0 : errno;
}

int host_deny_openat(int error) { return host_deny_call(SYS_openat, error); }

void host_lock_file(int file, short type, bool waits) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    fcntl(file, waits ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
}

void host_wait_in_epoll(int milliseconds) {
    struct epoll_event event;
    const int set = epoll_create1(EPOLL_CLOEXEC);
    epoll_wait(set, &event, 1, milliseconds);
    close(set);
}

void host_rest(uint64_t ns) {
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

void host_spin(uint64_t ns) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t end = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ns;
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec < end);
}

bool host_make_setuid(const char *program) { return chown(program, 0, 0) == 0 && chmod(program, 04755) == 0; }
