#define _GNU_SOURCE
#include "stall_locks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "stall_descriptors.h"
#include "stall_task.h"

// `3: POSIX  ADVISORY  WRITE 392 fe:00:5326767 0 EOF`, followed by its waiters: `3: -> POSIX  ADVISORY ...`.
typedef struct {
    int32_t number, process;
    bool waits;
} file_lock_line;

static bool parse_file_lock(const char *line, file_lock_line *lock) {
    char *rest;
    lock->number = (int32_t)strtol(line, &rest, 10);
    if (rest == line || *rest != ':') return false;
    rest += 1 + strspn(rest + 1, " ");
    lock->waits = strncmp(rest, "->", 2) == 0;
    if (lock->waits) rest += 2;
    for (int word = 0; word < 3; word++) {  // POSIX ADVISORY WRITE
        rest += strspn(rest, " ");
        rest += strcspn(rest, " ");
    }
    lock->process = (int32_t)strtol(rest, NULL, 10);
    return true;
}

// Calls `visit` with each line of /proc/locks. False if it cannot be opened. Expensive: the kernel waits for every CPU.
static bool visit_locks(void (*visit)(const char *line, void *context), void *context) {
    int file = stall_descriptor_open_to_read("/proc/locks", 0);
    if (file < 0) return false;
    char text[8192];
    size_t kept = 0;
    ssize_t count;
    while ((count = read(file, text + kept, sizeof text - 1 - kept)) > 0) {
        text[kept += (size_t)count] = 0;
        char *start = text, *end;
        for (; (end = strchr(start, '\n')); start = end + 1) {
            *end = 0;
            visit(start, context);
        }
        kept = strlen(start);
        if (kept == sizeof text - 1) break;  // no line is that long
        memmove(text, start, kept);
    }
    stall_descriptor_end(file);
    return true;
}

typedef struct {
    file_lock_line holder;
    int32_t own, found;
    bool is_ambiguous;
} file_lock_search;

static void find_file_lock(const char *text, void *context) {
    file_lock_search *search = context;
    file_lock_line line;
    if (!parse_file_lock(text, &line)) return;
    if (!line.waits) search->holder = line;
    if (!line.waits || line.process != search->own || line.number != search->holder.number) return;
    search->is_ambiguous |= search->found != 0 && search->found != search->holder.process;
    search->found = search->holder.process;
}

bool stall_file_lock_holder(int32_t *process) {
    file_lock_search search = {.holder = {.number = -1}, .own = stall_task_process()};
    if (!visit_locks(find_file_lock, &search)) return false;
    *process = search.found;
    return search.found > 0 && !search.is_ambiguous;
}

// `1: POSIX  ADVISORY  WRITE 392 fe:00:5326767 1073741825 1073741825`
typedef struct {
    int32_t process;
    uint32_t device_major, device_minor;
    uint64_t inode, start, last;
    bool is_write;
} posix_lock_line;

static bool parse_posix_lock(const char *line, posix_lock_line *lock) {
    const char *word = strstr(line, ": POSIX ");
    if (!word) return false;
    lock->is_write = strstr(word, " WRITE ") != NULL;
    const char *kind = lock->is_write ? strstr(word, " WRITE ") : strstr(word, " READ ");
    if (!kind) return false;
    char *rest = (char *)kind + (lock->is_write ? 7 : 6);
    lock->process = (int32_t)strtol(rest, &rest, 10);
    lock->device_major = (uint32_t)strtoul(rest, &rest, 16);
    if (*rest != ':') return false;
    lock->device_minor = (uint32_t)strtoul(rest + 1, &rest, 16);
    if (*rest != ':') return false;
    lock->inode = strtoull(rest + 1, &rest, 10);
    lock->start = strtoull(rest, &rest, 10);
    char *last = rest;
    lock->last = strtoull(rest, &rest, 10);
    if (rest == last) lock->last = UINT64_MAX;  // EOF
    return lock->process > 0;
}

static bool has_open(const posix_lock_line *lock) {
    const stall_file_identity file = {makedev(lock->device_major, lock->device_minor), lock->inode};
    int32_t number;
    return stall_descriptors_of(file, &number, 1) > 0;
}

typedef struct {
    int32_t own, other;
    bool is_ours, is_ambiguous;
} database_lock_search;

// Source: sqlite3.org, "File Locking And Concurrency" and "WAL-mode File Format": the pending, reserved and shared
// bytes of the database, and the write lock of the index beside it.
static void find_database_lock(const char *line, void *context) {
    database_lock_search *search = context;
    posix_lock_line lock;
    if (!parse_posix_lock(line, &lock) || !lock.is_write) return;
    bool in_database = lock.start >= 0x40000000 && lock.start < 0x40000200, in_index = lock.start == 120;
    // The agent's own store has an index as well.
    if (!(lock.process == search->own ? in_database : in_database || in_index) || !has_open(&lock)) return;
    if (lock.process == search->own) {
        search->is_ours = true;
    } else {
        search->is_ambiguous |= search->other != 0 && search->other != lock.process;
        search->other = lock.process;
    }
}

bool stall_database_lock_holder(int32_t *process) {
    database_lock_search search = {.own = stall_task_process()};
    if (!visit_locks(find_database_lock, &search)) return false;
    *process = search.other ? search.other : search.own;
    return (search.other || search.is_ours) && !search.is_ambiguous;
}

typedef struct {
    uint64_t inode, first, last;
    bool is_found;
} byte_lock_search;

static void find_byte_lock(const char *line, void *context) {
    byte_lock_search *search = context;
    posix_lock_line lock;
    if (!parse_posix_lock(line, &lock) || lock.inode != search->inode) return;
    search->is_found |= lock.start <= search->last && lock.last >= search->first;
}

bool stall_file_is_locked(uint64_t inode, uint64_t first, uint64_t last) {
    byte_lock_search search = {.inode = inode, .first = first, .last = last};
    return visit_locks(find_byte_lock, &search) && search.is_found;
}
