// The record of the stalls that are open in this process, in a page of memory that outlives it: how long each was seen
// to last, when the loop itself ended it, and how the process ended. The next reader of the store reads it.
//
// The page is a file in /dev/shm: a store to it is no system call and, unlike a file on disk, never waits for I/O. It
// is created at the first stall and removed by a clean stop; a reboot loses it.
//
// Written by the watchdog, by the loop that ends its stall, by `exit`, and by the handler of fatal signals. A forked
// child does not write it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STALL_PROCESS_RECORD_MAGIC UINT64_C(0x3153444f574c4c53)
#define STALL_PROCESS_RECORD_SLOTS 32
#define STALL_PROCESS_RECORD_DIRECTORY "/dev/shm/"

/// How the process ended; the values are StallEnding's.
#define STALL_PROCESS_LIVES 0
#define STALL_PROCESS_EXITED 2
#define STALL_PROCESS_CRASHED 4

/// The facts about a stall that are reported if its process could not write a report.
typedef struct stall_open_facts {
    uint64_t threshold_ns;
    uint32_t verdict;  ///< StallVerdict's value
    char loop[48];     ///< the target's name; truncated, and without a NUL if it fills the array
} stall_open_facts;

/// The report id of a stall that is counted without a report.
#define STALL_REPORT_COUNTED 0xffffffffffffffffULL

/// An open stall. Times are CLOCK_MONOTONIC.
typedef struct stall_open_slot {
    uint64_t began_ns;   ///< 0: the slot is free
    uint64_t seen_ns;    ///< when it was last seen to last
    uint64_t ended_ns;   ///< when the loop made progress; 0 before
    uint64_t report[2];  ///< the report's id, big-endian words; 0 before it is created
    stall_open_facts facts;
} stall_open_slot;

/// The page.
typedef struct {
    uint64_t magic;
    uint64_t run[2];     ///< the id of the process's run, big-endian words
    uint64_t ending;     ///< STALL_PROCESS_*
    uint64_t ending_ns;
    stall_open_slot slots[STALL_PROCESS_RECORD_SLOTS];
} stall_process_record;

/// Reserves an entry for one of the process's monitors, whose run gets its own page; -1 if none is free. Any thread.
int32_t stall_process_record_reserve(void);
/// Releases the entry. Its page stays if it contains a stall and a store knows the run, for the next agent that opens
/// that store.
void stall_process_record_release(int32_t monitor, bool is_run_known);
/// Sets the monitor's run; before that there is no page. Also installs the handler of fatal signals, which records them
/// and passes them on. Any thread; once.
void stall_process_record_prepare(int32_t monitor, uint64_t run_high, uint64_t run_low);
/// A slot for an open stall; NULL if none is free. The watchdog's thread.
stall_open_slot *_Nullable stall_process_record_open(
    int32_t monitor, uint64_t began_ns, uint64_t now_ns, const stall_open_facts *_Nonnull facts);
/// Records that the stall still lasts.
static inline void stall_open_slot_update(stall_open_slot *_Nonnull slot, uint64_t now_ns) {
    __atomic_store_n(&slot->seen_ns, now_ns, __ATOMIC_RELAXED);
}
/// Records that the loop made progress. Called by the loop's own thread, once per stall.
void stall_open_slot_end(stall_open_slot *_Nonnull slot, uint64_t now_ns);
/// Sets the report id of the stall that began then, before the report is written, or marks it as counted only
/// (STALL_REPORT_COUNTED twice).
void stall_process_record_name(int32_t monitor, uint64_t began_ns, uint64_t report_high, uint64_t report_low);
/// Frees the slot: a store has the stall's end.
void stall_process_record_close(int32_t monitor, uint64_t began_ns);
/// Whether the process is ending: nothing observed from now on is part of a stall.
bool stall_process_record_is_ending(void);
/// Whether it ends by `exit`.
bool stall_process_record_is_exiting(void);
/// Removes the page of the monitor's run and releases its entry: everything is in the store.
void stall_process_record_remove(int32_t monitor);
/// Whether the run is that of a monitor of this process, since its last exec.
bool stall_process_record_is_own(uint64_t run_high, uint64_t run_low);
/// Whether a process has a thread with this name; true if that cannot be read.
bool stall_process_has_thread(int32_t process, const char *_Nonnull name);
/// Records that the process is in `exit`.
void stall_process_record_note_exit(void);

/// The path of a run's page; `path` has room for 64 bytes.
void stall_process_record_path(uint64_t run_high, uint64_t run_low, char *_Nonnull path);
/// Reads the page of another process that belongs to `owner`. False if there is none.
bool stall_process_record_read(
    uint64_t run_high, uint64_t run_low, uint32_t owner, stall_process_record *_Nonnull record);
