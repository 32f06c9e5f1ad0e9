#define _GNU_SOURCE
#include "stall_events.h"
#include "stall_descriptors.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stall_poll.h"

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
    const int fd = stall_above_standard(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
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

int stall_process_descriptor(pid_t pid, bool again) {
    siginfo_t info;
    if (again && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return -1;
    return stall_above_standard((int)syscall(SYS_pidfd_open, pid, 0));
}

int stall_process_wait(pid_t pid, int *status) {
    int raw;
    pid_t ended;
    do ended = waitpid(pid, &raw, WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (ended == 0) return 2;
    if (ended != pid) return -1;
    *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : WTERMSIG(raw);
    return WIFEXITED(raw) ? 0 : 1;
}

// The kernel's bits and ours.
static const struct { uint32_t kernel, ours; } file_events[] = {
    {IN_CREATE | IN_MOVED_TO, STALL_FILE_CREATED},
    {IN_DELETE | IN_MOVED_FROM, STALL_FILE_DELETED},
    {IN_CLOSE_WRITE, STALL_FILE_WRITTEN},
    {IN_MODIFY, STALL_FILE_MODIFIED},
    {IN_ATTRIB, STALL_FILE_ATTRIBUTES},
    {IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED, STALL_FILE_GONE},
    {IN_Q_OVERFLOW, STALL_FILE_LOST},
};
enum { FILE_EVENT_COUNT = sizeof file_events / sizeof file_events[0] };

// An event that can be read at once: the end of the watch of another directory.
static void add_first_event(int fd) {
    const int other = inotify_add_watch(fd, "/", IN_DELETE_SELF);
    if (other >= 0) inotify_rm_watch(fd, other);
}

int stall_watch_descriptor(const char *path, uint32_t events, bool again, int *watch, const char **call) {
    uint32_t mask = IN_DELETE_SELF | IN_MOVE_SELF;
    for (int i = 0; i < FILE_EVENT_COUNT; i++)
        if (events & file_events[i].ours) mask |= file_events[i].kernel & IN_ALL_EVENTS;
    *call = "inotify_init1";
    const int fd = stall_above_standard(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (fd < 0) return -1;
    *call = "inotify_add_watch";
    if (again) add_first_event(fd);
    *watch = inotify_add_watch(fd, path, mask);
    if (*watch >= 0) return fd;
    const int kept = errno;
    close(fd);
    errno = kept;
    return -1;
}

size_t stall_watch_read(int fd, void *buffer, size_t capacity) {
    ssize_t size;
    do size = read(fd, buffer, capacity);
    while (size < 0 && errno == EINTR);
    return size < 0 ? 0 : (size_t)size;
}

bool stall_watch_next(
    const void *buffer, size_t size, int watch, size_t *offset, uint32_t *events, const char **name) {
    if (*offset > size || size - *offset < sizeof(struct inotify_event)) return false;
    const struct inotify_event *event = (const void *)((const char *)buffer + *offset);
    if (size - *offset - sizeof *event < event->len) return false;
    *offset += sizeof *event + event->len;
    *events = 0;
    for (int i = 0; i < FILE_EVENT_COUNT; i++)
        if (event->mask & file_events[i].kernel) *events |= file_events[i].ours;
    // The watch of another directory only makes the first event.
    if (event->wd >= 0 && event->wd != watch) *events = STALL_FILE_LOST;
    *name = event->len > 0 ? event->name : "";
    return true;
}
