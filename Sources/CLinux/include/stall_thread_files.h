// Reads /proc entries of one thread of this process.
//
// Each file is optional. Only the owner of the process's files may open `syscall`, so it is opened when the thread
// registers: a server drops its privileges later. `schedstat` is kept from its first use, because a reading through an
// open descriptor costs about a microsecond instead of five. The others are opened for each reading, and so are these
// two if too many are kept (may_keep in stall_thread_files.c). See docs/decisions/0018.
//
// A descriptor of an ended thread fails even if its id has been reused; a file that was opened for one reading is
// discarded if
// the thread has ended by then. Nothing here allocates except `create`, and nothing locks; two threads may read at once.
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

/// The open files of one thread.
typedef struct stall_thread_files {
    struct stall_thread_files *_Nullable shared;  ///< the owner of the files; NULL: this one
    int32_t thread;                            ///< gettid; 0: unused
    int32_t syscall_error;                     ///< why `syscall` could not be opened
    uint64_t start_ticks;                      ///< when the thread started; 0: unknown
    int32_t numbers[STALL_THREAD_FILE_COUNT];  ///< -1: not kept
    int32_t user_count;                        ///< references by `create`, `retain` and `release`
    bool keeps_none;                           ///< every file is opened for each reading
} stall_thread_files;

/// Shares the files of another one until `close`, as one of its users. Without another one: `begin`.
void stall_thread_files_share(
    stall_thread_files *_Nonnull files, stall_thread_files *_Nullable other, int32_t thread);

/// Opens no file yet. `syscall` stays unavailable.
void stall_thread_files_begin(stall_thread_files *_Nonnull files, int32_t thread);

/// The same, and keeps no descriptor between readings.
void stall_thread_files_visit(stall_thread_files *_Nonnull files, int32_t thread);

/// Opens `syscall`. Returns 0; ESRCH if the thread has ended, or if `start_ticks` is not 0 and another thread has its
/// id; or the errno of a process out of descriptors or memory. Missing permission is not an error.
int stall_thread_files_open(stall_thread_files *_Nonnull files, int32_t thread, uint64_t start_ticks);
void stall_thread_files_close(stall_thread_files *_Nonnull files);

/// The same in shared, reference-counted memory. NULL with errno.
stall_thread_files *_Nullable stall_thread_files_create(int32_t thread, uint64_t start_ticks);
void stall_thread_files_retain(stall_thread_files *_Nonnull files);
/// Closes the files with the last reference.
void stall_thread_files_release(stall_thread_files *_Nonnull files);

/// Reads a file as zero-ended text. 0, ESRCH, or the errno of opening or reading.
int stall_thread_files_read(
    stall_thread_files *_Nonnull files, stall_thread_file file, char *_Nonnull text, size_t capacity);

/// Whether `syscall` was readable when it was opened. It may not be kept: then it is opened for each reading.
static inline bool stall_thread_files_have_position(const stall_thread_files *_Nonnull files) {
    return files->thread != 0 && files->syscall_error == 0;
}

/// `syscall`: the state of a blocked thread.
typedef struct {
    bool is_running;        ///< on a CPU, or runnable: the rest is undefined
    int64_t system_call;    ///< -1: blocked outside of one
    uint64_t arguments[6];  ///< of the system call
    uint64_t stack_pointer, program_counter;
} stall_thread_position;

/// `stat`.
typedef struct {
    uint8_t letter;         ///< the state letter of proc(5): R, S, D, T ...
    uint64_t minor_faults, major_faults;
    uint64_t start_ticks;   ///< in clock ticks since boot
} stall_thread_state;

/// `status`.
typedef struct {
    uint64_t waits, preemptions;  ///< voluntary and other context switches
    uint64_t blocked;             ///< its blocked signals, signal 1 in bit 0
    int32_t tracer;               ///< the tracing process; 0: none
} stall_thread_status;

/// `schedstat`.
typedef struct {
    uint64_t cpu_ns;
    uint64_t run_delay_ns;  ///< time runnable without a CPU; a wait is added when it is over
    uint64_t slices;        ///< how often it got a CPU
} stall_thread_schedule;

/// Each returns 0, ESRCH, or the errno of a failed call; ENODATA if the text has an unknown format.
int stall_thread_read_position(stall_thread_files *_Nonnull files, stall_thread_position *_Nonnull position);
int stall_thread_read_state(stall_thread_files *_Nonnull files, stall_thread_state *_Nonnull state);
int stall_thread_read_status(stall_thread_files *_Nonnull files, stall_thread_status *_Nonnull status);
int stall_thread_read_schedule(stall_thread_files *_Nonnull files, stall_thread_schedule *_Nonnull schedule);

/// The CPU time of a thread, in nanoseconds even while it runs; not from /proc. 0, ESRCH or an errno.
int stall_thread_cpu_ns(int32_t thread, uint64_t *_Nonnull used_ns);
/// When a thread started, in clock ticks since boot. 0, ESRCH or an errno.
int stall_thread_start_ticks(int32_t thread, uint64_t *_Nonnull ticks);
/// The same of any process, and of its first thread. 0, ESRCH, ENODATA or an errno.
int stall_process_read_state(int32_t process, stall_thread_state *_Nonnull state);
