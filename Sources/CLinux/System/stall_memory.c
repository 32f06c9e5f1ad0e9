// Also called in a signal handler, so it uses only direct system calls; libc's `open`, `read` and `close` are
// cancellation points besides.
#define _GNU_SOURCE
#include "stall_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "stall_system_call.h"

enum { PIPE_PART = 4096, PAGE = 4096 };

static long call(long number, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth) {
    return stall_system_call(number, first, second, third, fourth, 0, 0);
}

// As stall_above_standard does; a negative errno is passed on.
static long above_standard(long descriptor) {
    if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
    const long above = call(SYS_fcntl, (uint64_t)descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1, 0);
    call(SYS_close, (uint64_t)descriptor, 0, 0, 0);
    return above;
}

// write(2) to a pipe reads the memory in the kernel. For a process that is not dumpable, which may not open
// /proc/thread-self/mem.
static size_t read_through_pipe(uint8_t *to, uint64_t address, size_t length) {
    int ends[2];
    size_t done = 0;
    if (call(SYS_pipe2, (uintptr_t)ends, O_CLOEXEC | O_NONBLOCK, 0, 0) != 0) return 0;
    for (int i = 0; i < 2; i++) ends[i] = (int)above_standard(ends[i]);
    while (done < length) {
        const size_t part = length - done < PIPE_PART ? length - done : PIPE_PART;
        const long count = call(SYS_write, (uint64_t)ends[1], address + done, part, 0);
        if (count <= 0) break;
        if (call(SYS_read, (uint64_t)ends[0], (uintptr_t)to + done, (uint64_t)count, 0) != count) break;
        done += (size_t)count;
        if ((size_t)count < part) break;
    }
    call(SYS_close, (uint64_t)ends[0], 0, 0, 0);
    call(SYS_close, (uint64_t)ends[1], 0, 0, 0);
    return done;
}

// For sandboxes that forbid process_vm_readv. Opened each time, because an open descriptor would still read the parent
// after a fork.
static size_t read_file(const char *path, void *to, uint64_t address, size_t length) {
    const long file = above_standard(call(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t)path, O_RDONLY | O_CLOEXEC, 0));
    if (file < 0) return SIZE_MAX;
    const long count = call(SYS_pread64, (uint64_t)file, (uintptr_t)to, length, address);
    call(SYS_close, (uint64_t)file, 0, 0, 0);
    return count > 0 ? (size_t)count : 0;
}

static size_t read_through_proc(void *to, uint64_t address, size_t length) {
    const size_t count = read_file("/proc/thread-self/mem", to, address, length);
    return count == SIZE_MAX ? read_through_pipe(to, address, length) : count;
}

size_t stall_read_memory_of(int32_t process, void *to, uint64_t address, size_t length) {
    if (length == 0) return 0;
    const struct iovec local = {to, length}, remote = {(void *)(uintptr_t)address, length};
    const long count = stall_system_call(
        SYS_process_vm_readv, (uint64_t)process, (uintptr_t)&local, 1, (uintptr_t)&remote, 1, 0);
    if (count >= 0 || count == -EFAULT || count == -ESRCH) return count > 0 ? (size_t)count : 0;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", process);
    const size_t read = read_file(path, to, address, length);
    return read == SIZE_MAX ? 0 : read;
}

static int32_t other_process;

void stall_memory_read_from(int32_t process) { __atomic_store_n(&other_process, process, __ATOMIC_RELAXED); }

size_t stall_read_memory(void *to, uint64_t address, size_t length) {
    const int32_t other = __atomic_load_n(&other_process, __ATOMIC_RELAXED);
    if (other != 0) return stall_read_memory_of(other, to, address, length);
    if (length == 0) return 0;
    const struct iovec local = {to, length};
    const struct iovec remote = {(void *)(uintptr_t)address, length};
    // Not the process's number, which is the first thread's: that one may have ended, and its memory is none then.
    const uint64_t thread = (uint64_t)call(SYS_gettid, 0, 0, 0, 0);
    const long count = stall_system_call(
        SYS_process_vm_readv, thread, (uintptr_t)&local, 1, (uintptr_t)&remote, 1, 0);
    if (count >= 0) return (size_t)count;
    return count == -EFAULT ? 0 : read_through_proc(to, address, length);
}

// rt_sigprocmask reads the set before it looks at its first argument, which is an invalid one.
static bool is_readable(uint64_t address) {
    return call(SYS_rt_sigprocmask, UINT64_MAX, address, 0, sizeof(uint64_t)) == -EINVAL;
}

// The copy includes the gaps between variables, which AddressSanitizer poisons.
__attribute__((no_sanitize("address"))) size_t stall_read_own_pages(void *to, uint64_t address, size_t length) {
    uint64_t *words = to;
    size_t done = 0;
    while (done < length && is_readable(address + done)) {
        const volatile uint64_t *from = (const volatile uint64_t *)(uintptr_t)(address + done);
        size_t part = PAGE - (address + done) % PAGE;
        if (part > length - done) part = length - done;
        for (size_t i = 0; i < part / 8; i++) words[done / 8 + i] = from[i];
        done += part;
    }
    return done;
}
