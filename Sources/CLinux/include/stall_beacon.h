// What a watched loop publishes and the watchdog reads: one cache line of atomics, no lock, no call on the hot path.
// Shared by StallRunLoop (writes) and StallDetection (reads), which do not know each other.
//
// `word` holds the loop's status and the instant it began in one atomic, so that a reader never sees the new status
// with the old time. A word that reads the same twice means: nothing moved in between.
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/// Not running: between runs, or never run. Not counted.
#define STALL_LOOP_IDLE 0
/// Serving events: from entry, from the end of a wait, or from the beginning of an iteration.
#define STALL_LOOP_BUSY 1
/// Asleep in the kernel until an event comes. Never a stall.
#define STALL_LOOP_WAITING 2

/// The watchdog looks around; nobody need wake it.
#define STALL_WATCHDOG_AWAKE 0
/// It sleeps without a deadline, because every loop waits: the first one to become busy wakes it.
#define STALL_WATCHDOG_PARKED 1
/// It sleeps until a deadline: only an alarm wakes it early.
#define STALL_WATCHDOG_DOZING 2

/// Wakes a sleeping watchdog. Lives as long as the process: a loop may ring it at any moment.
typedef struct stall_bell {
    _Alignas(64) _Atomic(uint32_t) sleep;  ///< STALL_WATCHDOG_*; a futex word
} stall_bell;

typedef struct stall_beacon {
    _Alignas(64) _Atomic(uint64_t) word;  ///< 63...56 status, 55...0 CLOCK_MONOTONIC nanoseconds, modulo 2^56
    _Atomic(uint64_t) callout;            ///< 63...56 phase (LoopPhase), 55...0 number of callouts so far
    _Atomic(uint64_t) iterations;         ///< iterations so far
    _Atomic(stall_bell *) bell;           ///< rung on the way out of a wait; NULL while nobody watches
    _Atomic(uint64_t) alarm;              ///< a word under suspicion: whoever replaces it says when, and rings
    _Atomic(uint64_t) ended;              ///< when the suspected word was replaced, in nanoseconds; 0 until then
    _Atomic(uint32_t) mode;               ///< the loop's number for its current mode
    _Atomic(int32_t) thread;              ///< gettid of the loop's thread
    _Atomic(uint32_t) references;
    _Atomic(uint32_t) label_sequence;     ///< odd while `label` is being written
    _Alignas(64) _Atomic(uint64_t) label[8];  ///< up to 63 bytes of UTF-8 and a zero
} stall_beacon;

/// A new beacon with one reference, or NULL without memory. Release with `stall_beacon_release`.
stall_beacon *_Nullable stall_beacon_create(void);
void stall_beacon_retain(stall_beacon *_Nonnull beacon);
void stall_beacon_release(stall_beacon *_Nonnull beacon);

/// A new bell, never freed; NULL without memory.
stall_bell *_Nullable stall_bell_create(void);
/// Says that the watchdog is about to sleep. Read every beacon once more after it, then call `stall_bell_sleep`.
static inline void stall_bell_announce(stall_bell *_Nonnull bell, uint32_t sleep) {
    atomic_exchange_explicit(&bell->sleep, sleep, memory_order_seq_cst);
}
/// Sleeps as announced until the bell rings, a signal comes, or `deadline_ns` (CLOCK_MONOTONIC; UINT64_MAX: none).
/// Returns at once when the bell rang since it was announced.
void stall_bell_sleep(stall_bell *_Nonnull bell, uint32_t sleep, uint64_t deadline_ns);
/// Wakes the watchdog from any kind of sleep. Keeps errno, which belongs to the app.
void stall_bell_ring(stall_bell *_Nonnull bell);

#define STALL_BEACON_TIME_MASK ((UINT64_C(1) << 56) - 1)

static inline uint64_t stall_beacon_pack(uint8_t status, uint64_t now_ns) {
    return (uint64_t)status << 56 | (now_ns & STALL_BEACON_TIME_MASK);
}
/// Notes when the suspected word ended and rings. Out of line: it runs once a suspicion.
void stall_beacon_answer_alarm(stall_beacon *_Nonnull beacon, uint64_t now_ns);

/// Publishes a status. Releasing: work done before is visible to a watchdog that sees the change.
static inline void stall_beacon_publish(stall_beacon *_Nonnull beacon, uint8_t status, uint64_t now_ns) {
    if (__builtin_expect(atomic_load_explicit(&beacon->alarm, memory_order_relaxed) != 0, 0))
        stall_beacon_answer_alarm(beacon, now_ns);
    atomic_store_explicit(&beacon->word, stall_beacon_pack(status, now_ns), memory_order_release);
}
/// Publishes BUSY on the way out of a wait or into a run, and wakes a parked watchdog. The exchange orders the
/// store before the look at the bell; `stall_bell_announce` does the same on the other side, so one of the two sees the other.
static inline void stall_beacon_publish_awake(stall_beacon *_Nonnull beacon, uint64_t now_ns) {
    if (__builtin_expect(atomic_load_explicit(&beacon->alarm, memory_order_relaxed) != 0, 0))
        stall_beacon_answer_alarm(beacon, now_ns);
    atomic_exchange_explicit(&beacon->word, stall_beacon_pack(STALL_LOOP_BUSY, now_ns), memory_order_seq_cst);
    stall_bell *bell = atomic_load_explicit(&beacon->bell, memory_order_acquire);
    if (bell && atomic_load_explicit(&bell->sleep, memory_order_seq_cst) == STALL_WATCHDOG_PARKED)
        stall_bell_ring(bell);
}
/// Publishes the start of an iteration: progress, even when the loop never waits.
static inline void stall_beacon_publish_iteration(stall_beacon *_Nonnull beacon, uint64_t now_ns) {
    uint64_t count = atomic_load_explicit(&beacon->iterations, memory_order_relaxed);
    atomic_store_explicit(&beacon->iterations, count + 1, memory_order_relaxed);
    stall_beacon_publish(beacon, STALL_LOOP_BUSY, now_ns);
}
/// Publishes which kind of callout begins. Only the loop's own thread calls it. `phase` 0 means: between callouts.
static inline void stall_beacon_publish_callout(stall_beacon *_Nonnull beacon, uint8_t phase) {
    uint64_t count = atomic_load_explicit(&beacon->callout, memory_order_relaxed) & STALL_BEACON_TIME_MASK;
    atomic_store_explicit(
        &beacon->callout, (uint64_t)phase << 56 | ((count + 1) & STALL_BEACON_TIME_MASK), memory_order_release);
}
static inline void stall_beacon_publish_mode(stall_beacon *_Nonnull beacon, uint32_t mode) {
    atomic_store_explicit(&beacon->mode, mode, memory_order_relaxed);
}
static inline void stall_beacon_publish_thread(stall_beacon *_Nonnull beacon, int32_t thread) {
    atomic_store_explicit(&beacon->thread, thread, memory_order_relaxed);
}
static inline void stall_beacon_set_bell(stall_beacon *_Nonnull beacon, stall_bell *_Nullable bell) {
    atomic_store_explicit(&beacon->bell, bell, memory_order_seq_cst);
}

/// Asks to be rung when `word` is replaced. Read the word again afterwards: it may have gone already.
static inline void stall_beacon_set_alarm(stall_beacon *_Nonnull beacon, uint64_t word) {
    atomic_store_explicit(&beacon->ended, 0, memory_order_relaxed);
    atomic_exchange_explicit(&beacon->alarm, word, memory_order_seq_cst);
}
static inline void stall_beacon_clear_alarm(stall_beacon *_Nonnull beacon) {
    atomic_store_explicit(&beacon->alarm, 0, memory_order_relaxed);
}
/// When the word that the alarm was set on was replaced; 0 while it stands, or when it went before the alarm was set.
static inline uint64_t stall_beacon_ended(const stall_beacon *_Nonnull beacon) {
    return atomic_load_explicit(&beacon->ended, memory_order_acquire);
}

static inline uint64_t stall_beacon_word(const stall_beacon *_Nonnull beacon) {
    return atomic_load_explicit(&beacon->word, memory_order_seq_cst);
}
static inline uint64_t stall_beacon_callout(const stall_beacon *_Nonnull beacon) {
    return atomic_load_explicit(&beacon->callout, memory_order_acquire);
}
static inline uint64_t stall_beacon_iterations(const stall_beacon *_Nonnull beacon) {
    return atomic_load_explicit(&beacon->iterations, memory_order_relaxed);
}
static inline uint32_t stall_beacon_mode(const stall_beacon *_Nonnull beacon) {
    return atomic_load_explicit(&beacon->mode, memory_order_relaxed);
}
static inline int32_t stall_beacon_thread(const stall_beacon *_Nonnull beacon) {
    return atomic_load_explicit(&beacon->thread, memory_order_relaxed);
}

/// Writes the activity label; only the loop's own thread calls it. `length` beyond 63 is cut at a character boundary.
void stall_beacon_write_label(stall_beacon *_Nonnull beacon, const char *_Nullable utf8, uint32_t length);
/// Copies the label into `text` (64 bytes, zero ended). Returns false when the writer kept changing it.
bool stall_beacon_read_label(const stall_beacon *_Nonnull beacon, char *_Nonnull text);
