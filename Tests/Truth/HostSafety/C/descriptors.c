// An app that closes all descriptors from 3 on, as daemons do, and opens its own in their place: one kind at a time.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "host_safety.h"

enum { MOST = 64 };

static struct {
    int numbers[MOST], count;
    const char *kind;
} own;

static const char *const kinds[] = {
    "eventfd", "epoll", "timerfd", "signalfd", "inotify", "pidfd", "memfd", "file", "directory", "pipe", "socket",
    "datagram", "own stat", "own syscall", "pressure", "terminal", "null"};

const char *host_descriptor_kind(int index) {
    return index < (int)(sizeof kinds / sizeof *kinds) ? kinds[index] : NULL;
}

static int open_one(const char *kind) {
    if (!strcmp(kind, "eventfd")) return eventfd(0, EFD_NONBLOCK);
    if (!strcmp(kind, "epoll")) return epoll_create1(0);
    if (!strcmp(kind, "timerfd")) return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    if (!strcmp(kind, "signalfd")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        return signalfd(-1, &set, SFD_NONBLOCK);
    }
    if (!strcmp(kind, "inotify")) return inotify_init1(IN_NONBLOCK);
    if (!strcmp(kind, "pidfd")) return (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (!strcmp(kind, "memfd")) return memfd_create("app", 0);
    if (!strcmp(kind, "file")) return open("/tmp", O_RDWR | O_TMPFILE, 0600);
    if (!strcmp(kind, "directory")) return open("/tmp", O_RDONLY | O_DIRECTORY);
    if (!strcmp(kind, "own stat")) return open("/proc/self/stat", O_RDONLY);
    if (!strcmp(kind, "own syscall")) return open("/proc/thread-self/syscall", O_RDONLY);
    if (!strcmp(kind, "pressure")) return open("/proc/pressure/cpu", O_RDONLY);
    if (!strcmp(kind, "terminal")) return posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (!strcmp(kind, "null")) return open("/dev/null", O_RDWR);
    int ends[2];
    if (!strcmp(kind, "pipe") && pipe2(ends, O_NONBLOCK) == 0) return close(ends[1]), ends[0];
    if (!strcmp(kind, "socket") && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0) return ends[0];
    if (!strcmp(kind, "datagram")) return socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    return -1;
}

bool host_replace_descriptors(const char *kind) {
    closefrom(3);
    own.kind = NULL;
    for (int i = 0; host_descriptor_kind(i); i++)
        if (!strcmp(kind, kinds[i])) own.kind = kinds[i];
    if (!own.kind) return false;
    for (own.count = 0; own.count < MOST; own.count++) {
        own.numbers[own.count] = open_one(kind);
        if (own.numbers[own.count] < 0) break;
    }
    return own.count > 0;
}

// Something was written into it, or it was armed or filled.
static bool is_written(int number) {
    if (!strcmp(own.kind, "eventfd")) {
        struct pollfd request = {number, POLLIN, 0};
        return poll(&request, 1, 0) > 0;
    }
    if (!strcmp(own.kind, "timerfd")) {
        struct itimerspec set;
        return timerfd_gettime(number, &set) == 0 && (set.it_value.tv_sec | set.it_value.tv_nsec) != 0;
    }
    if (!strcmp(own.kind, "epoll")) {
        char path[48] = "/proc/self/fdinfo/", digits[12], text[4096];
        size_t length = strlen(path), count = 0;
        for (int rest = number; count == 0 || rest > 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
        while (count > 0) path[length++] = digits[--count];
        path[length] = 0;
        const int file = open(path, O_RDONLY);
        const ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
        if (file >= 0) close(file);
        text[size > 0 ? size : 0] = 0;
        return strstr(text, "tfd:") != NULL;
    }
    if (!strcmp(own.kind, "file") || !strcmp(own.kind, "memfd")) return lseek(number, 0, SEEK_END) != 0;
    return false;
}

int host_touched_descriptors(void) {
    int touched = 0;
    for (int i = 0; i < own.count; i++) {
        touched += fcntl(own.numbers[i], F_GETFD) == -1 || is_written(own.numbers[i]);
    }
    return touched;
}

int host_open_files(int count) {
    int opened = 0, *numbers = malloc((size_t)count * sizeof *numbers);
    while (opened < count && (numbers[opened] = open("/dev/null", O_RDONLY)) >= 0) opened++;
    for (int i = 0; i < opened; i++) close(numbers[i]);
    free(numbers);
    return opened;
}

// MARK: The standard ones

void host_close_standard(int closed) {
    for (int i = 0; i < 3; i++)
        if (closed >> i & 1) close(i);
}

int host_occupied_standard(int closed) {
    int occupied = closed;
    // A descriptor that is moved away at once is seen at most in some of the looks, though a thread that waits for a
    // CPU in between may hold it for tens of milliseconds: 20 looks in 10 ms, and then 200 in 2 s.
    for (int look = 0; look < 220 && occupied; look++) {
        for (int i = 0; i < 3; i++)
            if (fcntl(i, F_GETFD) < 0) occupied &= ~(1 << i);
        host_rest(look < 20 ? 500000 : 10000000);
    }
    return occupied;
}

static pthread_t movers[3];
static bool is_moving;

static void *move(void *unused) {
    while (__atomic_load_n(&is_moving, __ATOMIC_RELAXED)) {
        const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
        const int above = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (file >= 0) close(file);
        if (above >= 0) close(above);
    }
    return unused;
}

void host_move_files(void) {
    is_moving = true;
    for (int i = 0; i < 3; i++) pthread_create(&movers[i], NULL, move, NULL);
}

void host_stop_moving_files(void) {
    __atomic_store_n(&is_moving, false, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) pthread_join(movers[i], NULL);
}
