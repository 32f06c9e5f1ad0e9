#define _GNU_SOURCE
#include "stall_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "number_set.h"
#include "stall_numbers.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

// An app may use any of these for a file of its own, but not both without O_ASYNC.
enum { MARK = 61 };
static bool can_mark;

// The numbers of files that could not be marked: a sandbox may refuse it from some time on, or in some threads.
static number_set refused;

int stall_above_standard(int descriptor) {
    if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
    const int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), saved = errno;
    close(descriptor);
    errno = saved;
    return above;
}

// False with errno.
static bool mark(int descriptor, int type, pid_t id) {
    const struct f_owner_ex owner = {.type = type, .pid = id};
    if (fcntl(descriptor, F_SETOWN_EX, &owner) != 0 || fcntl(descriptor, F_SETSIG, MARK) != 0) return false;
    __atomic_store_n(&can_mark, true, __ATOMIC_RELAXED);
    return true;
}

static void mark_or_remember(int descriptor, int type, pid_t id) {
    const int saved = errno;
    const bool is_marked = mark(descriptor, type, id);
    number_set_change(&refused, descriptor, !is_marked && errno != EBADF);
    errno = saved;
}

int stall_descriptor_own(int descriptor) {
    descriptor = stall_above_standard(descriptor);
    if (descriptor >= 0) mark_or_remember(descriptor, F_OWNER_PGRP, getpgrp());
    return descriptor;
}

// Of a file that is only read, none of these changes anything.
enum { READING = O_RDONLY | O_APPEND | O_SYNC | O_NONBLOCK };

int stall_descriptor_open_to_read(const char *path, int flags) {
    return stall_above_standard(open(path, READING | O_CLOEXEC | O_NOCTTY | flags));
}

static bool is_reading(int descriptor) {
    const int saved = errno, flags = fcntl(descriptor, F_GETFL);
    errno = saved;
    return flags >= 0 && (flags & (READING | O_ACCMODE)) == READING;
}

bool stall_descriptor_mark_for(int descriptor, pid_t thread) { return mark(descriptor, F_OWNER_TID, thread); }

int stall_descriptor_own_for(int descriptor, pid_t thread) {
    descriptor = stall_above_standard(descriptor);
    if (descriptor < 0) return descriptor;
    const int saved = errno;
    if (stall_descriptor_mark_for(descriptor, thread) || errno != ESRCH) {
        errno = saved;
        return descriptor;
    }
    close(descriptor);
    errno = ESRCH;
    return -1;
}

// The receiver of the signal that marks a file; false if the file is not marked.
static bool has_mark(int descriptor, struct f_owner_ex *owner) {
    const int saved = errno;
    const bool has = fcntl(descriptor, F_GETSIG) == MARK && fcntl(descriptor, F_GETOWN_EX, owner) == 0;
    errno = saved;
    return has;
}

bool stall_descriptor_is_own(int descriptor) {
    struct f_owner_ex owner;
    return is_reading(descriptor)
        || (has_mark(descriptor, &owner) && (owner.type == F_OWNER_PGRP || owner.type == F_OWNER_TID));
}

bool stall_descriptor_is_for(int descriptor, pid_t thread) {
    struct f_owner_ex owner;
    // Of a thread that has ended, newer kernels give no number.
    return has_mark(descriptor, &owner) && owner.type == F_OWNER_TID && (owner.pid == thread || owner.pid == 0);
}

bool stall_descriptor_is_lost(int descriptor, pid_t thread) {
    return __atomic_load_n(&can_mark, __ATOMIC_RELAXED) && !stall_descriptor_is_for(descriptor, thread);
}

void stall_descriptor_close_for(int descriptor, pid_t thread) {
    if (stall_descriptor_is_for(descriptor, thread)) close(descriptor);
}

// The ticket of the file that has each number, 0 for other files. A number above them is recognized by its mark alone.
static uint32_t tickets[NUMBER_SET_SIZE];
static uint32_t last_ticket;

uint32_t stall_descriptor_own_one(int descriptor) {
    if (descriptor < 0) return 0;
    uint32_t ticket;
    do ticket = __atomic_add_fetch(&last_ticket, 1, __ATOMIC_RELAXED);
    while (ticket == 0);
    if (descriptor < NUMBER_SET_SIZE) __atomic_store_n(&tickets[descriptor], ticket, __ATOMIC_RELAXED);
    mark_or_remember(descriptor, F_OWNER_PID, getpid());
    return ticket;
}

bool stall_descriptor_is_one(int descriptor, uint32_t ticket) {
    struct f_owner_ex owner;
    if (descriptor < 0 || ticket == 0) return false;
    if (descriptor < NUMBER_SET_SIZE && __atomic_load_n(&tickets[descriptor], __ATOMIC_RELAXED) != ticket) return false;
    if (!__atomic_load_n(&can_mark, __ATOMIC_RELAXED) || number_set_has(&refused, descriptor)) return true;
    return has_mark(descriptor, &owner) && owner.type == F_OWNER_PID;
}

void stall_descriptor_close_one(int descriptor, uint32_t ticket) {
    if (stall_descriptor_is_one(descriptor, ticket)) close(descriptor);
}

bool stall_waiter_is_lost(int descriptor, pid_t thread) {
    if (!__atomic_load_n(&can_mark, __ATOMIC_RELAXED)) return false;
    const int saved = errno;
    // libc's fcntl makes another call of it, which copies a structure.
    const bool is_lost = syscall(SYS_fcntl, descriptor, F_GETOWN) != thread;
    errno = saved;
    return is_lost;
}

bool stall_descriptor_is_foreign(int descriptor) {
    return __atomic_load_n(&can_mark, __ATOMIC_RELAXED) && !number_set_has(&refused, descriptor) && !stall_descriptor_is_own(descriptor);
}

void stall_descriptor_close(int descriptor) {
    if (stall_descriptor_is_own(descriptor)) close(descriptor);
}

void stall_descriptor_end(int descriptor) {
    const int saved = errno;
    if (descriptor >= 0 && !stall_descriptor_is_foreign(descriptor)) close(descriptor);
    errno = saved;
}

void stall_descriptor_keep_only(int descriptor) {
    enum { UNSHARE = 2 };
    const int saved = errno;
    if (descriptor >= 0 && syscall(SYS_close_range, (unsigned)descriptor + 1, ~0U, UNSHARE) == 0 && descriptor > 0)
        syscall(SYS_close_range, 0U, (unsigned)descriptor - 1, 0);
    errno = saved;
}

bool stall_descriptor_identity(int descriptor, stall_file_identity *identity) {
    struct statx facts;
    // AT_STATX_DONT_SYNC, because a file of a dead network server would block.
    if (statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &facts) != 0) return false;
    *identity = (stall_file_identity){makedev(facts.stx_dev_major, facts.stx_dev_minor), facts.stx_ino};
    return true;
}

int32_t stall_descriptors_of(stall_file_identity identity, int32_t *numbers, int32_t capacity) {
    stall_numbers descriptors;
    int32_t count = 0;
    if (!stall_numbers_open(&descriptors, "/proc/thread-self/fd")) return 0;
    for (int32_t number; count < capacity && (number = stall_numbers_next(&descriptors)) >= 0;) {
        stall_file_identity found;
        if (number == descriptors.directory || !stall_descriptor_identity(number, &found)) continue;
        if (found.device == identity.device && found.inode == identity.inode) numbers[count++] = number;
    }
    stall_numbers_close(&descriptors);
    return count;
}
