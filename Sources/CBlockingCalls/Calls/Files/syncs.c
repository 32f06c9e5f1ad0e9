// Waits for a disk to have written, and for locks of files.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../descriptors.h"
#include "../interpose.h"

// <fcntl.h> has this since glibc 2.28.
extern int fcntl64(int, int, ...);

INTERPOSE(fsync)
INTERPOSE(fdatasync)
INTERPOSE(sync)
INTERPOSE(syncfs)
INTERPOSE(sync_file_range)
INTERPOSE(msync)
INTERPOSE(flock)
INTERPOSE(lockf)
INTERPOSE(lockf64)
INTERPOSE(fcntl)
INTERPOSE(fcntl64)

int fsync(int file) { RETURN_CALL(fsync, blocking_kind_of_file(file), (file)); }

int fdatasync(int file) { RETURN_CALL(fdatasync, blocking_kind_of_file(file), (file)); }

void sync(void) { MAKE_CALL(sync, STALL_BLOCKING_DISK, ()); }

int syncfs(int file) { RETURN_CALL(syncfs, blocking_kind_of_file(file), (file)); }

int sync_file_range(int file, off64_t at, off64_t size, unsigned flags) {
    RETURN_CALL(sync_file_range, blocking_kind_of_file(file), (file, at, size, flags));
}

int msync(void *start, size_t size, int flags) {
    RETURN_CALL(msync, flags & MS_SYNC ? STALL_BLOCKING_DISK : 0, (start, size, flags));
}

// MARK: Locks of files

int flock(int file, int operation) {
    const bool waits = !(operation & (LOCK_NB | LOCK_UN));
    RETURN_CALL(flock, waits ? STALL_BLOCKING_LOCK : 0, (file, operation));
}

int lockf(int file, int operation, off_t size) {
    RETURN_CALL(lockf, operation == F_LOCK ? STALL_BLOCKING_LOCK : 0, (file, operation, size));
}

int lockf64(int file, int operation, off64_t size) {
    RETURN_CALL(lockf64, operation == F_LOCK ? STALL_BLOCKING_LOCK : 0, (file, operation, size));
}

// Each command's argument is an int, a pointer or nothing; libc too passes it on as a pointer.
#define CONTROL(name)                                                               \
    va_list arguments;                                                              \
    va_start(arguments, command);                                                   \
    void *argument = va_arg(arguments, void *);                                     \
    va_end(arguments);                                                              \
    const bool waits = command == F_SETLKW || command == F_OFD_SETLKW;              \
    RETURN_CALL(name, waits ? STALL_BLOCKING_LOCK : 0, (file, command, argument))

int fcntl(int file, int command, ...) { CONTROL(fcntl); }

int fcntl64(int file, int command, ...) { CONTROL(fcntl64); }
#endif
