#define _GNU_SOURCE
#include "stall_standard_error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stall_descriptors.h"

// POSIX's PIPE_BUF on Linux: a pipe takes so much as a whole or not at all.
enum { LONGEST_PART = 4096 };

static uint32_t dropped_count;

// A description of its own does not wait, whatever the flags of the one that is shared.
static ssize_t write_to_own_description(const char *text, size_t length) {
    const int file = stall_descriptor_own(open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (file >= 0) {
        const ssize_t count = write(file, text, length);
        stall_descriptor_end(file);
        return count;
    }
    if (errno == ENXIO) return -1;  // a FIFO without a reader
    // Another user's, or no /proc. This may wait, but not with a lock that an exit takes.
    return write(STDERR_FILENO, text, length);
}

static bool write_at_once(const char *text, size_t length) {
    struct stat facts;
    if (fstat(STDERR_FILENO, &facts) != 0) return false;
    // A file has one position for all that write to it, and no reader.
    if (S_ISREG(facts.st_mode)) return write(STDERR_FILENO, text, length) == (ssize_t)length;
    if (length > LONGEST_PART) length = LONGEST_PART;
    if (S_ISSOCK(facts.st_mode)) return send(STDERR_FILENO, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
    return write_to_own_description(text, length) > 0;
}

static bool write_without_signal(const char *text, size_t length) {
    sigset_t pipe_signal, before, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    const bool is_written = write_at_once(text, length);
    if (!is_written && errno == EPIPE && !was_pending) {
        const struct timespec none = {0};
        sigtimedwait(&pipe_signal, NULL, &none);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_written;
}

void stall_standard_error_write(const char *line, size_t length) {
    const int saved = errno;
    const uint32_t dropped = __atomic_exchange_n(&dropped_count, 0, __ATOMIC_RELAXED);
    bool is_written = true;
    if (dropped > 0) {
        char note[80];
        const int size = snprintf(note, sizeof note, "stallwatch: %u lines before this one were dropped\n", dropped);
        is_written = write_without_signal(note, (size_t)size);
        if (!is_written) __atomic_fetch_add(&dropped_count, dropped, __ATOMIC_RELAXED);
    }
    if (!is_written || !write_without_signal(line, length)) __atomic_fetch_add(&dropped_count, 1, __ATOMIC_RELAXED);
    errno = saved;
}
