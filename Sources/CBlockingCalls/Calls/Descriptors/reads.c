// Reads from descriptors, and data moved from one to another.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../interpose.h"

extern ssize_t __read_chk(int, void *, size_t, size_t);
extern ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
extern ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);

INTERPOSE(read)
INTERPOSE(readv)
INTERPOSE(pread)
INTERPOSE(pread64)
INTERPOSE(preadv)
INTERPOSE(preadv64)
INTERPOSE(preadv2)
INTERPOSE(preadv64v2)
INTERPOSE(__read_chk)
INTERPOSE(__pread_chk)
INTERPOSE(__pread64_chk)
INTERPOSE(sendfile)
INTERPOSE(sendfile64)
INTERPOSE(splice)
INTERPOSE(tee)
INTERPOSE(vmsplice)
INTERPOSE(copy_file_range)

// A read of nothing only checks its arguments.
#define READ(name, count, arguments) READ_AS(#name, name, count, arguments)
#define READ_AS(source_name, name, count, arguments) \
    RETURN_CALL_AS(source_name, name, (count) > 0 ? blocking_kind_of_descriptor(file, false) : 0, arguments)

ssize_t read(int file, void *buffer, size_t count) { READ(read, count, (file, buffer, count)); }

ssize_t readv(int file, const struct iovec *parts, int count) { READ(readv, count, (file, parts, count)); }

ssize_t pread(int file, void *buffer, size_t count, off_t at) { READ(pread, count, (file, buffer, count, at)); }

ssize_t pread64(int file, void *buffer, size_t count, off64_t at) { READ(pread64, count, (file, buffer, count, at)); }

ssize_t preadv(int file, const struct iovec *parts, int count, off_t at) {
    READ(preadv, count, (file, parts, count, at));
}

ssize_t preadv64(int file, const struct iovec *parts, int count, off64_t at) {
    READ(preadv64, count, (file, parts, count, at));
}

ssize_t preadv2(int file, const struct iovec *parts, int count, off_t at, int flags) {
    READ(preadv2, flags & RWF_NOWAIT ? 0 : count, (file, parts, count, at, flags));
}

ssize_t preadv64v2(int file, const struct iovec *parts, int count, off64_t at, int flags) {
    READ(preadv64v2, flags & RWF_NOWAIT ? 0 : count, (file, parts, count, at, flags));
}

// Programs that are compiled with _FORTIFY_SOURCE call these where the size of their buffer is known.
ssize_t __read_chk(int file, void *buffer, size_t count, size_t size) {
    READ_AS("read", __read_chk, count, (file, buffer, count, size));
}

ssize_t __pread_chk(int file, void *buffer, size_t count, off_t at, size_t size) {
    READ_AS("pread", __pread_chk, count, (file, buffer, count, at, size));
}

ssize_t __pread64_chk(int file, void *buffer, size_t count, off64_t at, size_t size) {
    READ_AS("pread64", __pread64_chk, count, (file, buffer, count, at, size));
}

// MARK: From one descriptor to another

static stall_blocking_kind kind_of_transfer(int from, int to) {
    const stall_blocking_kind kind = blocking_kind_of_descriptor(from, false);
    return kind ? kind : blocking_kind_of_descriptor(to, true);
}

ssize_t sendfile(int to, int from, off_t *at, size_t count) {
    RETURN_CALL(sendfile, kind_of_transfer(from, to), (to, from, at, count));
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t count) {
    RETURN_CALL(sendfile64, kind_of_transfer(from, to), (to, from, at, count));
}

// SPLICE_F_NONBLOCK is for the pipes: a file or socket at the other end may wait all the same.
static stall_blocking_kind kind_of_splice(int from, int to, unsigned flags) {
    if (!(flags & SPLICE_F_NONBLOCK)) return kind_of_transfer(from, to);
    struct {
        int descriptor;
        bool is_write;
    } ends[] = {{from, false}, {to, true}};
    for (int i = 0; i < 2; i++) {
        const stall_blocking_kind kind = blocking_kind_of_descriptor(ends[i].descriptor, ends[i].is_write);
        const bool is_pipe = stall_system_call(SYS_fcntl, (uint64_t)ends[i].descriptor, F_GETPIPE_SZ, 0, 0, 0, 0) >= 0;
        if (kind && !is_pipe) return kind;
    }
    return 0;
}

ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t count, unsigned flags) {
    RETURN_CALL(splice, kind_of_splice(from, to, flags), (from, from_at, to, to_at, count, flags));
}

ssize_t tee(int from, int to, size_t count, unsigned flags) {
    RETURN_CALL(tee, kind_of_splice(from, to, flags), (from, to, count, flags));
}

ssize_t vmsplice(int file, const struct iovec *parts, size_t count, unsigned flags) {
    RETURN_CALL(
        vmsplice, flags & SPLICE_F_NONBLOCK ? 0 : blocking_kind_of_descriptor(file, true), (file, parts, count, flags));
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t count, unsigned flags) {
    RETURN_CALL(copy_file_range, kind_of_transfer(from, to), (from, from_at, to, to_at, count, flags));
}
#endif
