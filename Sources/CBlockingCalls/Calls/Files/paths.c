// How a call with a path may block: opens the path's inode, if the kernel can do that without a wait.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "../../descriptors.h"
#include "paths.h"

// linux/openat2.h has this since Linux 5.12.
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

// A descriptor that can do nothing but name the inode, or a negative errno: EAGAIN if something is not cached. An older
// kernel, or a sandbox, refuses the call: then the path is looked up as the caller is about to, and counts as cached.
static long open_cached(int directory, const char *path, int flags) {
    const struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags), .resolve = RESOLVE_CACHED};
    const long file = stall_system_call(
        SYS_openat2, (uint64_t)directory, (uintptr_t)path, (uintptr_t)&how, sizeof how, 0, 0);
    if (file != -ENOSYS && file != -EINVAL && file != -EPERM) return file;
    return stall_system_call(SYS_openat, (uint64_t)directory, (uintptr_t)path, how.flags, 0, 0, 0);
}

// The kernel makes these up, and looks each name up again.
static bool is_of_kernel(const char *path) {
    return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0;
}

/// Of a path that could not be opened.
static stall_blocking_kind kind_of_failure(const char *path, long error) {
    return error == -EAGAIN && !is_of_kernel(path) ? STALL_BLOCKING_DISK : 0;
}

static void close_cached(long file) { stall_system_call(SYS_close, (uint64_t)file, 0, 0, 0, 0, 0); }

static unsigned mode_of(long file) {
    struct stat found;
    return stall_system_call(SYS_fstat, (uint64_t)file, (uintptr_t)&found, 0, 0, 0, 0) < 0 ? 0 : found.st_mode;
}

stall_blocking_kind blocking_kind_of_lookup(int directory, const char *path, bool follows) {
    if (!path) return 0;
    const long file = open_cached(directory, path, follows ? 0 : O_NOFOLLOW);
    if (file < 0) return kind_of_failure(path, file);
    close_cached(file);
    return 0;
}

static stall_blocking_kind kind_of_inode(int directory, const char *path, int flags) {
    const long file = open_cached(directory, path, flags);
    if (file < 0) return kind_of_failure(path, file);
    const stall_blocking_kind kind = blocking_kind_of_mode((int)file, mode_of(file));
    close_cached(file);
    return kind;
}

stall_blocking_kind blocking_kind_of_listing(int directory, const char *path) {
    return path ? kind_of_inode(directory, path, O_DIRECTORY) : 0;
}

stall_blocking_kind blocking_kind_of_creation(int directory, const char *path) {
    if (!path) return 0;
    char parent[PATH_MAX];
    const size_t length = strnlen(path, sizeof parent);
    if (length == 0 || length == sizeof parent) return 0;
    size_t end = length;
    while (end > 0 && path[end - 1] == '/') end--;
    while (end > 0 && path[end - 1] != '/') end--;
    memcpy(parent, end > 0 ? path : ".", end > 0 ? end : 1);
    parent[end > 0 ? end : 1] = 0;
    return kind_of_inode(directory, parent, O_DIRECTORY);
}

// The names at the path change, or its inode: a symbolic link's file lies where the link leads.
stall_blocking_kind blocking_kind_of_change(int directory, const char *path) {
    if (!path) return 0;
    const long file = open_cached(directory, path, O_NOFOLLOW);
    if (file < 0) return kind_of_failure(path, file);
    const unsigned mode = mode_of(file);
    const stall_blocking_kind kind = blocking_kind_of_mode((int)file, mode);
    close_cached(file);
    if (S_ISREG(mode) || S_ISDIR(mode)) return kind;
    return blocking_kind_of_creation(directory, path);  // a link, FIFO, socket or device: its directory's disk
}

stall_blocking_kind blocking_kind_of_opening(int directory, const char *path, int flags) {
    if (!path) return 0;
    const bool is_change = !(flags & O_PATH) && flags & (O_CREAT | O_TRUNC);
    if ((flags & O_TMPFILE) == O_TMPFILE) return blocking_kind_of_listing(directory, path);
    const long file = open_cached(directory, path, flags & (O_NOFOLLOW | O_DIRECTORY));
    if (file == -ENOENT && flags & O_CREAT && !(flags & O_PATH)) return blocking_kind_of_creation(directory, path);
    if (file < 0) return kind_of_failure(path, file);
    const unsigned mode = mode_of(file);
    const stall_blocking_kind kind = is_change && S_ISREG(mode) ? blocking_kind_of_mode((int)file, mode) : 0;
    close_cached(file);
    const bool waits_for_peer = S_ISFIFO(mode) && !(flags & (O_NONBLOCK | O_PATH)) && (flags & O_ACCMODE) != O_RDWR;
    return waits_for_peer ? STALL_BLOCKING_IPC : kind;
}
#endif
