#define _GNU_SOURCE
// What a thread waits for, from the arguments of its system call.
#include <link.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "stall_clock.h"
#include "stall_evidence.h"

static void add_descriptor(stall_wait_look *look, int32_t number, stall_descriptor_look *descriptors) {
    if (look->descriptor_count == STALL_WAIT_DESCRIPTORS) return;
    if (stall_descriptor_look_at(number, &descriptors[look->descriptor_count])) look->descriptor_count++;
}

// What an epoll descriptor watches is what is waited for.
static void add_members(stall_wait_look *look, stall_descriptor_look *descriptors) {
    uint32_t count = look->descriptor_count;
    for (uint32_t index = 0; index < count; index++) {
        if (strcmp(descriptors[index].target, "anon_inode:[eventpoll]") != 0) continue;
        int32_t members[STALL_WAIT_DESCRIPTORS];
        size_t found = stall_epoll_members(descriptors[index].number, members, STALL_WAIT_DESCRIPTORS);
        for (size_t member = 0; member < found; member++) add_descriptor(look, members[member], descriptors);
    }
}

static void follow_poll(stall_wait_look *look, stall_descriptor_look *descriptors) {
    struct pollfd polled[STALL_WAIT_DESCRIPTORS];
    const uint64_t *arguments = look->thread.arguments;
    size_t count = arguments[1] < STALL_WAIT_DESCRIPTORS ? (size_t)arguments[1] : STALL_WAIT_DESCRIPTORS;
    if (arguments[0] == 0 || count == 0) return;
    count = stall_memory_read(arguments[0], polled, count * sizeof *polled) / sizeof *polled;
    for (size_t index = 0; index < count; index++)
        if (polled[index].fd >= 0) add_descriptor(look, polled[index].fd, descriptors);
}

// The sets of readable, writable and exceptional ones.
static void follow_select(stall_wait_look *look, stall_descriptor_look *descriptors) {
    uint8_t set[128];
    const uint64_t *arguments = look->thread.arguments;
    size_t length = arguments[0] < 8 * sizeof set ? (size_t)(arguments[0] + 7) / 8 : sizeof set;
    for (int which = 1; which <= 3 && length > 0; which++) {
        if (arguments[which] == 0) continue;
        size_t count = stall_memory_read(arguments[which], set, length);
        for (size_t bit = 0; bit < 8 * count; bit++)
            if (set[bit / 8] >> bit % 8 & 1) add_descriptor(look, (int32_t)bit, descriptors);
    }
}

static void follow_futex(stall_wait_look *look) {
    const uint64_t *arguments = look->thread.arguments;
    int64_t limit[2];
    if (arguments[0] != 0)
        look->futex_word_count =
            (uint32_t)(stall_memory_read(arguments[0], look->futex_words, sizeof look->futex_words) / 4);
    if (arguments[3] == 0 || stall_memory_read(arguments[3], limit, sizeof limit) != sizeof limit) return;
    look->has_limit = true;
    look->limit_s = limit[0];
    look->limit_ns = limit[1];
}

typedef struct {
    unsigned long long flags;
    void *start, *end;
    const struct link_map *map;
    void *tables[8];
} loaded_object;
extern int find_object(void *address, loaded_object *object) __asm__("_dl_find_object") __attribute__((weak));

// Whether a sleeping thread was sent to sleep by SQLite, which waits for a lock in this way. Takes no lock.
static bool sleeps_in_sqlite(const stall_wait_look *look) {
    enum { WORDS = 128 };
    uint64_t words[WORDS];
    if (!find_object || look->thread.stack_pointer == 0) return false;
    size_t count = stall_memory_read(look->thread.stack_pointer, words, sizeof words) / sizeof *words;
    for (size_t i = 0; i < count; i++) {
        loaded_object object;
        if (words[i] < 4096 || find_object((void *)(uintptr_t)words[i], &object) != 0) continue;
        if (object.map && object.map->l_name && strstr(object.map->l_name, "libsqlite3")) return true;
    }
    return false;
}

void stall_wait_follow(stall_wait_look *look, stall_wait_detail detail, stall_descriptor_look *descriptors) {
    look->detail = detail;
    look->at_ns = stall_monotonic_ns();
    look->unix_us = stall_unix_us();
    look->has_limit = look->waits_for_file = false;
    look->descriptor_count = look->futex_word_count = 0;
    look->drainer = look->lock_process = 0;
    look->lock_process_name[0] = 0;
    switch (detail) {
    case STALL_WAIT_PLAIN: break;
    case STALL_WAIT_POLL: follow_poll(look, descriptors); break;
    case STALL_WAIT_SELECT: follow_select(look, descriptors); break;
    case STALL_WAIT_FUTEX: follow_futex(look); break;
    case STALL_WAIT_FILE_LOCK:
        look->waits_for_file = true;
        // fall through
    case STALL_WAIT_DESCRIPTOR: add_descriptor(look, (int32_t)look->thread.arguments[0], descriptors); break;
    case STALL_WAIT_SLEEP: look->waits_for_file = sleeps_in_sqlite(look); break;
    }
    add_members(look, descriptors);
}

// A wait for a file's lock is one system call that lasts: nothing of it may have changed. SQLite sleeps again and again, for 1 to
// 100 ms, and tries in between: the place on its stack is the same.
static bool is_same_wait(const stall_wait_look *look, const stall_thread_look *now) {
    if (now->is_running || now->system_call != look->thread.system_call) return false;
    if (look->detail == STALL_WAIT_SLEEP) return now->stack_pointer == look->thread.stack_pointer;
    return now->waits == look->thread.waits
        && memcmp(now->arguments, look->thread.arguments, sizeof now->arguments) == 0;
}

static bool waits_still(const stall_wait_look *look, stall_thread_files *files) {
    enum { TRIES = 5, PAUSE_NS = 500000 };
    for (int attempt = 0; attempt < TRIES; attempt++) {
        stall_thread_look now;
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        if (attempt > 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        stall_evidence_look(files, &now);
        if (is_same_wait(look, &now)) return true;
        if (look->detail != STALL_WAIT_SLEEP) return false;
    }
    return false;
}

void stall_wait_find_file_lock(stall_wait_look *look, int32_t thread) {
    stall_thread_files files;
    if (!look->waits_for_file) return;
    bool is_known = stall_thread_files_open(&files, thread, 0) == 0 && waits_still(look, &files);
    if (is_known)
        is_known = look->detail == STALL_WAIT_FILE_LOCK ? stall_file_lock_holder(&look->lock_process)
                                                        : stall_database_lock_holder(&look->lock_process);
    // The lock that was seen is the one that the thread waited for only if it waits for it still.
    if (!is_known || !waits_still(look, &files)) look->lock_process = 0;
    if (look->lock_process == 0 || !stall_process_read_name(look->lock_process, look->lock_process_name))
        look->lock_process_name[0] = 0;
    stall_thread_files_close(&files);
}
