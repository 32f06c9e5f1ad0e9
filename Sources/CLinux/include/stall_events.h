// Signals and child processes as descriptors.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Blocks the signals in the calling thread and creates a descriptor that is readable while one of them is pending; -1
/// with errno.
int stall_signal_descriptor(const int *_Nonnull signals, size_t count);
/// Reads one pending signal; false if there is none.
bool stall_signal_take(int fd, int *_Nonnull signal, pid_t *_Nonnull sender);

/// A descriptor that becomes readable when the process ends; -1 with errno. With `again`, the process has to be a child that no
/// thread has waited for: its number may be another process's by now.
int stall_process_descriptor(pid_t pid, bool again);
/// Waits for a child that has ended. 0: `status` is its exit status; 1: `status` is the signal that ended it; 2: it has not
/// ended; -1: it could not be waited for.
int stall_process_wait(pid_t pid, int *_Nonnull status);

/// The changes of a watched file or of a file of a watched directory; several are joined by or.
enum {
    STALL_FILE_CREATED = 1,   ///< created there, or moved there
    STALL_FILE_DELETED = 2,   ///< deleted, or moved away
    STALL_FILE_WRITTEN = 4,   ///< closed after it was open for writing
    STALL_FILE_MODIFIED = 8,  ///< its contents or length changed
    STALL_FILE_ATTRIBUTES = 16,
    STALL_FILE_GONE = 32,     ///< the watched file itself was deleted, moved or unmounted: nothing comes after that
    STALL_FILE_LOST = 64,     ///< the kernel has dropped events
};
/// A descriptor that is readable while something has happened to `path`; -1 with errno and the call that failed. It is known by
/// `watch` in the events. With `again`, the first event is that some may have been lost.
int stall_watch_descriptor(
    const char *_Nonnull path, uint32_t events, bool again, int *_Nonnull watch,
    const char *_Nonnull *_Nonnull call);
/// Reads events into `buffer` (at least 4,096 bytes, aligned to 8). Returns how many bytes, 0 if there is none.
size_t stall_watch_read(int fd, void *_Nonnull buffer, size_t capacity);
/// Decodes the event at `*offset` of `size` bytes and moves the offset behind it; false at the end. `name` is that of a file
/// in a watched directory, or empty.
bool stall_watch_next(
    const void *_Nonnull buffer, size_t size, int watch, size_t *_Nonnull offset, uint32_t *_Nonnull events,
    const char *_Nonnull *_Nonnull name);
