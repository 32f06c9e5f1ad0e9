#define _GNU_SOURCE
#include "stall_descriptors.h"
#include "stall_process_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process_ending.h"
#include "stall_clock.h"
#include "stall_crash_note.h"
#include "stall_page_copy.h"
#include "stall_system_call.h"

enum { PAGE = 4096 };
_Static_assert(sizeof(stall_process_record) <= PAGE, "one page");

// One of the process's monitors. An entry with another process's id is free: a forked child starts over.
typedef struct {
    pid_t owner;
    uint32_t is_prepared;
    uint64_t run[2];
    stall_process_record *page;
    // Pages of earlier monitors, the older one last, stay mapped: a loop may store into one late. The address of
    // the older one is used for the next page.
    void *retired[2];
    pid_t retirer;  // the process that they are from: in a forked child, a parent's page is not reused
} entry;

enum { ENTRY_LIMIT = 8, CLAIMED = -1 };
static entry entries[ENTRY_LIMIT];
static uint32_t is_exiting;

void stall_process_record_path(uint64_t high, uint64_t low, char *path) {
    static const char digits[] = "0123456789abcdef";
    size_t length = 0;
    for (const char *part = STALL_PROCESS_RECORD_DIRECTORY "stallwatch-"; *part; part++) path[length++] = *part;
    for (int shift = 60; shift >= 0; shift -= 4) path[length++] = digits[high >> shift & 15];
    for (int shift = 60; shift >= 0; shift -= 4) path[length++] = digits[low >> shift & 15];
    path[length] = 0;
}

static bool is_own(const entry *entry) { return __atomic_load_n(&entry->owner, __ATOMIC_ACQUIRE) == stall_own_process(); }

static entry *own_entry(int32_t monitor) {
    return monitor >= 0 && monitor < ENTRY_LIMIT && is_own(&entries[monitor]) ? &entries[monitor] : NULL;
}

static stall_process_record *page_of(const entry *entry) { return __atomic_load_n(&entry->page, __ATOMIC_ACQUIRE); }

int32_t stall_process_record_reserve(void) {
    const pid_t own = getpid();
    for (int32_t i = 0; i < ENTRY_LIMIT; i++) {
        pid_t owner = __atomic_load_n(&entries[i].owner, __ATOMIC_ACQUIRE);
        if (owner == own || owner == CLAIMED) continue;
        if (!__atomic_compare_exchange_n(
                &entries[i].owner, &owner, CLAIMED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
        __atomic_store_n(&entries[i].is_prepared, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&entries[i].page, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&entries[i].owner, own, __ATOMIC_RELEASE);
        return i;
    }
    return -1;
}

static void retire_page(entry *entry) {
    stall_process_record *page = page_of(entry);
    if (!page) return;
    if (entry->retirer != stall_own_process()) entry->retired[0] = NULL;
    entry->retired[1] = entry->retired[0];
    entry->retired[0] = page;
    entry->retirer = stall_own_process();
    __atomic_store_n(&entry->page, NULL, __ATOMIC_RELEASE);
}

static void *take_retired(entry *entry) {
    void *place = entry->retirer == stall_own_process() ? entry->retired[1] : NULL;
    entry->retired[1] = NULL;
    return place;
}

static void release_entry(entry *entry) {
    retire_page(entry);
    __atomic_store_n(&entry->is_prepared, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->owner, 0, __ATOMIC_RELEASE);
}

static int32_t monitor_of(const entry *entry) { return (int32_t)(entry - entries); }

static void remove_page(const entry *entry) {
    if (!page_of(entry)) return;
    char path[64];
    stall_process_record_path(entry->run[0], entry->run[1], path);
    unlink(path);
}

// Whether the page contains a stall that a store does not have to its end.
static bool is_page_wanted(const entry *entry) {
    const stall_process_record *record = page_of(entry);
    for (int i = 0; record && i < STALL_PROCESS_RECORD_SLOTS; i++) {
        const stall_open_slot *slot = &record->slots[i];
        if (__atomic_load_n(&slot->began_ns, __ATOMIC_ACQUIRE) != 0
            && __atomic_load_n(&slot->report[1], __ATOMIC_ACQUIRE) != STALL_REPORT_COUNTED) return true;
    }
    return false;
}

void stall_process_record_release(int32_t monitor, bool is_run_known) {
    entry *entry = own_entry(monitor);
    if (!entry) return;
    const bool is_kept = is_run_known && is_page_wanted(entry);
    if (!is_kept) remove_page(entry);
    stall_page_copy_end(monitor, !is_kept);
    release_entry(entry);
}

static void *map_memory(void *place, int flags, int file) {
    return mmap(place, PAGE, PROT_READ | PROT_WRITE, flags | (place ? MAP_FIXED : 0), file, 0);
}

static void *map_page(const entry *entry, void *place) {
    char path[64];
    stall_process_record_path(entry->run[0], entry->run[1], path);
    int file = stall_descriptor_own(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file < 0) return MAP_FAILED;
    fchmod(file, 0600);  // whatever the app's umask
    // Allocated completely before the first store: a page that cannot be allocated later would raise SIGBUS.
    int error = posix_fallocate(file, 0, PAGE);
    void *memory = error ? MAP_FAILED : map_memory(place, MAP_SHARED, file);
    stall_descriptor_end(file);
    if (memory == MAP_FAILED) unlink(path);
    return memory;
}

static stall_process_record *make_page(entry *entry) {
    if (!__atomic_load_n(&entry->is_prepared, __ATOMIC_ACQUIRE)) return NULL;
    stall_process_record *record = page_of(entry);
    if (record) return record;
    void *place = take_retired(entry);
    void *memory = map_page(entry, place);
    if (memory == MAP_FAILED && stall_page_copy_is_kept(monitor_of(entry)))
        memory = map_memory(place, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (memory == MAP_FAILED) return NULL;
    record = memory;
    record->run[0] = entry->run[0];
    record->run[1] = entry->run[1];
    __atomic_store_n(&record->magic, STALL_PROCESS_RECORD_MAGIC, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->page, record, __ATOMIC_RELEASE);
    stall_page_copy_follow(monitor_of(entry), record);
    return record;
}

stall_open_slot *stall_process_record_open(
    int32_t monitor, uint64_t began_ns, uint64_t now_ns, const stall_open_facts *facts) {
    entry *entry = own_entry(monitor);
    stall_process_record *record = entry ? make_page(entry) : NULL;
    for (int i = 0; record && i < STALL_PROCESS_RECORD_SLOTS; i++) {
        stall_open_slot *slot = &record->slots[i];
        if (__atomic_load_n(&slot->began_ns, __ATOMIC_ACQUIRE) != 0) continue;
        slot->seen_ns = now_ns;
        __atomic_store_n(&slot->ended_ns, 0, __ATOMIC_RELAXED);
        slot->report[0] = slot->report[1] = 0;
        slot->facts = *facts;
        __atomic_store_n(&slot->began_ns, began_ns, __ATOMIC_RELEASE);
        stall_page_copy_wake(monitor);
        return slot;
    }
    return NULL;
}

void stall_open_slot_end(stall_open_slot *slot, uint64_t now_ns) {
    // Only the first end counts: a late watchdog may not have removed the slot from the beacon yet. The page of a
    // forked child's parent must not be written.
    const uint64_t offset = (uintptr_t)slot % PAGE;
    const stall_process_record *record = (const stall_process_record *)((uintptr_t)slot - offset);
    for (int i = 0; i < ENTRY_LIMIT; i++) {
        if (!is_own(&entries[i]) || page_of(&entries[i]) != record) continue;
        if (__atomic_load_n(&slot->ended_ns, __ATOMIC_RELAXED) != 0) return;
        __atomic_store_n(&slot->ended_ns, now_ns, __ATOMIC_RELEASE);
        return stall_page_copy_wake(i);
    }
}

static stall_open_slot *find(int32_t monitor, uint64_t began_ns) {
    entry *entry = own_entry(monitor);
    stall_process_record *record = entry ? page_of(entry) : NULL;
    for (int i = 0; record && i < STALL_PROCESS_RECORD_SLOTS; i++)
        if (__atomic_load_n(&record->slots[i].began_ns, __ATOMIC_ACQUIRE) == began_ns) return &record->slots[i];
    return NULL;
}

void stall_process_record_name(int32_t monitor, uint64_t began_ns, uint64_t high, uint64_t low) {
    stall_open_slot *slot = find(monitor, began_ns);
    if (!slot) return;
    slot->report[0] = high;
    __atomic_store_n(&slot->report[1], low, __ATOMIC_RELEASE);
    stall_page_copy_wake(monitor);
}

void stall_process_record_close(int32_t monitor, uint64_t began_ns) {
    stall_open_slot *slot = find(monitor, began_ns);
    if (!slot) return;
    __atomic_store_n(&slot->began_ns, 0, __ATOMIC_RELEASE);
    stall_page_copy_wake(monitor);
}

void stall_process_record_remove(int32_t monitor) {
    entry *entry = own_entry(monitor);
    if (!entry) return;
    remove_page(entry);
    stall_page_copy_end(monitor, true);
    release_entry(entry);
}

void stall_process_note_ending(uint64_t ending) {
    const uint64_t now_ns = stall_handler_now_ns();
    bool is_wanted = false;
    for (int i = 0; i < ENTRY_LIMIT; i++) {
        stall_process_record *record = is_own(&entries[i]) ? page_of(&entries[i]) : NULL;
        if (!record) continue;
        __atomic_store_n(&record->ending_ns, now_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&record->ending, ending, __ATOMIC_RELEASE);
        // The ending is that of open stalls. Without any, a program that recovers from many faults waits for nothing.
        if (!is_page_wanted(&entries[i])) continue;
        is_wanted = true;
        stall_page_copy_wake(i);
    }
    if (is_wanted && ending != STALL_PROCESS_LIVES) stall_page_copy_flush();
}

bool stall_process_record_is_ending(void) {
    return stall_process_record_is_exiting() || stall_crash_note_covers(0);
}

bool stall_process_record_is_exiting(void) { return __atomic_load_n(&is_exiting, __ATOMIC_RELAXED) != 0; }

void stall_process_record_note_exit(void) {
    __atomic_store_n(&is_exiting, 1, __ATOMIC_RELAXED);
    stall_process_note_ending(STALL_PROCESS_EXITED);
}

void stall_process_record_prepare(int32_t monitor, uint64_t high, uint64_t low) {
    stall_crash_note_prepare();
    entry *entry = own_entry(monitor);
    if (!entry) return;
    entry->run[0] = high;
    entry->run[1] = low;
    __atomic_store_n(&entry->is_prepared, 1, __ATOMIC_RELEASE);
}

bool stall_process_record_read(uint64_t high, uint64_t low, uint32_t user, stall_process_record *record) {
    char path[64];
    stall_process_record_path(high, low, path);
    int file = stall_descriptor_open_to_read(path, O_NOFOLLOW);
    if (file < 0) return false;
    struct stat facts;
    bool is_read = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == user
        && pread(file, record, sizeof *record, 0) == (ssize_t)sizeof *record;
    stall_descriptor_end(file);
    return is_read && record->magic == STALL_PROCESS_RECORD_MAGIC && record->run[0] == high && record->run[1] == low;
}

bool stall_process_record_is_own(uint64_t high, uint64_t low) {
    for (int i = 0; i < ENTRY_LIMIT; i++) {
        if (!is_own(&entries[i]) || !__atomic_load_n(&entries[i].is_prepared, __ATOMIC_ACQUIRE)) continue;
        if (entries[i].run[0] == high && entries[i].run[1] == low) return true;
    }
    return false;
}

bool stall_process_has_thread(int32_t process, const char *name) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    const int directory = stall_descriptor_open_to_read(path, O_DIRECTORY);
    DIR *tasks = directory >= 0 ? fdopendir(directory) : NULL;
    if (!tasks) {
        stall_descriptor_end(directory);
        return true;
    }
    bool is_found = false;
    for (struct dirent *entry; !is_found && (entry = readdir(tasks));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/comm", process, entry->d_name);
        int file = stall_descriptor_open_to_read(path, 0);
        char text[32];
        ssize_t count = file >= 0 ? read(file, text, sizeof text - 1) : 0;
        if (file >= 0) stall_descriptor_end(file);
        if (count <= 1) continue;
        text[count - 1] = 0;
        is_found = strcmp(text, name) == 0;
    }
    closedir(tasks);
    return is_found;
}
