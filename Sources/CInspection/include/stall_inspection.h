// Threads of another process, seen from outside: nothing runs in it, so it may hold any lock.
//
//     blocked thread:  /proc/PID/task/TID/syscall, and a copy of its stack by process_vm_readv; it is not disturbed
//     running thread:  stopped by ptrace while its registers and its stack are copied, and released
//     both:            unwound by the tables of the process's images (CStackCapture)
//
// The kernel permits this for the same user's processes, and if Yama restricts ptrace to descendants, for those.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack_unwinder.h"

/// A thread at one instant.
typedef struct {
    bool is_running;        ///< on a CPU, or runnable
    int64_t system_call;    ///< -1: none
    uint64_t arguments[6];
    uint64_t stack_pointer;
    const stall_frame *_Nullable frames;  ///< the inspector's, until its next capture
    uint32_t count;
    bool is_truncated;
    const uint64_t *_Nullable words;  ///< the copy of its stack, from `stack_pointer` on; likewise
    uint32_t word_count;
} stall_inspected_thread;

typedef struct stall_inspector stall_inspector;

/// NULL with errno. `images` are in ascending order, and stay the caller's.
stall_inspector *_Nullable stall_inspector_create(
    int32_t process, const stall_unwind_image *_Nullable images, uint32_t count,
    const stall_swift_runtime *_Nonnull runtime);
void stall_inspector_destroy(stall_inspector *_Nonnull inspector);

/// Returns 0; ESRCH: the thread ended; EAGAIN: it ran and was blocked in turns; EPERM and others: the kernel permits no
/// look. `thread` is filled in as far as it is known, without frames on failure.
int stall_inspector_capture(
    stall_inspector *_Nonnull inspector, int32_t id, stall_inspected_thread *_Nonnull thread);

/// Lets a thread run on that was stopped too late for its capture: a wait for any child has returned it as stopped.
void stall_release_stopped(int32_t id);

/// Copies memory of a process. Returns how many bytes from the start were readable.
size_t stall_process_read_memory(int32_t process, uint64_t address, void *_Nonnull to, size_t length);

/// The addresses in a range, at most `capacity`, of words with this value. Words are aligned to 16 bytes, as objects are.
size_t stall_process_find_word(
    int32_t process, uint64_t start, uint64_t end, uint64_t value, uint64_t *_Nonnull found, size_t capacity);
