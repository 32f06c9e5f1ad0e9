// What /proc says about one thread of this process, through descriptors that are kept open: a reading costs
// about a microsecond, and a descriptor of a thread that ended says so, even when its id is in use again.
//
// Each file is optional. `syscall` may only be opened by the owner of the process's files, so it is opened when the
// thread registers: a server gives up its rights later. The others are opened when they are first asked for. Nothing
// here allocates but `create`, and nothing takes a lock; two threads may read at once.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum : uint8_t {
    STALL_THREAD_SYSCALL = 0,
    STALL_THREAD_STAT = 1,
    STALL_THREAD_STATUS = 2,
    STALL_THREAD_SCHEDSTAT = 3,
    STALL_THREAD_WCHAN = 4,
    STALL_THREAD_FILE_COUNT = 5,
} stall_thread_file;

/// The files of one thread.
typedef struct stall_thread_files {
    struct stall_thread_files *_Nullable shared;  ///< whose files these are; NULL: its own
    int32_t thread;                            ///< gettid; 0: unused
    int32_t syscall_error;                     ///< why `syscall` could not be opened
    int32_t numbers[STALL_THREAD_FILE_COUNT];  ///< -1: not opened so far, or it cannot be
    int32_t user_count;                        ///< of `create`, `retain` and `release`
} stall_thread_files;

/// Uses those of another one, whose user it becomes, until `close`. Without another one: `begin`.
void stall_thread_files_share(
    stall_thread_files *_Nonnull files, stall_thread_files *_Nullable other, int32_t thread);

/// Opens no file so far. `syscall` stays unknown.
void stall_thread_files_begin(stall_thread_files *_Nonnull files, int32_t thread);

/// Opens `syscall`. Returns 0; ESRCH: it ended, or `start_ticks` is not 0 and another thread has its id; or the errno
/// of a process that has no descriptors or memory left. Files that may not be opened are no error.
int stall_thread_files_open(stall_thread_files *_Nonnull files, int32_t thread, uint64_t start_ticks);
void stall_thread_files_close(stall_thread_files *_Nonnull files);

/// The same in memory that several may share. NULL with errno.
stall_thread_files *_Nullable stall_thread_files_create(int32_t thread, uint64_t start_ticks);
void stall_thread_files_retain(stall_thread_files *_Nonnull files);
/// Closes the files after the last user's.
void stall_thread_files_release(stall_thread_files *_Nonnull files);

/// Reads the text of a file, and ends it with a zero. 0, ESRCH, or the errno that opening or reading failed with.
int stall_thread_files_read(
    stall_thread_files *_Nonnull files, stall_thread_file file, char *_Nonnull text, size_t capacity);

/// `syscall`: where a blocked thread is, from the kernel's point of view.
typedef struct {
    bool is_running;        ///< on a CPU, or ready for one: then the rest is not known
    int64_t system_call;    ///< -1: blocked outside of one
    uint64_t arguments[6];  ///< of the system call
    uint64_t stack_pointer, program_counter;
} stall_thread_position;

/// `stat`.
typedef struct {
    uint8_t letter;         ///< of proc(5): R, S, D, T ...
    uint64_t minor_faults, major_faults;
    uint64_t start_ticks;   ///< in clock ticks since boot
} stall_thread_state;

/// `status`.
typedef struct {
    uint64_t waits, preemptions;  ///< voluntary and other context switches
    uint64_t blocked;             ///< the signals that it blocks, signal 1 in bit 0
    int32_t tracer;               ///< the process that debugs it; 0: none
} stall_thread_status;

/// `schedstat`.
typedef struct {
    uint64_t cpu_ns;
    uint64_t run_delay_ns;  ///< time in the queue for a CPU; a wait is booked when it is over
    uint64_t slices;        ///< how often it got a CPU
} stall_thread_schedule;

/// Each returns 0, ESRCH, or the errno of a failed call; ENODATA: the kernel wrote what is not understood.
int stall_thread_read_position(stall_thread_files *_Nonnull files, stall_thread_position *_Nonnull position);
int stall_thread_read_state(stall_thread_files *_Nonnull files, stall_thread_state *_Nonnull state);
int stall_thread_read_status(stall_thread_files *_Nonnull files, stall_thread_status *_Nonnull status);
int stall_thread_read_schedule(stall_thread_files *_Nonnull files, stall_thread_schedule *_Nonnull schedule);

/// The CPU time of a thread, to the nanosecond even while it runs: not from /proc. 0, ESRCH or an errno.
int stall_thread_cpu_ns(int32_t thread, uint64_t *_Nonnull used_ns);
/// When a thread started, in clock ticks since boot. 0, ESRCH or an errno.
int stall_thread_start_ticks(int32_t thread, uint64_t *_Nonnull ticks);
