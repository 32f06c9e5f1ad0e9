// What the kernel says of a stalled thread and of its process: why it does not run, what it waits in, what it cost.
//
// Files are kept open and read with pread into the caller's memory. Nothing here allocates, locks or waits, and no file
// system is asked for anything: a link of /proc/self/fd is text that the kernel holds, the file behind it is not touched.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The files of one thread; -1 where the kernel has none or forbids it.
typedef struct {
    int32_t thread;
    int32_t system_call, stat, wait_channel, schedule, status;
} stall_evidence_files;

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
    char wait_channel[32];       ///< the kernel's function that it sleeps in; empty when it runs
    uint64_t cpu_ns, run_delay_ns;
    uint64_t minor_faults, major_faults;
    uint64_t waits, preemptions; ///< voluntary and other context switches
} stall_thread_look;

/// One look at the process.
typedef struct {
    uint32_t unreadable;
    uint64_t cpu_ns;             ///< of all threads
    uint64_t pressure_us[3];     ///< time in which some task waited for cpu, io, memory
} stall_process_look;

/// What a descriptor of this process is.
typedef struct {
    int32_t number;
    int32_t socket_domain;       ///< AF_INET ...; -1 when it is no socket
    char target[256];            ///< the link of /proc/self/fd: a path, `pipe:[5]`, `anon_inode:[eventfd]`; may be cut
    char peer[64];               ///< the address at the other end of an internet socket, if it has one: `10.0.0.7:5432`
} stall_descriptor_look;

void stall_evidence_open(stall_evidence_files *_Nonnull files, int32_t thread);
void stall_evidence_close(stall_evidence_files *_Nonnull files);
void stall_evidence_look(const stall_evidence_files *_Nonnull files, stall_thread_look *_Nonnull look);

void stall_process_open(stall_process_files *_Nonnull files);
void stall_process_close(stall_process_files *_Nonnull files);
void stall_process_look_at(const stall_process_files *_Nonnull files, stall_process_look *_Nonnull look);

/// False when there is no such descriptor.
bool stall_descriptor_look_at(int32_t number, stall_descriptor_look *_Nonnull look);

/// The process that holds the file lock which this process waits for. False when it waits for none, for those of several
/// processes, or for one that the kernel knows no process of.
///
/// The kernel tells by file and process, not by thread: of two threads that wait for two files it cannot be known which is which.
bool stall_file_lock_holder(int32_t *_Nonnull process);

/// The name of a process of this machine; false when it cannot be read. `name` holds at least 16 bytes.
bool stall_process_read_name(int32_t process, char *_Nonnull name);

/// Reads this process's memory through the kernel. Returns how many bytes were readable, from the first one on.
size_t stall_memory_read(uint64_t address, void *_Nonnull to, size_t length);

/// The name of a thread of this process in the kernel; false when it is none. `name` holds at least 16 bytes.
bool stall_thread_read_name(int32_t thread, char *_Nonnull name);
