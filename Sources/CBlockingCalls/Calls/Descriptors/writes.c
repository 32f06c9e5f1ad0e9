// Writes to descriptors. A pipe or socket waits for its reader, a file for memory that is free or for its journal.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <sys/uio.h>
#include <unistd.h>

#include "../interpose.h"

INTERPOSE(write)
INTERPOSE(writev)
INTERPOSE(pwrite)
INTERPOSE(pwrite64)
INTERPOSE(pwritev)
INTERPOSE(pwritev64)
INTERPOSE(pwritev2)
INTERPOSE(pwritev64v2)

#define WRITE(name, count, arguments) \
    RETURN_CALL(name, (count) > 0 ? blocking_kind_of_descriptor(file, true) : 0, arguments)

ssize_t write(int file, const void *buffer, size_t count) { WRITE(write, count, (file, buffer, count)); }

ssize_t writev(int file, const struct iovec *parts, int count) { WRITE(writev, count, (file, parts, count)); }

ssize_t pwrite(int file, const void *buffer, size_t count, off_t at) {
    WRITE(pwrite, count, (file, buffer, count, at));
}

ssize_t pwrite64(int file, const void *buffer, size_t count, off64_t at) {
    WRITE(pwrite64, count, (file, buffer, count, at));
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    WRITE(pwritev, count, (file, parts, count, at));
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
    WRITE(pwritev64, count, (file, parts, count, at));
}

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t at, int flags) {
    WRITE(pwritev2, flags & RWF_NOWAIT ? 0 : count, (file, parts, count, at, flags));
}

ssize_t pwritev64v2(int file, const struct iovec *parts, int count, off64_t at, int flags) {
    WRITE(pwritev64v2, flags & RWF_NOWAIT ? 0 : count, (file, parts, count, at, flags));
}
#endif
