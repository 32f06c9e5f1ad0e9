#define _GNU_SOURCE
// Determines what a thread waits for from the arguments of its system call.
#include <link.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "stall_clock.h"
#include "stall_locks.h"
#include "stall_evidence.h"

static void add_descriptor(stall_wait_snapshot *snapshot, int32_t number, stall_descriptor_snapshot *descriptors) {
    if (snapshot->descriptor_count == STALL_WAIT_DESCRIPTORS) return;
    if (stall_descriptor_read(number, &descriptors[snapshot->descriptor_count])) snapshot->descriptor_count++;
}

// Replaces an epoll descriptor by the descriptors in its set.
static void add_members(stall_wait_snapshot *snapshot, stall_descriptor_snapshot *descriptors) {
    uint32_t count = snapshot->descriptor_count;
    for (uint32_t index = 0; index < count; index++) {
        if (strcmp(descriptors[index].target, "anon_inode:[eventpoll]") != 0) continue;
        int32_t members[STALL_WAIT_DESCRIPTORS];
        size_t found = stall_epoll_members(descriptors[index].number, members, STALL_WAIT_DESCRIPTORS);
        for (size_t member = 0; member < found; member++) add_descriptor(snapshot, members[member], descriptors);
    }
}

static void follow_poll(stall_wait_snapshot *snapshot, stall_descriptor_snapshot *descriptors) {
    struct pollfd polled[STALL_WAIT_DESCRIPTORS];
    const uint64_t *arguments = snapshot->thread.arguments;
    size_t count = arguments[1] < STALL_WAIT_DESCRIPTORS ? (size_t)arguments[1] : STALL_WAIT_DESCRIPTORS;
    if (arguments[0] == 0 || count == 0) return;
    count = stall_memory_read(arguments[0], polled, count * sizeof *polled) / sizeof *polled;
    for (size_t index = 0; index < count; index++)
        if (polled[index].fd >= 0) add_descriptor(snapshot, polled[index].fd, descriptors);
}

// The sets of readable, writable and exceptional descriptors.
static void follow_select(stall_wait_snapshot *snapshot, stall_descriptor_snapshot *descriptors) {
    uint8_t set[128];
    const uint64_t *arguments = snapshot->thread.arguments;
    size_t length = arguments[0] < 8 * sizeof set ? (size_t)(arguments[0] + 7) / 8 : sizeof set;
    for (int which = 1; which <= 3 && length > 0; which++) {
        if (arguments[which] == 0) continue;
        size_t count = stall_memory_read(arguments[which], set, length);
        for (size_t bit = 0; bit < 8 * count; bit++)
            if (set[bit / 8] >> bit % 8 & 1) add_descriptor(snapshot, (int32_t)bit, descriptors);
    }
}

static void follow_futex(stall_wait_snapshot *snapshot) {
    const uint64_t *arguments = snapshot->thread.arguments;
    int64_t limit[2];
    if (arguments[0] != 0)
        snapshot->futex_word_count =
            (uint32_t)(stall_memory_read(arguments[0], snapshot->futex_words, sizeof snapshot->futex_words) / 4);
    if (arguments[3] == 0 || stall_memory_read(arguments[3], limit, sizeof limit) != sizeof limit) return;
    snapshot->has_limit = true;
    snapshot->limit_s = limit[0];
    snapshot->limit_ns = limit[1];
}

// IORING_ENTER_REGISTERED_RING: the argument is an index of the thread's rings, not a descriptor.
static void follow_ring(stall_wait_snapshot *snapshot, stall_descriptor_snapshot *descriptors) {
    enum { REGISTERED = 16 };
    if (snapshot->thread.arguments[3] & REGISTERED) return;
    const int32_t ring = (int32_t)snapshot->thread.arguments[0];
    add_descriptor(snapshot, ring, descriptors);
    if (snapshot->descriptor_count > 0) snapshot->ring_operations = stall_ring_operations(ring);
}

// An open, a truncate or a rename waits until a lease on the file is given back.
static bool waits_for_lease(const stall_wait_snapshot *snapshot) {
    return strstr(snapshot->thread.wait_channel, "break_lease") != NULL;
}

typedef struct {
    unsigned long long flags;
    void *start, *end;
    const struct link_map *map;
    void *tables[8];
} loaded_object;
extern int find_object(void *address, loaded_object *object) __asm__("_dl_find_object") __attribute__((weak));

// Whether a sleeping thread was called from SQLite, which waits for locks by sleeping. Takes no lock.
static bool sleeps_in_sqlite(const stall_wait_snapshot *snapshot) {
    enum { WORDS = 128 };
    uint64_t words[WORDS];
    if (!find_object || snapshot->thread.stack_pointer == 0) return false;
    size_t count = stall_memory_read(snapshot->thread.stack_pointer, words, sizeof words) / sizeof *words;
    for (size_t i = 0; i < count; i++) {
        loaded_object object;
        if (words[i] < 4096 || find_object((void *)(uintptr_t)words[i], &object) != 0) continue;
        if (object.map && object.map->l_name && strstr(object.map->l_name, "libsqlite3")) return true;
    }
    return false;
}

void stall_wait_follow(
    stall_wait_snapshot *snapshot, stall_wait_detail detail, stall_descriptor_snapshot *descriptors) {
    snapshot->detail = detail;
    snapshot->at_ns = stall_monotonic_ns();
    snapshot->unix_us = stall_unix_us();
    snapshot->has_limit = snapshot->waits_for_file = false;
    snapshot->descriptor_count = snapshot->futex_word_count = 0;
    snapshot->drainer = snapshot->lock_process = 0;
    snapshot->ring_operations = 0;
    snapshot->lock_process_name[0] = 0;
    switch (detail) {
    case STALL_WAIT_PLAIN: break;
    case STALL_WAIT_POLL: follow_poll(snapshot, descriptors); break;
    case STALL_WAIT_SELECT: follow_select(snapshot, descriptors); break;
    case STALL_WAIT_FUTEX: follow_futex(snapshot); break;
    case STALL_WAIT_FILE_LOCK:
        snapshot->waits_for_file = true;
        // fall through
    case STALL_WAIT_DESCRIPTOR: add_descriptor(snapshot, (int32_t)snapshot->thread.arguments[0], descriptors); break;
    case STALL_WAIT_SLEEP: snapshot->waits_for_file = sleeps_in_sqlite(snapshot); break;
    case STALL_WAIT_RING: follow_ring(snapshot, descriptors); break;
    }
    snapshot->waits_for_file |= waits_for_lease(snapshot);
    add_members(snapshot, descriptors);
}

// A wait for a file lock is one long system call, of which nothing may have changed. SQLite instead sleeps repeatedly,
// for 1 to 100 ms, and retries in between: its stack pointer is the same.
static bool is_same_wait(const stall_wait_snapshot *snapshot, const stall_thread_snapshot *now) {
    if (now->is_running || now->system_call != snapshot->thread.system_call) return false;
    if (snapshot->detail == STALL_WAIT_SLEEP) return now->stack_pointer == snapshot->thread.stack_pointer;
    return now->waits == snapshot->thread.waits
        && memcmp(now->arguments, snapshot->thread.arguments, sizeof now->arguments) == 0;
}

static bool waits_still(const stall_wait_snapshot *snapshot, stall_thread_files *files) {
    enum { TRIES = 5, PAUSE_NS = 500000 };
    for (int attempt = 0; attempt < TRIES; attempt++) {
        stall_thread_snapshot now;
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        if (attempt > 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        stall_evidence_read(files, &now);
        if (is_same_wait(snapshot, &now)) return true;
        if (snapshot->detail != STALL_WAIT_SLEEP) return false;
    }
    return false;
}

void stall_wait_find_file_lock(stall_wait_snapshot *snapshot, int32_t thread) {
    stall_thread_files files;
    if (!snapshot->waits_for_file) return;
    bool is_known = stall_thread_files_open(&files, thread, 0) == 0 && waits_still(snapshot, &files);
    if (is_known)
        is_known = snapshot->detail == STALL_WAIT_SLEEP ? stall_database_lock_holder(&snapshot->lock_process)
                                                        : stall_file_lock_holder(&snapshot->lock_process);
    // The lock found is the thread's only if the thread still waits for it.
    if (!is_known || !waits_still(snapshot, &files)) snapshot->lock_process = 0;
    if (snapshot->lock_process == 0 || !stall_process_read_name(snapshot->lock_process, snapshot->lock_process_name))
        snapshot->lock_process_name[0] = 0;
    stall_thread_files_close(&files);
}
