// Also called in a signal handler: with direct system calls, because libc's `open`, `read` and `close` are cancellation
// points.
#define _GNU_SOURCE
#include "process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIPE_PART = 4096 };

// write(2) to a pipe reads the memory in the kernel. For a process that is not dumpable, which may not open
// /proc/self/mem.
static size_t read_through_pipe(uint8_t *to, uint64_t address, size_t length) {
    int ends[2];
    size_t done = 0;
    if (syscall(SYS_pipe2, ends, O_CLOEXEC | O_NONBLOCK) != 0) return 0;
    while (done < length) {
        const size_t part = length - done < PIPE_PART ? length - done : PIPE_PART;
        const long count = syscall(SYS_write, ends[1], address + done, part);
        if (count <= 0 || syscall(SYS_read, ends[0], to + done, (size_t)count) != count) break;
        done += (size_t)count;
        if ((size_t)count < part) break;
    }
    syscall(SYS_close, ends[0]);
    syscall(SYS_close, ends[1]);
    return done;
}

// For sandboxes that forbid process_vm_readv. Opened each time, because an open descriptor would still read the parent
// after a fork.
static size_t read_through_proc(void *to, uint64_t address, size_t length) {
    const long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return read_through_pipe(to, address, length);
    const long count = syscall(SYS_pread64, file, to, length, (off_t)address);
    syscall(SYS_close, file);
    return count > 0 ? (size_t)count : 0;
}

size_t stall_read_memory(void *to, uint64_t address, size_t length) {
    if (length == 0) return 0;
    struct iovec local = {to, length};
    struct iovec remote = {(void *)(uintptr_t)address, length};
    const long count = syscall(SYS_process_vm_readv, getpid(), &local, 1UL, &remote, 1UL, 0UL);
    if (count >= 0) return (size_t)count;
    return errno == EFAULT ? 0 : read_through_proc(to, address, length);
}
