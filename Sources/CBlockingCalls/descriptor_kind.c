// How a descriptor may block. Makes system calls directly: libc's functions are interposed.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "descriptors.h"
#include "stall_system_call.h"

#define ADDRESS(object) ((uintptr_t)&(object))

static long flags_of(int descriptor) {
    return stall_system_call(SYS_fcntl, (uint64_t)descriptor, F_GETFL, 0, 0, 0, 0);
}

bool blocking_is_nonblocking(int descriptor) {
    const long flags = flags_of(descriptor);
    return flags >= 0 && flags & O_NONBLOCK;
}

static int socket_option(int descriptor, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    const long result = stall_system_call(
        SYS_getsockopt, (uint64_t)descriptor, SOL_SOCKET, (uint64_t)name, ADDRESS(value), ADDRESS(size), 0);
    return result < 0 ? -1 : value;
}

bool blocking_is_connectionless(int descriptor) { return socket_option(descriptor, SO_TYPE) == SOCK_DGRAM; }

// Reads and changes of these file systems wait for no device.
static bool is_in_memory(int descriptor) {
    struct statfs system;
    if (stall_system_call(SYS_fstatfs, (uint64_t)descriptor, ADDRESS(system), 0, 0, 0, 0) < 0) return false;
    switch ((unsigned long)system.f_type) {
        case TMPFS_MAGIC:
        case RAMFS_MAGIC:
        case PROC_SUPER_MAGIC:
        case SYSFS_MAGIC:
        case CGROUP_SUPER_MAGIC:
        case CGROUP2_SUPER_MAGIC:
        case DEBUGFS_MAGIC:
        case TRACEFS_MAGIC:
        case HUGETLBFS_MAGIC:
            return true;
        default:
            return false;
    }
}

stall_blocking_kind blocking_kind_of_mode(int descriptor, unsigned mode) {
    switch (mode & S_IFMT) {
        case S_IFREG:
        case S_IFDIR:
            return is_in_memory(descriptor) ? 0 : STALL_BLOCKING_DISK;
        case S_IFBLK:
            return STALL_BLOCKING_DISK;
        default:
            return 0;
    }
}

stall_blocking_kind blocking_kind_of_file(int descriptor) {
    struct stat file;
    if (stall_system_call(SYS_fstat, (uint64_t)descriptor, ADDRESS(file), 0, 0, 0, 0) < 0) return 0;
    return blocking_kind_of_mode(descriptor, file.st_mode);
}

static bool is_ready(int descriptor, bool is_write) {
    struct pollfd file = {descriptor, is_write ? POLLOUT : POLLIN, 0};
    struct timespec none = {0};
    return stall_system_call(SYS_ppoll, ADDRESS(file), 1, ADDRESS(none), 0, 0, 0) != 0;
}

// /dev/null, /dev/zero, /dev/urandom and the like have the major number 1.
static bool is_terminal(int descriptor, dev_t device) {
    enum { MEMORY_DEVICES = 1, LARGEST_TERMIOS = 256 };
    char settings[LARGEST_TERMIOS];  // the kernel's struct termios differs from libc's
    return major(device) != MEMORY_DEVICES
        && stall_system_call(SYS_ioctl, (uint64_t)descriptor, TCGETS, (uintptr_t)settings, 0, 0, 0) == 0;
}

stall_blocking_kind blocking_kind_of_descriptor(int descriptor, bool is_write) {
    const long flags = flags_of(descriptor);
    if (flags < 0 || flags & O_PATH) return 0;
    struct stat file;
    if (stall_system_call(SYS_fstat, (uint64_t)descriptor, ADDRESS(file), 0, 0, 0, 0) < 0) return 0;
    // Files ignore O_NONBLOCK.
    const stall_blocking_kind kind = blocking_kind_of_mode(descriptor, file.st_mode);
    if (kind || flags & O_NONBLOCK) return kind;
    switch (file.st_mode & S_IFMT) {
        case S_IFREG:
        case S_IFDIR:
            return 0;
        case S_IFIFO:
            return STALL_BLOCKING_IPC;
        case S_IFSOCK: {
            const int domain = socket_option(descriptor, SO_DOMAIN);
            return domain == AF_INET || domain == AF_INET6 ? STALL_BLOCKING_NETWORK : STALL_BLOCKING_IPC;
        }
        case S_IFCHR:
            return is_terminal(descriptor, file.st_rdev) ? STALL_BLOCKING_IPC : 0;
        default:
            return is_ready(descriptor, is_write) ? 0 : STALL_BLOCKING_IPC;
    }
}
#endif
