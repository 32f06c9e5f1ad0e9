#include "stall_beacon.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *zeroed_lines(size_t size) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, size) != 0) return NULL;
    return memset(memory, 0, size);
}

stall_beacon *stall_beacon_create(void) {
    stall_beacon *beacon = zeroed_lines(sizeof(stall_beacon));
    if (!beacon) return NULL;
    beacon->shared = (stall_wakeup){.sleep = STALL_WATCHDOG_WAITING, .is_shared = true};
    __atomic_store_n(&beacon->references, 1, __ATOMIC_RELAXED);
    return beacon;
}

void stall_beacon_retain(stall_beacon *beacon) {
    __atomic_fetch_add(&beacon->references, 1, __ATOMIC_RELAXED);
}

void stall_beacon_release(stall_beacon *beacon) {
    if (__atomic_fetch_sub(&beacon->references, 1, __ATOMIC_ACQ_REL) == 1) free(beacon);
}

stall_wakeup *stall_wakeup_create(void) { return zeroed_lines(sizeof(stall_wakeup)); }

// The futex returns early on a signal, or if the word has changed already; the watchdog polls again in both cases.
void stall_wakeup_wait(stall_wakeup *wakeup, uint32_t sleep, uint64_t deadline_ns) {
    struct timespec deadline = {
        .tv_sec = (time_t)(deadline_ns / 1000000000), .tv_nsec = (long)(deadline_ns % 1000000000)};
    syscall(
        SYS_futex, &wakeup->sleep, FUTEX_WAIT_BITSET_PRIVATE, sleep,
        deadline_ns == UINT64_MAX ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    __atomic_store_n(&wakeup->sleep, STALL_WATCHDOG_AWAKE, __ATOMIC_RELAXED);
}

static void ring(stall_wakeup *wakeup) {
    if (__atomic_load_n(&wakeup->sleep, __ATOMIC_SEQ_CST) == STALL_WATCHDOG_AWAKE) return;
    if (__atomic_exchange_n(&wakeup->sleep, STALL_WATCHDOG_AWAKE, __ATOMIC_SEQ_CST)
        == STALL_WATCHDOG_AWAKE)
        return;
    int saved = errno;
    syscall(SYS_futex, &wakeup->sleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

static void ring_watchers(stall_wakeup *shared, bool waiting_only) {
    stall_beacon *beacon = (stall_beacon *)((char *)shared - offsetof(stall_beacon, shared));
    for (int i = 0; i < STALL_WATCHER_LIMIT; i++) {
        stall_wakeup *wakeup = __atomic_load_n(&beacon->watchers[i].wakeup, __ATOMIC_SEQ_CST);
        if (!wakeup) continue;
        if (waiting_only && __atomic_load_n(&wakeup->sleep, __ATOMIC_SEQ_CST) != STALL_WATCHDOG_WAITING) continue;
        ring(wakeup);
    }
}

void stall_wakeup_signal(stall_wakeup *wakeup) {
    if (wakeup->is_shared) ring_watchers(wakeup, false); else ring(wakeup);
}

void stall_wakeup_signal_waiting(stall_wakeup *wakeup) {
    if (wakeup->is_shared) ring_watchers(wakeup, true); else ring(wakeup);
}

// MARK: Several watchers
//
// Watchdogs start and end on threads of their own. There is no lock, because a forked child could inherit it locked.

typedef struct {
    stall_wakeup *wakeup;
    uint64_t stall_ns;
} choice;

static choice choose(stall_beacon *beacon) {
    choice chosen = {NULL, UINT64_MAX};
    for (int i = 0; i < STALL_WATCHER_LIMIT; i++) {
        stall_wakeup *wakeup = __atomic_load_n(&beacon->watchers[i].wakeup, __ATOMIC_SEQ_CST);
        if (!wakeup) continue;
        const uint64_t stall_ns = __atomic_load_n(&beacon->watchers[i].stall_ns, __ATOMIC_SEQ_CST);
        chosen.wakeup = chosen.wakeup ? &beacon->shared : wakeup;
        if (stall_ns < chosen.stall_ns) chosen.stall_ns = stall_ns;
    }
    if (!chosen.wakeup) chosen.stall_ns = 0;
    return chosen;
}

// The last thread that changed the list sees all of it; it stores last, or sees that another one did.
static void apply_watchers(stall_beacon *beacon) {
    choice chosen, after = choose(beacon);
    do {
        chosen = after;
        stall_counters_set_stall_ns(beacon, chosen.stall_ns);
        __atomic_store_n(&beacon->wakeup, chosen.wakeup, __ATOMIC_SEQ_CST);
        after = choose(beacon);
    } while (after.wakeup != chosen.wakeup || after.stall_ns != chosen.stall_ns);
}

static stall_watcher *find_watcher(stall_beacon *beacon, const stall_wakeup *wakeup) {
    for (int i = 0; i < STALL_WATCHER_LIMIT; i++) {
        if (__atomic_load_n(&beacon->watchers[i].wakeup, __ATOMIC_ACQUIRE) == wakeup) return &beacon->watchers[i];
    }
    return NULL;
}

static stall_watcher *take_entry(stall_beacon *beacon, stall_wakeup *wakeup) {
    for (int i = 0; i < STALL_WATCHER_LIMIT; i++) {
        stall_wakeup *none = NULL;
        if (__atomic_compare_exchange_n(
                &beacon->watchers[i].wakeup, &none, wakeup, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            return &beacon->watchers[i];
        }
    }
    return NULL;
}

bool stall_beacon_join(stall_beacon *beacon, stall_wakeup *wakeup, uint64_t stall_ns) {
    stall_watcher *watcher = find_watcher(beacon, wakeup);
    if (!watcher) watcher = take_entry(beacon, wakeup);
    if (!watcher) return false;
    __atomic_store_n(&watcher->stall_ns, stall_ns, __ATOMIC_SEQ_CST);
    apply_watchers(beacon);
    return true;
}

void stall_beacon_leave(stall_beacon *beacon, stall_wakeup *wakeup) {
    stall_watcher *watcher = find_watcher(beacon, wakeup);
    if (!watcher) return;
    __atomic_store_n(&watcher->open_slot, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&watcher->wakeup, NULL, __ATOMIC_SEQ_CST);
    apply_watchers(beacon);
}

void stall_beacon_set_open_slot(stall_beacon *beacon, const stall_wakeup *wakeup, stall_open_slot *slot) {
    stall_watcher *watcher = find_watcher(beacon, wakeup);
    if (watcher) __atomic_store_n(&watcher->open_slot, slot, __ATOMIC_RELEASE);
}

void stall_counters_add_long_span(stall_counters *counters, uint64_t now_ns, uint64_t span_ns) {
    uint64_t stall_ns = __atomic_load_n(&counters->stall_ns, __ATOMIC_RELAXED);
    if (span_ns >= stall_ns) {
        if (stall_ns == 0) return;
        uint64_t number = __atomic_load_n(&counters->stalls, __ATOMIC_RELAXED), place = number % STALL_STORED_SPANS;
        __atomic_store_n(&counters->last_stalls[place].began_ns, now_ns - span_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&counters->last_stalls[place].length_ns, span_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&counters->last_stalls[place].is_divisible,
            __atomic_load_n(&counters->are_divisible, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
        __atomic_store_n(&counters->stalls, number + 1, __ATOMIC_RELEASE);
        return;
    }
    if (span_ns < STALL_MICRO_STALL_NS) return;
    STALL_COUNTER_ADD(counters->micro_stalls, 1);
    STALL_COUNTER_ADD(counters->micro_stall_ns, span_ns);
}

bool stall_beacon_answer_alarm(stall_beacon *beacon, uint64_t now_ns) {
    uint64_t word = __atomic_load_n(&beacon->word, __ATOMIC_RELAXED), alarm = word;
    if (!__atomic_compare_exchange_n(&beacon->alarm, &alarm, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
        // Set on a word that has been replaced, which the thread that set it sees. Left set, it would cost a call per
        // iteration.
        __atomic_compare_exchange_n(&beacon->alarm, &alarm, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        return false;
    }
    __atomic_store_n(&beacon->ended, now_ns, __ATOMIC_RELEASE);
    for (int i = 0; i < STALL_WATCHER_LIMIT; i++) {
        stall_open_slot *slot = __atomic_load_n(&beacon->watchers[i].open_slot, __ATOMIC_ACQUIRE);
        if (slot) stall_open_slot_end(slot, now_ns);
    }
    return true;
}

void stall_beacon_wake_watchdog(stall_beacon *beacon) {
    // Orders the store of the word before the read of the wake-up word, like the preparation on the other side.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    stall_wakeup *wakeup = __atomic_load_n(&beacon->wakeup, __ATOMIC_ACQUIRE);
    if (wakeup) stall_wakeup_signal(wakeup);
}

void stall_beacon_write_label(stall_beacon *beacon, const char *utf8, uint32_t length) {
    char text[64] = {0};
    if (length > 63) {
        length = 63;
        while (length > 0 && ((unsigned char)utf8[length] & 0xc0) == 0x80) length--;
    }
    if (length > 0) memcpy(text, utf8, length);
    uint32_t sequence = __atomic_load_n(&beacon->label_sequence, __ATOMIC_RELAXED);
    __atomic_store_n(&beacon->label_sequence, sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (int i = 0; i < 8; i++) {
        uint64_t part;
        memcpy(&part, text + 8 * i, 8);
        __atomic_store_n(&beacon->label[i], part, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&beacon->label_sequence, sequence + 2, __ATOMIC_RELEASE);
}

void stall_pool_make_label(char *text, uint32_t threads) {
    char digits[12], *start = digits + sizeof digits - 1;
    *start = 0;
    do *--start = (char)('0' + threads % 10);
    while ((threads /= 10) > 0);
    strcpy(text, "all ");
    strcat(strcat(text, start), " threads taken");
}

void stall_pool_write_label(stall_beacon *beacon, uint32_t threads) {
    char text[64];
    stall_pool_make_label(text, threads);
    stall_beacon_write_label(beacon, text, (uint32_t)strlen(text));
}

bool stall_beacon_read_label(const stall_beacon *beacon, char *text) {
    for (int attempt = 0; attempt < 8; attempt++) {
        uint32_t before = __atomic_load_n(&beacon->label_sequence, __ATOMIC_ACQUIRE);
        for (int i = 0; i < 8; i++) {
            uint64_t part = __atomic_load_n(&beacon->label[i], __ATOMIC_RELAXED);
            memcpy(text + 8 * i, &part, 8);
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        uint32_t after = __atomic_load_n(&beacon->label_sequence, __ATOMIC_RELAXED);
        if (before == after && before % 2 == 0) return true;
    }
    text[0] = 0;
    return false;
}
