#define _GNU_SOURCE
#include "stall_events.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int stall_signal_descriptor(const int *signals, size_t count) {
    sigset_t set, before;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) {
        if (sigaddset(&set, signals[i]) != 0) return -1;
    }
    const int error = pthread_sigmask(SIG_BLOCK, &set, &before);
    if (error != 0) {
        errno = error;
        return -1;
    }
    const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        const int kept = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = kept;
    }
    return fd;
}

bool stall_signal_take(int fd, int *signal, pid_t *sender) {
    struct signalfd_siginfo info;
    ssize_t size;
    do size = read(fd, &info, sizeof info);
    while (size < 0 && errno == EINTR);
    if (size != sizeof info) return false;
    *signal = (int)info.ssi_signo;
    *sender = (pid_t)info.ssi_pid;
    return true;
}

int stall_process_descriptor(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int stall_process_wait(pid_t pid, int *status) {
    int raw;
    pid_t ended;
    do ended = waitpid(pid, &raw, WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (ended != pid) return -1;
    *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : WTERMSIG(raw);
    return WIFEXITED(raw) ? 0 : 1;
}
