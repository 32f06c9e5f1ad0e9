// What the kernel says of a stalled thread and of its process: why it does not run, what it waits in, what it cost.
//
// Files are kept open and read with pread into the caller's memory. Nothing here allocates, locks or waits, and no file
// system is asked for anything: a link of /proc/self/fd is text that the kernel holds, the file behind it is not
// touched.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stall_thread_files.h"

/// The files of the process and its control group.
typedef struct {
    int32_t pressure[3];     ///< cpu, io, memory
} stall_process_files;

/// What could not be read, as bits.
enum {
    STALL_NO_SYSTEM_CALL = 1,
    STALL_NO_STATE = 2,
    STALL_NO_WAIT_CHANNEL = 4,
    STALL_NO_SCHEDULE = 8,
    STALL_NO_SWITCHES = 16,
    STALL_NO_PRESSURE = 64,
};

/// One look at a thread. What could not be read is zero, and its bit is set.
typedef struct {
    uint32_t unreadable;
    uint8_t state;               ///< the letter of proc(5): R, S, D, T ...
    bool is_running;             ///< on a CPU, or ready for one
    int32_t system_call;         ///< -1 when it runs, and when it is blocked outside of a system call: in a page fault
    uint64_t arguments[6];
    uint64_t stack_pointer;  ///< 0 when it is not in a system call
    char wait_channel[32];       ///< the kernel's function that it sleeps in; empty when it runs
    uint64_t cpu_ns, run_delay_ns;
    uint64_t minor_faults, major_faults;
    uint64_t waits, preemptions; ///< voluntary and other context switches
} stall_thread_snapshot;

/// One look at the process.
typedef struct {
    uint32_t unreadable;
    uint64_t cpu_ns;             ///< of all threads
    uint64_t pressure_us[3];     ///< time in which some task waited for cpu, io, memory
} stall_process_snapshot;

/// What a descriptor of this process is.
typedef struct {
    int32_t number;
    int32_t socket_domain;       ///< AF_INET ...; -1 when it is no socket
    char target[256];            ///< the link of /proc/self/fd: a path, `pipe:[5]`, `anon_inode:[eventfd]`; may be cut
    char peer[64];               ///< the address at the other end of an internet socket, if it has one: `10.0.0.7:5432`
} stall_descriptor_snapshot;

void stall_evidence_read(stall_thread_files *_Nonnull files, stall_thread_snapshot *_Nonnull snapshot);

/// What a wait is about, by its system call: where the arguments lead.
typedef enum : uint8_t {
    STALL_WAIT_PLAIN = 0,       ///< the arguments say nothing more
    STALL_WAIT_DESCRIPTOR = 1,  ///< the first argument is a descriptor
    STALL_WAIT_POLL = 2,
    STALL_WAIT_SELECT = 3,
    STALL_WAIT_FUTEX = 4,
    STALL_WAIT_FILE_LOCK = 5,   ///< the first argument is a descriptor, and a process holds the lock
    STALL_WAIT_SLEEP = 6,       ///< perhaps between two tries to lock a database
} stall_wait_detail;

#define STALL_WAIT_DESCRIPTORS 8
#define STALL_FUTEX_WORDS 8

/// One look at a thread, and at what it waits for. Plain memory, so that it can be handed on as it is.
typedef struct {
    stall_thread_snapshot thread;
    uint64_t at_ns;                  ///< CLOCK_MONOTONIC
    int64_t unix_us;                 ///< the wall clock then
    stall_wait_detail detail;
    bool waits_for_file;             ///< perhaps for a file's lock; stall_wait_find_file_lock may tell whose
    bool has_limit;                  ///< of a futex: the wait has a time limit, as the call was given it
    uint32_t descriptor_count;
    uint32_t futex_word_count;
    uint32_t futex_words[STALL_FUTEX_WORDS];
    int64_t limit_s, limit_ns;
    int32_t drainer;                 ///< of a futex in dispatch_sync: the thread that runs the queue; 0 otherwise
    int32_t lock_process;            ///< who holds the lock of the file, or of a database; 0 before it was asked for, and where that is not known
    char lock_process_name[16];
} stall_wait_snapshot;

/// Follows the arguments of the system call in `snapshot->thread`. `descriptors` has room for STALL_WAIT_DESCRIPTORS.
void stall_wait_follow(
    stall_wait_snapshot *_Nonnull snapshot, stall_wait_detail detail, stall_descriptor_snapshot *_Nonnull descriptors);

/// Fills in who holds the file's lock that `snapshot` is about, when `thread` waits for it still; nothing otherwise.
///
/// Never on the watchdog: to read /proc/locks, the kernel waits for every processor of the machine, seconds on a loaded
/// one.
void stall_wait_find_file_lock(stall_wait_snapshot *_Nonnull snapshot, int32_t thread);

void stall_process_open(stall_process_files *_Nonnull files);
void stall_process_close(stall_process_files *_Nonnull files);
void stall_process_read(const stall_process_files *_Nonnull files, stall_process_snapshot *_Nonnull snapshot);

/// False when there is no such descriptor.
bool stall_descriptor_read(int32_t number, stall_descriptor_snapshot *_Nonnull snapshot);

/// The process that holds the file lock which this process waits for. False when it waits for none, for those of
/// several processes, or for one that the kernel knows no process of.
///
/// The kernel tells by file and process, not by thread: of two threads that wait for two files it cannot be known which
/// is which.
bool stall_file_lock_holder(int32_t *_Nonnull process);

/// The process that holds the lock of a database file that this process has open, as SQLite takes them; where none but
/// this process itself holds one, its own id. False when no process does, or several do.
bool stall_database_lock_holder(int32_t *_Nonnull process);

/// The descriptors that an epoll descriptor watches, at most `capacity`. Returns how many.
size_t stall_epoll_members(int32_t epoll, int32_t *_Nonnull members, size_t capacity);

/// The name of a process of this machine; false when it cannot be read. `name` holds at least 16 bytes.
bool stall_process_read_name(int32_t process, char *_Nonnull name);

/// Reads this process's memory through the kernel. Returns how many bytes were readable, from the first one on.
size_t stall_memory_read(uint64_t address, void *_Nonnull to, size_t length);

/// The name of a thread of this process in the kernel; false when it is none. `name` holds at least 16 bytes.
bool stall_thread_read_name(int32_t thread, char *_Nonnull name);
