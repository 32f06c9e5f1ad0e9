// What is waited for in calls that look like file I/O: leases, terminals, notifications, rings. The sites and plants wait
// themselves; here is what Swift's Glibc lacks.
#define _GNU_SOURCE
#include "stall_sites.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

bool site_terminal(int *ends) {
    char name[64];
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0 || grantpt(ends[0]) != 0 || unlockpt(ends[0]) != 0 || ptsname_r(ends[0], name, sizeof name) != 0)
        return false;
    ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct termios raw;
    if (ends[1] < 0 || tcgetattr(ends[1], &raw) != 0) return false;
    cfmakeraw(&raw);
    return tcsetattr(ends[1], TCSANOW, &raw) == 0;
}

int site_inotify(const char *folder) {
    const int file = inotify_init1(IN_CLOEXEC);
    if (file >= 0) inotify_add_watch(file, folder, IN_CREATE);
    return file;
}

int site_fanotify(const char *path, bool asks) {
    const int file = fanotify_init(FAN_CLOEXEC | (asks ? FAN_CLASS_CONTENT : FAN_CLASS_NOTIF), O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    if (fanotify_mark(file, FAN_MARK_ADD, asks ? FAN_OPEN_PERM : FAN_OPEN | FAN_ONDIR, AT_FDCWD, path) == 0) return file;
    close(file);
    return -1;
}

void site_fanotify_answer(int file) {
    struct fanotify_event_metadata event;
    if (read(file, &event, sizeof event) < (ssize_t)sizeof event) return;
    const struct fanotify_response response = {.fd = event.fd, .response = FAN_ALLOW};
    if (write(file, &response, sizeof response) != sizeof response) abort();
    close(event.fd);
}

int site_signalfd(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

void site_signal_thread(pid_t thread, int number) { syscall(SYS_tgkill, getpid(), thread, number); }

int site_pidfd(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int site_epoll_empty(void) { return epoll_create1(EPOLL_CLOEXEC); }

int site_epoll_for(int set, int milliseconds) {
    struct epoll_event event;
    return epoll_wait(set, &event, 1, milliseconds) + 1;
}

void site_linger(int file) {
    char bytes[1 << 14] = {0};
    const struct linger limit = {.l_onoff = 1, .l_linger = 20};
    setsockopt(file, SOL_SOCKET, SO_LINGER, &limit, sizeof limit);
    while (send(file, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
}

int site_replace(int from, int to) { return dup3(from, to, O_CLOEXEC) + 1; }

// One entry: submits it and waits for its completion.
struct site_ring {
    int file;
    char *queue;
    struct io_uring_sqe *entries;
    struct io_uring_params parameters;
};

site_ring *site_ring_new(void) {
    site_ring *ring = calloc(1, sizeof *ring);
    ring->file = (int)syscall(SYS_io_uring_setup, 4, &ring->parameters);
    if (ring->file < 0) return free(ring), NULL;
    const struct io_uring_params *p = &ring->parameters;
    const int access = PROT_READ | PROT_WRITE;
    ring->queue = mmap(NULL, p->sq_off.array + p->sq_entries * sizeof(unsigned), access, MAP_SHARED, ring->file, 0);
    ring->entries = mmap(NULL, p->sq_entries * sizeof *ring->entries, access, MAP_SHARED, ring->file, IORING_OFF_SQES);
    return ring;
}

int site_ring_wait(site_ring *ring, int operation, int file) {
    static char byte;
    struct io_uring_sqe *entry = &ring->entries[0];
    memset(entry, 0, sizeof *entry);
    entry->opcode = (unsigned char)operation;
    entry->fd = file;
    if (operation == IORING_OP_POLL_ADD) {
        entry->poll32_events = 1;
    } else {
        entry->addr = (uintptr_t)&byte;
        entry->len = 1;
    }
    ((unsigned *)(ring->queue + ring->parameters.sq_off.array))[0] = 0;
    __atomic_fetch_add((unsigned *)(ring->queue + ring->parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    return (int)syscall(SYS_io_uring_enter, ring->file, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) + 1;
}

void site_ring_free(site_ring *ring) {
    close(ring->file);
    free(ring);
}
