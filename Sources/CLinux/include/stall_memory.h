// Reads this process's memory through the kernel. Bytes that are not mapped, or beyond the end of a truncated file, are
// missing from the result; a direct read would end the process with SIGSEGV or SIGBUS. Has fallbacks, because a sandbox
// may forbid process_vm_readv, and a process that is not dumpable cannot open /proc/thread-self/mem.
#pragma once
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

/// Copies up to `length` bytes from `address`. Returns how many bytes from the start were readable. Also in a signal
/// handler; preserves errno.
__attribute__((visibility("hidden"))) size_t stall_read_memory(void *_Nonnull to, uint64_t address, size_t length);

/// From now on `stall_read_memory` reads another process's memory, for the whole process; 0: its own again. Only for a
/// program without an agent, which would inspect the other process.
__attribute__((visibility("hidden"))) void stall_memory_read_from(int32_t process);

/// The same of another process, which this one may trace. Not in a signal handler.
__attribute__((visibility("hidden"))) size_t stall_read_memory_of(
    int32_t process, void *_Nonnull to, uint64_t address, size_t length);

/// The same where process_vm_readv is refused, of the calling thread's own stack, which no other thread unmaps meanwhile.
/// Opens no file: another call shows that a page is readable, which is then read directly.
__attribute__((visibility("hidden"))) size_t stall_read_own_pages(void *_Nonnull to, uint64_t address, size_t length);

static inline bool stall_read_exactly(void *_Nonnull to, uint64_t address, size_t length) {
    return stall_read_memory(to, address, length) == length;
}
