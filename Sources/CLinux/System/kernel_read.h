// Reads this process's memory through the kernel. Bytes that are not mapped, or beyond the end of a truncated file, are
// missing from the result; a direct read would end the process with SIGSEGV or SIGBUS.
#pragma once
#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first include"
#endif
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// write(2) to a pipe reads the memory in the kernel.
static inline size_t stall_read_through_pipe(uint8_t *to, uint64_t address, size_t length) {
    int ends[2];
    size_t done = 0;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return 0;
    while (done < length) {
        const size_t part = length - done < 4096 ? length - done : 4096;
        const long count = syscall(SYS_write, ends[1], address + done, part);
        if (count <= 0 || syscall(SYS_read, ends[0], to + done, (size_t)count) != count) break;
        done += (size_t)count;
        if ((size_t)count < part) break;
    }
    close(ends[0]);
    close(ends[1]);
    return done;
}

/// Reads up to `length` bytes at `address`; returns how many. Has fallbacks, because a sandbox may forbid
/// process_vm_readv, and a process that is not dumpable cannot open /proc/self/mem.
static inline size_t stall_kernel_read(void *to, uint64_t address, size_t length) {
    struct iovec local = {to, length}, remote = {(void *)(uintptr_t)address, length};
    if (length == 0) return 0;
    ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (count >= 0) return (size_t)count;
    if (errno == EFAULT) return 0;
    const int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (file < 0) return stall_read_through_pipe(to, address, length);
    count = pread(file, to, length, (off_t)address);
    close(file);
    return count > 0 ? (size_t)count : 0;
}
