// The state that a watched loop publishes and the watchdog reads: one cache line of atomics, no lock, no call on the
// hot path. StallRunLoop writes it and StallDetection reads it, without knowing each other.
//
// `word` contains the loop's status and the instant it began in one atomic, so that a reader never sees the new status
// with the old time. Two equal readings of the word mean that the loop made no progress in between.
//
// The fields are plain and unaligned, because Swift imports neither `_Atomic` nor aligned ones. Access them only
// through the functions below.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stall_process_record.h"

/// Not running: between runs, or never run. Not counted.
#define STALL_LOOP_IDLE 0
/// Serving events: since the entry, the end of a wait, or the beginning of an iteration.
#define STALL_LOOP_BUSY 1
/// Asleep in the kernel until an event comes. Never a stall.
#define STALL_LOOP_WAITING 2

/// The watchdog polls; it need not be woken.
#define STALL_WATCHDOG_AWAKE 0
/// It sleeps without a deadline, because every loop waits: the first one to become busy wakes it.
#define STALL_WATCHDOG_WAITING 1
/// It sleeps until a deadline; only an alarm wakes it early.
#define STALL_WATCHDOG_TIMED_WAIT 2

/// Wakes a sleeping watchdog. Never freed, because a loop may signal it at any moment.
typedef struct stall_wakeup {
    uint32_t sleep;      ///< STALL_WATCHDOG_*; a futex word
    uint32_t is_shared;  ///< it stands for the wake-up words of all watchers of its beacon, and is always WAITING
} stall_wakeup;

/// Maximum number of watchers of one beacon.
#define STALL_WATCHER_LIMIT 8

/// One watcher of a beacon.
typedef struct stall_watcher {
    stall_wakeup *_Nullable wakeup;  ///< NULL: the entry is free
    uint64_t stall_ns;           ///< shortest span that is a stall for this watcher
    stall_open_slot *_Nullable open_slot;  ///< where the loop records the end of the open stall; NULL without one
} stall_watcher;

/// Buckets of iteration lengths in microseconds: 0 to 7, then eight per power of two, up to 2^36 (19 hours).
#define STALL_LENGTH_BUCKETS 272
/// A span this long without progress is a micro-stall, unless it is long enough to be a stall.
#define STALL_MICRO_STALL_NS UINT64_C(100000000)

/// How many of the last long spans are stored individually.
#define STALL_STORED_SPANS 8

/// The loop's counters, updated by its own thread while it is watched.
typedef struct stall_counters {
    uint64_t busy_ns;         ///< time in busy spans
    uint64_t unfinished_ns;   ///< the part of it in the current iteration
    uint64_t split_ns;        ///< time of busy spans before a watchdog split them (`stall_beacon_split`)
    uint64_t splits;
    uint64_t rests;           ///< how often it waited or left its run
    uint64_t stall_ns;        ///< shortest span that is a stall for any watcher; 0 without one
    uint64_t long_ns;         ///< shortest span that is counted out of line: the shorter threshold; 0 without a watcher
    uint64_t micro_stalls;    ///< spans of at least STALL_MICRO_STALL_NS that are not stalls
    uint64_t micro_stall_ns;
    uint32_t are_divisible;   ///< spans now consist of several pieces of work: a long one is not proof of a stall
    uint32_t short_spans;     ///< spans shorter than a tick, of which some are measured (stall_rest.h); the loop's own
    uint64_t stalls;          ///< spans of at least `stall_ns`
    struct {
        uint64_t began_ns, length_ns, is_divisible;
    } last_stalls[STALL_STORED_SPANS];  ///< indexed by the span's number modulo STALL_STORED_SPANS
    uint32_t lengths[STALL_LENGTH_BUCKETS];  ///< iterations by their busy time
} stall_counters;

/// Allocated on a cache line of its own.
typedef struct stall_beacon {
    uint64_t word;                ///< 63...56 status, 55...0 CLOCK_MONOTONIC nanoseconds, modulo 2^56
    uint64_t callout;             ///< 63...56 phase (LoopPhase), 55...0 number of callouts so far
    stall_wakeup *_Nullable wakeup;   ///< signalled when a wait ends: the watcher's, or `shared`; NULL without one
    uint64_t alarm;               ///< a suspected word: its replacement is timed, and wakes the watchdog
    uint64_t ended;               ///< when the suspected word was replaced, in nanoseconds; 0 before
    uint32_t mode;                ///< the loop's number for its current mode
    int32_t thread;               ///< gettid of the loop's thread
    uint32_t references;
    uint32_t label_sequence;      ///< odd while `label` is being written
    stall_wakeup shared;          ///< wakes each watcher; `wakeup` points here if there are several
    uint64_t label[8];            ///< up to 63 bytes of UTF-8 and a zero
    stall_counters counters;
    stall_watcher watchers[STALL_WATCHER_LIMIT];
} stall_beacon;

_Static_assert(offsetof(stall_beacon, label) == 64, "all but the label is one cache line");

/// A new beacon with one reference, or NULL without memory. Release with `stall_beacon_release`.
stall_beacon *_Nullable stall_beacon_create(void);
void stall_beacon_retain(stall_beacon *_Nonnull beacon);
void stall_beacon_release(stall_beacon *_Nonnull beacon);

/// A new wake-up word, never freed; NULL without memory.
stall_wakeup *_Nullable stall_wakeup_create(void);
/// Announces that the watchdog is about to sleep. Read every beacon once more, then call `stall_wakeup_wait`.
static inline void stall_wakeup_prepare(stall_wakeup *_Nonnull wakeup, uint32_t sleep) {
    __atomic_exchange_n(&wakeup->sleep, sleep, __ATOMIC_SEQ_CST);
}
/// Waits as prepared until it is signalled, a signal arrives, or `deadline_ns` (CLOCK_MONOTONIC; UINT64_MAX: none).
/// Returns at once if it was signalled since the preparation.
void stall_wakeup_wait(stall_wakeup *_Nonnull wakeup, uint32_t sleep, uint64_t deadline_ns);
/// Wakes the watchdog from any kind of sleep. Preserves errno, which belongs to the app.
void stall_wakeup_signal(stall_wakeup *_Nonnull wakeup);
/// Wakes it only from a sleep without a deadline.
void stall_wakeup_signal_waiting(stall_wakeup *_Nonnull wakeup);

/// Adds a watcher with this wake-up word, for which a span of `stall_ns` is a stall. Another call changes `stall_ns`.
/// False if the list is full. Called by watchdogs only; neither allocates nor locks.
bool stall_beacon_join(stall_beacon *_Nonnull beacon, stall_wakeup *_Nonnull wakeup, uint64_t stall_ns);
/// Removes the watcher. Other watchers stay.
void stall_beacon_leave(stall_beacon *_Nonnull beacon, stall_wakeup *_Nonnull wakeup);

#define STALL_BEACON_TIME_MASK ((UINT64_C(1) << 56) - 1)

static inline uint64_t stall_beacon_pack(uint8_t status, uint64_t now_ns) {
    return (uint64_t)status << 56 | (now_ns & STALL_BEACON_TIME_MASK);
}
/// The bucket of a length. Longer lengths are counted in the last bucket.
static inline uint32_t stall_length_bucket(uint64_t microseconds) {
    if (microseconds < 8) return (uint32_t)microseconds;
    if (microseconds >> 36) return STALL_LENGTH_BUCKETS - 1;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(microseconds);
    return (power - 2) * 8 + (uint32_t)(microseconds >> (power - 3) & 7);
}
/// Counts a span that may be a stall or a micro-stall. Out of line, because it is rare.
void stall_counters_add_long_span(stall_counters *_Nonnull counters, uint64_t now_ns, uint64_t span_ns);

#define STALL_COUNTER_ADD(field, amount) \
    __atomic_store_n(&(field), __atomic_load_n(&(field), __ATOMIC_RELAXED) + (amount), __ATOMIC_RELAXED)

/// Counts the time since the current word, if the loop was busy. There is one writer, so no read-modify-write is
/// needed.
static inline void stall_counters_add_span_of(stall_beacon *_Nonnull beacon, uint64_t word, uint64_t now_ns) {
    if (word >> 56 != STALL_LOOP_BUSY) return;
    uint64_t span = (now_ns - word) & STALL_BEACON_TIME_MASK;
    if (__builtin_expect(span > STALL_BEACON_TIME_MASK / 2, 0)) return;  // it began after `now_ns`
    STALL_COUNTER_ADD(beacon->counters.busy_ns, span);
    STALL_COUNTER_ADD(beacon->counters.unfinished_ns, span);
    if (__builtin_expect(span >= __atomic_load_n(&beacon->counters.long_ns, __ATOMIC_RELAXED), 0))
        stall_counters_add_long_span(&beacon->counters, now_ns, span);
}
static inline void stall_counters_add_span(stall_beacon *_Nonnull beacon, uint64_t now_ns) {
    stall_counters_add_span_of(beacon, __atomic_load_n(&beacon->word, __ATOMIC_RELAXED), now_ns);
}
/// Counts the iteration that ends now, and others of its length.
static inline void stall_counters_add_iterations(stall_beacon *_Nonnull beacon, uint32_t count) {
    uint64_t length = __atomic_load_n(&beacon->counters.unfinished_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&beacon->counters.unfinished_ns, 0, __ATOMIC_RELAXED);
    STALL_COUNTER_ADD(beacon->counters.lengths[stall_length_bucket(length / 1000)], count);
}
/// Counts the iteration that ends now.
static inline void stall_counters_add_iteration(stall_beacon *_Nonnull beacon) {
    stall_counters_add_iterations(beacon, 1);
}
/// Whether there is a watcher, so that the loop counts its times.
static inline bool stall_beacon_is_watched(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->wakeup, __ATOMIC_RELAXED) != NULL;
}

/// Records when the suspected word ended. Out of line, because it runs once per suspicion. True if it was the suspected
/// word: then signal after the store of the new word. A watchdog that was woken before would read the old word and
/// sleep again.
bool stall_beacon_answer_alarm(stall_beacon *_Nonnull beacon, uint64_t now_ns);
void stall_beacon_wake_watchdog(stall_beacon *_Nonnull beacon);

/// Publishes a status. Releasing: earlier work is visible to a watchdog that sees the change. IDLE ends an iteration;
/// WAITING does not.
static inline void stall_beacon_publish(stall_beacon *_Nonnull beacon, uint8_t status, uint64_t now_ns) {
    if (stall_beacon_is_watched(beacon)) {
        stall_counters_add_span(beacon, now_ns);
        if (status != STALL_LOOP_BUSY) STALL_COUNTER_ADD(beacon->counters.rests, 1);
        if (status == STALL_LOOP_IDLE) stall_counters_add_iteration(beacon);
    }
    bool wakes = __builtin_expect(__atomic_load_n(&beacon->alarm, __ATOMIC_RELAXED) != 0, 0)
        && stall_beacon_answer_alarm(beacon, now_ns);
    __atomic_store_n(&beacon->word, stall_beacon_pack(status, now_ns), __ATOMIC_RELEASE);
    if (__builtin_expect(wakes, 0)) stall_beacon_wake_watchdog(beacon);
}
/// Publishes BUSY at the end of a wait or at the entry of a run, and wakes a watchdog that waits without a deadline.
/// The exchange orders the store before the read of the wake-up word; `stall_wakeup_prepare` does the same on the other
/// side, so one of the two sees the other.
static inline void stall_beacon_publish_awake(stall_beacon *_Nonnull beacon, uint64_t now_ns) {
    if (stall_beacon_is_watched(beacon)) stall_counters_add_span(beacon, now_ns);
    bool wakes = __builtin_expect(__atomic_load_n(&beacon->alarm, __ATOMIC_RELAXED) != 0, 0)
        && stall_beacon_answer_alarm(beacon, now_ns);
    __atomic_exchange_n(&beacon->word, stall_beacon_pack(STALL_LOOP_BUSY, now_ns), __ATOMIC_SEQ_CST);
    stall_wakeup *wakeup = __atomic_load_n(&beacon->wakeup, __ATOMIC_ACQUIRE);
    if (wakeup && __atomic_load_n(&wakeup->sleep, __ATOMIC_SEQ_CST) == STALL_WATCHDOG_WAITING)
        stall_wakeup_signal_waiting(wakeup);
    if (__builtin_expect(wakes, 0)) stall_beacon_wake_watchdog(beacon);
}
/// Replaces a word that does not show the loop's real state, from a thread that determined it. Returns false if the
/// loop has made progress since.
static inline bool stall_beacon_correct(
    stall_beacon *_Nonnull beacon, uint64_t word, uint8_t status, uint64_t now_ns) {
    return __atomic_compare_exchange_n(
        &beacon->word, &word, stall_beacon_pack(status, now_ns), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
/// Splits a busy span of several pieces of work: a new piece is being done since some time before `now_ns`. Returns false
/// if the loop has made progress since.
static inline bool stall_beacon_split(stall_beacon *_Nonnull beacon, uint64_t word, uint64_t now_ns) {
    if (!stall_beacon_correct(beacon, word, STALL_LOOP_BUSY, now_ns)) return false;
    // The counters have one writer, which is the loop.
    __atomic_fetch_add(
        &beacon->counters.split_ns, (now_ns - word) & STALL_BEACON_TIME_MASK, __ATOMIC_RELAXED);
    __atomic_fetch_add(&beacon->counters.splits, 1, __ATOMIC_RELAXED);
    return true;
}
/// Publishes a status, but only if the word is still `word`: for threads that publish for others. False if another one
/// has published meanwhile.
static inline bool stall_beacon_publish_from(
    stall_beacon *_Nonnull beacon, uint64_t word, uint8_t status, uint64_t now_ns) {
    bool wakes = __atomic_load_n(&beacon->alarm, __ATOMIC_RELAXED) != 0 && stall_beacon_answer_alarm(beacon, now_ns);
    uint64_t expected = word;
    bool is_published = __atomic_compare_exchange_n(
        &beacon->word, &expected, stall_beacon_pack(status, now_ns), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    if (is_published && stall_beacon_is_watched(beacon)) {
        stall_counters_add_span_of(beacon, word, now_ns);
        if (status != STALL_LOOP_BUSY) STALL_COUNTER_ADD(beacon->counters.rests, 1);
    }
    stall_wakeup *wakeup = __atomic_load_n(&beacon->wakeup, __ATOMIC_ACQUIRE);
    if (is_published && status == STALL_LOOP_BUSY && wakeup
        && __atomic_load_n(&wakeup->sleep, __ATOMIC_SEQ_CST) == STALL_WATCHDOG_WAITING)
        stall_wakeup_signal_waiting(wakeup);
    if (wakes) stall_beacon_wake_watchdog(beacon);
    return is_published;
}
/// Publishes the start of an iteration: progress, even if the loop never waits.
static inline void stall_beacon_publish_iteration(stall_beacon *_Nonnull beacon, uint64_t now_ns) {
    stall_beacon_publish(beacon, STALL_LOOP_BUSY, now_ns);
    if (stall_beacon_is_watched(beacon)) stall_counters_add_iteration(beacon);
}
/// Publishes which kind of callout begins; `phase` 0: between callouts. Only the loop's own thread calls it.
static inline void stall_beacon_publish_callout(stall_beacon *_Nonnull beacon, uint8_t phase) {
    uint64_t count = __atomic_load_n(&beacon->callout, __ATOMIC_RELAXED) & STALL_BEACON_TIME_MASK;
    __atomic_store_n(
        &beacon->callout, (uint64_t)phase << 56 | ((count + 1) & STALL_BEACON_TIME_MASK), __ATOMIC_RELEASE);
}
static inline void stall_beacon_publish_mode(stall_beacon *_Nonnull beacon, uint32_t mode) {
    __atomic_store_n(&beacon->mode, mode, __ATOMIC_RELAXED);
}
static inline void stall_beacon_publish_thread(stall_beacon *_Nonnull beacon, int32_t thread) {
    __atomic_store_n(&beacon->thread, thread, __ATOMIC_RELAXED);
}
/// Sets the wake-up word directly, bypassing the list of watchers.
static inline void stall_beacon_set_wakeup(stall_beacon *_Nonnull beacon, stall_wakeup *_Nullable wakeup) {
    __atomic_store_n(&beacon->wakeup, wakeup, __ATOMIC_SEQ_CST);
}

/// Requests a wake-up when `word` is replaced. Read the word again afterwards: it may have been replaced already.
static inline void stall_beacon_set_alarm(stall_beacon *_Nonnull beacon, uint64_t word) {
    __atomic_store_n(&beacon->ended, 0, __ATOMIC_RELAXED);
    __atomic_exchange_n(&beacon->alarm, word, __ATOMIC_SEQ_CST);
}
/// Clears the alarm. If another watcher may have set it on the same word, the alarm stays, and causes at most one
/// needless wake-up.
static inline void stall_beacon_clear_alarm(stall_beacon *_Nonnull beacon) {
    if (__atomic_load_n(&beacon->wakeup, __ATOMIC_ACQUIRE) == &beacon->shared) return;
    __atomic_store_n(&beacon->alarm, 0, __ATOMIC_RELAXED);
}
/// Sets where the loop records the end of the open stall, for the watcher with this wake-up word.
void stall_beacon_set_open_slot(
    stall_beacon *_Nonnull beacon, const stall_wakeup *_Nonnull wakeup, stall_open_slot *_Nullable slot);
/// When the word of the alarm was replaced; 0 if it was not, or before the alarm was set.
static inline uint64_t stall_beacon_ended(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->ended, __ATOMIC_ACQUIRE);
}

/// Reads the counters. Each number is consistent; together they are from nearly the same instant.
static inline uint64_t stall_counters_busy_ns(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->counters.busy_ns, __ATOMIC_RELAXED)
        + __atomic_load_n(&beacon->counters.split_ns, __ATOMIC_RELAXED);
}
/// Where a span was split, the thread rested as little as between two jobs: it made progress.
static inline uint64_t stall_counters_rests(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->counters.rests, __ATOMIC_RELAXED)
        + __atomic_load_n(&beacon->counters.splits, __ATOMIC_RELAXED);
}
static inline uint64_t stall_counters_micro_stalls(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->counters.micro_stalls, __ATOMIC_RELAXED);
}
static inline uint64_t stall_counters_micro_stall_ns(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->counters.micro_stall_ns, __ATOMIC_RELAXED);
}
static inline uint32_t stall_counters_length(const stall_beacon *_Nonnull beacon, uint32_t bucket) {
    return __atomic_load_n(&beacon->counters.lengths[bucket], __ATOMIC_RELAXED);
}
/// Sets the shortest span that is a stall, and thus not a micro-stall.
static inline void stall_counters_set_stall_ns(stall_beacon *_Nonnull beacon, uint64_t stall_ns) {
    __atomic_store_n(&beacon->counters.stall_ns, stall_ns, __ATOMIC_RELAXED);
    __atomic_store_n(
        &beacon->counters.long_ns, stall_ns && stall_ns < STALL_MICRO_STALL_NS ? stall_ns : STALL_MICRO_STALL_NS,
        __ATOMIC_RELAXED);
}
/// The number of stalls so far.
static inline uint64_t stall_counters_stalls(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->counters.stalls, __ATOMIC_ACQUIRE);
}
/// One of the last stalls, by number.
static inline void stall_counters_stall(
    const stall_beacon *_Nonnull beacon, uint64_t number, uint64_t *_Nonnull began_ns, uint64_t *_Nonnull length_ns,
    bool *_Nonnull is_divisible) {
    uint64_t place = number % STALL_STORED_SPANS;
    *began_ns = __atomic_load_n(&beacon->counters.last_stalls[place].began_ns, __ATOMIC_RELAXED);
    *length_ns = __atomic_load_n(&beacon->counters.last_stalls[place].length_ns, __ATOMIC_RELAXED);
    *is_divisible = __atomic_load_n(&beacon->counters.last_stalls[place].is_divisible, __ATOMIC_RELAXED);
}

static inline uint64_t stall_beacon_word(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->word, __ATOMIC_SEQ_CST);
}
static inline uint64_t stall_beacon_callout(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->callout, __ATOMIC_ACQUIRE);
}
static inline uint32_t stall_beacon_mode(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->mode, __ATOMIC_RELAXED);
}
static inline int32_t stall_beacon_thread(const stall_beacon *_Nonnull beacon) {
    return __atomic_load_n(&beacon->thread, __ATOMIC_RELAXED);
}

/// Writes the activity label; only the loop's own thread calls it. Truncated to 63 bytes at a character boundary.
void stall_beacon_write_label(stall_beacon *_Nonnull beacon, const char *_Nullable utf8, uint32_t length);
/// Writes the label of an exhausted pool: `all 4 threads taken`. `text` has room for 64 bytes.
void stall_pool_make_label(char *_Nonnull text, uint32_t threads);
/// Writes that label to a beacon. Only one thread calls it.
void stall_pool_write_label(stall_beacon *_Nonnull beacon, uint32_t threads);
/// Copies the label into `text` (64 bytes, zero-ended). Returns false if the writer kept changing it.
bool stall_beacon_read_label(const stall_beacon *_Nonnull beacon, char *_Nonnull text);
