// Kernel evidence on a stalled thread and its process: why it does not run, what it waits for, what it used.
//
// Files are read with pread into the caller's memory; those of the process are opened for each reading. Nothing here
// allocates, locks or waits, and no disk is accessed: a link in /proc/self/fd is text in the kernel, and reading it does
// not touch the file.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stall_thread_files.h"

/// Bits for what could not be read.
enum {
    STALL_NO_SYSTEM_CALL = 1,
    STALL_NO_STATE = 2,
    STALL_NO_WAIT_CHANNEL = 4,
    STALL_NO_SCHEDULE = 8,
    STALL_NO_SWITCHES = 16,
    STALL_NO_PRESSURE = 64,
};

/// The state of a thread. A field that could not be read is zero, and its bit is set.
typedef struct {
    uint32_t unreadable;
    uint8_t state;               ///< the state letter of proc(5): R, S, D, T ...
    bool is_running;             ///< on a CPU, or runnable
    int32_t system_call;         ///< -1 while it runs, and while it is blocked outside of system calls: a page fault
    uint64_t arguments[6];
    uint64_t stack_pointer;  ///< 0 outside of system calls
    char wait_channel[32];       ///< the kernel function that it sleeps in; empty while it runs
    uint64_t cpu_ns, run_delay_ns;
    uint64_t minor_faults, major_faults;
    uint64_t waits, preemptions; ///< voluntary and other context switches
} stall_thread_snapshot;

/// The state of the process.
typedef struct {
    uint32_t unreadable;
    uint64_t cpu_ns;             ///< of all threads
    uint64_t pressure_us[3];     ///< time in which some task waited for cpu, io, memory
} stall_process_snapshot;

/// The object that a descriptor of this process refers to.
typedef struct {
    int32_t number;
    int32_t socket_domain;       ///< AF_INET ...; -1 if it is not a socket
    uint32_t type;               ///< S_IFIFO, or the type of a file in /dev: S_IFCHR, S_IFBLK ...; 0 of all others
    char target[256];            ///< link in /proc/self/fd: a path, `pipe:[5]`, `anon_inode:[eventfd]`; may be cut
    char peer[64];               ///< peer address of an internet socket, if any: `10.0.0.7:5432`
} stall_descriptor_snapshot;

void stall_evidence_read(stall_thread_files *_Nonnull files, stall_thread_snapshot *_Nonnull snapshot);

/// The kind of a wait, by its system call: how to interpret the arguments.
typedef enum : uint8_t {
    STALL_WAIT_PLAIN = 0,       ///< the arguments are of no use
    STALL_WAIT_DESCRIPTOR = 1,  ///< the first argument is a descriptor
    STALL_WAIT_POLL = 2,
    STALL_WAIT_SELECT = 3,
    STALL_WAIT_FUTEX = 4,
    STALL_WAIT_FILE_LOCK = 5,   ///< the first argument is a descriptor, and a process holds the lock
    STALL_WAIT_SLEEP = 6,       ///< possibly between two attempts to lock a database
    STALL_WAIT_RING = 7,        ///< the first argument is an io_uring
} stall_wait_detail;

#define STALL_WAIT_DESCRIPTORS 8
#define STALL_FUTEX_WORDS 8

/// The state of a thread with what it waits for. Plain memory, so that it can be copied as it is.
typedef struct {
    stall_thread_snapshot thread;
    uint64_t at_ns;                  ///< CLOCK_MONOTONIC
    int64_t unix_us;                 ///< the wall clock then
    stall_wait_detail detail;
    bool waits_for_file;             ///< possibly for a file lock; stall_wait_find_file_lock may find the holder
    bool has_limit;                  ///< of a futex: the wait has a time limit, as passed to the call
    uint32_t descriptor_count;
    uint32_t futex_word_count;
    uint32_t futex_words[STALL_FUTEX_WORDS];
    uint64_t ring_operations;        ///< of an io_uring: a bit for each IORING_OP that waits for a descriptor
    int64_t limit_s, limit_ns;
    int32_t drainer;                 ///< of a futex in dispatch_sync: the thread that runs the queue; 0 otherwise
    int32_t lock_process;            ///< holder of the file or database lock; 0 if unknown or not queried
    char lock_process_name[16];
} stall_wait_snapshot;

/// Interprets the arguments of the system call in `snapshot->thread`. `descriptors` has room for
/// STALL_WAIT_DESCRIPTORS.
void stall_wait_follow(
    stall_wait_snapshot *_Nonnull snapshot, stall_wait_detail detail, stall_descriptor_snapshot *_Nonnull descriptors);

/// Fills in the holder of the file lock of `snapshot`, if `thread` still waits for it.
///
/// Never on the watchdog: for a read of /proc/locks the kernel waits for every CPU of the machine, seconds on a loaded
/// one.
void stall_wait_find_file_lock(stall_wait_snapshot *_Nonnull snapshot, int32_t thread);

/// Opens, reads and closes three files: 25 us.
void stall_process_read(stall_process_snapshot *_Nonnull snapshot);

/// False if there is no such descriptor.
bool stall_descriptor_read(int32_t number, stall_descriptor_snapshot *_Nonnull snapshot);

/// The descriptors in an epoll set, at most `capacity`. Returns how many.
size_t stall_epoll_members(int32_t epoll, int32_t *_Nonnull members, size_t capacity);

/// The operations of an io_uring that wait for their descriptors to be ready, one bit per operation; 0 if that is
/// unknown.
uint64_t stall_ring_operations(int32_t ring);

/// The name of a process; false if it cannot be read. `name` has room for at least 16 bytes.
bool stall_process_read_name(int32_t process, char *_Nonnull name);

/// Reads this process's memory through the kernel. Returns how many bytes from the start were readable.
size_t stall_memory_read(uint64_t address, void *_Nonnull to, size_t length);

/// The kernel's name of a thread of this process; false if it does not exist. `name` has room for at least 16 bytes.
bool stall_thread_read_name(int32_t thread, char *_Nonnull name);
