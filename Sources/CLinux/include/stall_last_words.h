// What is known of the stalls that are open in this process, in a page of memory that outlives it: how long each was
// seen to last, when the loop itself ended it, and how the process ended. The next reader of the store takes it from
// there.
//
// The page is a file in /dev/shm: storing into it is no system call, and unlike a page of a disk's file it never waits
// for one. It is made at the first stall and removed by a clean stop; a restart of the machine loses it.
//
// Written by the watchdog, by the loop that ends its stall, by `exit`, and by the handler of fatal signals. A child
// that was forked writes nothing.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STALL_LAST_WORDS_MAGIC UINT64_C(0x3153444f574c4c53)
#define STALL_LAST_WORDS_SLOTS 32
#define STALL_LAST_WORDS_DIRECTORY "/dev/shm/"

/// How the process ended; the values are StallEnding's.
#define STALL_PROCESS_LIVES 0
#define STALL_PROCESS_EXITED 2
#define STALL_PROCESS_CRASHED 4

/// What is said of a stall whose report its process could not write.
typedef struct stall_open_facts {
    uint64_t threshold_ns;
    uint32_t verdict;  ///< StallVerdict's value
    char loop[48];     ///< the name that the loop is watched under; cut, and without a NUL where it fills the array
} stall_open_facts;

/// The id of a stall that is counted and gets no report: that of no report.
#define STALL_REPORT_COUNTED 0xffffffffffffffffULL

/// An open stall. Times are CLOCK_MONOTONIC.
typedef struct stall_open_slot {
    uint64_t began_ns;   ///< 0: the slot is free
    uint64_t seen_ns;    ///< until when it was seen to last
    uint64_t ended_ns;   ///< when the loop went on; 0 until then
    uint64_t report[2];  ///< the report's id, big-endian words; 0 until it is made
    stall_open_facts facts;
} stall_open_slot;

/// The page.
typedef struct {
    uint64_t magic;
    uint64_t run[2];     ///< the id of the process's run, big-endian words
    uint64_t ending;     ///< STALL_PROCESS_*
    uint64_t ending_ns;
    stall_open_slot slots[STALL_LAST_WORDS_SLOTS];
} stall_last_words;

/// A place for one of the process's monitors, whose run gets a page of its own; -1 without one. Any thread.
int32_t stall_last_words_reserve(void);
/// Gives the place back. Its page stays where a stall is in it and a store knows the run, for the next agent that opens
/// that store.
void stall_last_words_release(int32_t monitor, bool is_run_known);
/// Names the monitor's run; before it there is no page. Also has fatal signals leave a word; what handled them goes on
/// doing so. Any thread; once.
void stall_last_words_prepare(int32_t monitor, uint64_t run_high, uint64_t run_low);
/// A slot for a stall that is open, or NULL when there is none. The watchdog's thread.
stall_open_slot *_Nullable stall_last_words_open(
    int32_t monitor, uint64_t began_ns, uint64_t now_ns, const stall_open_facts *_Nonnull facts);
/// It still lasts.
static inline void stall_open_slot_see(stall_open_slot *_Nonnull slot, uint64_t now_ns) {
    __atomic_store_n(&slot->seen_ns, now_ns, __ATOMIC_RELAXED);
}
/// The loop went on. Called by the loop's own thread, once a stall.
void stall_open_slot_end(stall_open_slot *_Nonnull slot, uint64_t now_ns);
/// The report of the stall that began then is about to be written, or it is counted (STALL_REPORT_COUNTED twice).
void stall_last_words_name(int32_t monitor, uint64_t began_ns, uint64_t report_high, uint64_t report_low);
/// A store has its end as well: the slot is free.
void stall_last_words_close(int32_t monitor, uint64_t began_ns);
/// Whether the process is on its way out: what is seen from now on is no part of a stall.
bool stall_last_words_is_ending(void);
/// Whether it is so by `exit`.
bool stall_last_words_is_exiting(void);
/// Removes the page of the monitor's run, and gives its place back: everything is in the store.
void stall_last_words_remove(int32_t monitor);
/// Whether the run is that of a monitor of this process, as the program that it is now.
bool stall_last_words_is_own(uint64_t run_high, uint64_t run_low);
/// Whether a process has a thread of this name; true when it cannot be looked at.
bool stall_process_has_thread(int32_t process, const char *_Nonnull name);
/// The process is in `exit`.
void stall_last_words_note_exit(void);

/// The path of a run's page; `path` holds 64 bytes.
void stall_last_words_path(uint64_t run_high, uint64_t run_low, char *_Nonnull path);
/// Reads the page of another process that belongs to `owner`. False when there is none.
bool stall_last_words_read(uint64_t run_high, uint64_t run_low, uint32_t owner, stall_last_words *_Nonnull words);
