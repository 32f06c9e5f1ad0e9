#define _GNU_SOURCE
#include "stall_call_probe.h"
#include "stall_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// Each returns 0, or the errno that the call fails with beyond the expected one.

static int unless(long result, int expected) { return result >= 0 || errno == expected ? 0 : errno; }

static int read_memory(void) {
    char from = 0, to;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    return unless(process_vm_readv(stall_gettid(), &local, 1, &remote, 1, 0), 0);
}

// Signal 0 is only checked.
static int queue_signal(void) {
    siginfo_t info = {.si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    return unless(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), 0, &info), 0);
}

static int look_for_thread(void) { return unless(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0), 0); }

static int pause_for_nothing(void) {
    const struct timespec none = {0};
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &none, NULL);
}

static int read_option(void) {
    int value;
    socklen_t size = sizeof value;
    return unless(getsockopt(-1, SOL_SOCKET, SO_DOMAIN, &value, &size), EBADF);
}

static int read_peer(void) {
    struct sockaddr address;
    socklen_t size = sizeof address;
    return unless(getpeername(-1, &address, &size), EBADF);
}

static int identify(void) {
    struct statx facts;
    return unless(statx(-1, "", AT_EMPTY_PATH, STATX_INO, &facts), EBADF);
}

static int advise(void) {
    const int error = posix_fadvise(-1, 0, 0, POSIX_FADV_NORMAL);
    return error == EBADF ? 0 : error;
}

// Optional: fstat suffices for sockets and pipes, and kernels are built without it.
static int compare(void) {
    syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0);
    return 0;
}

static int send_nothing(void) {
    struct stat facts;
    if (fstat(STDERR_FILENO, &facts) != 0 || !S_ISSOCK(facts.st_mode)) return 0;
    return unless(send(-1, "", 0, 0), EBADF);
}

static const struct {
    const char *name, *effect;
    int (*probe)(void);
} probes[] = {
    {"process_vm_readv", "memory is read through /proc/thread-self/mem or a pipe, which is slower", read_memory},
    {"rt_tgsigqueueinfo", "a thread that computes is reported without a stack", queue_signal},
    {"tgkill", "threads that have ended are not recognized", look_for_thread},
    {"clock_nanosleep", "a capture waits without a pause", pause_for_nothing},
    {"getsockopt", "a wait for a socket is reported without the kind of the socket", read_option},
    {"getpeername", "a wait for a socket is reported without its peer", read_peer},
    {"statx", "the agent does not notice that the app has closed its descriptors", identify},
    {"fadvise64", "a wait for a FIFO may be reported as one for a disk", advise},
    {"sendto", "the agent's own lines are lost, because standard error is a socket", send_nothing},
    {"kcmp", "", compare},
};

size_t stall_calls_probe(stall_refused_call *refused, size_t capacity) {
    const int saved = errno;
    size_t count = 0;
    for (size_t index = 0; index < sizeof probes / sizeof *probes; index++) {
        const int error = probes[index].probe();
        if (error == 0) continue;
        if (count < capacity) refused[count] = (stall_refused_call){probes[index].name, probes[index].effect, error};
        count++;
    }
    errno = saved;
    return count;
}
