#define _GNU_SOURCE
#include "stall_descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "stall_numbers.h"

/// Magic numbers of the kernel's own file systems in statfs(2); FUSE, because lxcfs provides some files in /proc to
/// containers.
enum { PROC = 0x9fa0, GROUP_1 = 0x27e0eb, GROUP_2 = 0x63677270, NAMELESS = 0x09041934, FUSE = 0x65735546 };

bool stall_descriptor_is_kernels(int descriptor) {
    struct statfs system;
    if (fstatfs(descriptor, &system) != 0) return false;
    const unsigned long kind = (unsigned long)system.f_type;
    return kind == PROC || kind == GROUP_1 || kind == GROUP_2 || kind == NAMELESS || kind == FUSE;
}

void stall_descriptor_close(int descriptor) {
    if (descriptor >= 0 && stall_descriptor_is_kernels(descriptor)) close(descriptor);
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
    if (!stall_numbers_open(&descriptors, "/proc/self/fd")) return 0;
    for (int32_t number; count < capacity && (number = stall_numbers_next(&descriptors)) >= 0;) {
        stall_file_identity found;
        if (number == descriptors.directory || !stall_descriptor_identity(number, &found)) continue;
        if (found.device == identity.device && found.inode == identity.inode) numbers[count++] = number;
    }
    stall_numbers_close(&descriptors);
    return count;
}
