#include "stall_task_note.h"

#include <string.h>

#define WEAK __attribute__((weak))
extern __attribute__((swiftcall)) void *swift_task_getCurrent(void) WEAK;

enum { FREE = 0, CLAIMED = 1, REACH = 32 };  // REACH: how far from its hashed index a label may be

typedef struct {
    uint64_t task;      // its address; FREE, or CLAIMED while it is being written
    uint32_t sequence;  // odd while the text changes
    uint64_t text[8];
} note;

static note notes[STALL_TASK_NOTE_LIMIT];
static uint64_t dropped;

uint64_t stall_task_current(void) {
    return swift_task_getCurrent ? (uint64_t)(uintptr_t)swift_task_getCurrent() : 0;
}

static note *place(uint64_t task, int step) {
    // Objects are at least 16 bytes apart.
    uint64_t hash = ((task >> 4) * UINT64_C(0x9e3779b97f4a7c15)) >> 40;
    return &notes[(hash + (uint64_t)step) & (STALL_TASK_NOTE_LIMIT - 1)];
}

static note *find(uint64_t task) {
    for (int step = 0; step < REACH; step++) {
        note *candidate = place(task, step);
        if (__atomic_load_n(&candidate->task, __ATOMIC_ACQUIRE) == task) return candidate;
    }
    return NULL;
}

static note *claim(uint64_t task) {
    for (int step = 0; step < REACH; step++) {
        note *candidate = place(task, step);
        uint64_t expected = FREE;
        if (__atomic_compare_exchange_n(
                &candidate->task, &expected, CLAIMED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return candidate;
    }
    return NULL;
}

static void write_text(note *note, const char *utf8, uint32_t length) {
    char text[64] = {0};
    if (length > 63) {
        length = 63;
        while (length > 0 && ((unsigned char)utf8[length] & 0xc0) == 0x80) length--;
    }
    memcpy(text, utf8, length);
    uint32_t sequence = __atomic_load_n(&note->sequence, __ATOMIC_RELAXED);
    __atomic_store_n(&note->sequence, sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (int i = 0; i < 8; i++) {
        uint64_t part;
        memcpy(&part, text + 8 * i, 8);
        __atomic_store_n(&note->text[i], part, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&note->sequence, sequence + 2, __ATOMIC_RELEASE);
}

static bool read_text(const note *note, uint64_t task, char *text) {
    for (int attempt = 0; attempt < 8; attempt++) {
        uint32_t before = __atomic_load_n(&note->sequence, __ATOMIC_ACQUIRE);
        for (int i = 0; i < 8; i++) {
            uint64_t part = __atomic_load_n(&note->text[i], __ATOMIC_RELAXED);
            memcpy(text + 8 * i, &part, 8);
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&note->task, __ATOMIC_RELAXED) != task) break;
        if (before % 2 == 0 && __atomic_load_n(&note->sequence, __ATOMIC_RELAXED) == before) return true;
    }
    text[0] = 0;
    return false;
}

bool stall_task_note_set(const char *utf8, uint32_t length, char *before) {
    before[0] = 0;
    uint64_t task = stall_task_current();
    if (task <= CLAIMED) return false;
    note *own = find(task);
    if (own) read_text(own, task, before);
    if (length == 0 || !utf8) {
        if (own) __atomic_store_n(&own->task, FREE, __ATOMIC_RELEASE);
        return true;
    }
    note *found = own ? own : claim(task);
    if (!found) {
        __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
        return false;
    }
    write_text(found, utf8, length);
    __atomic_store_n(&found->task, task, __ATOMIC_RELEASE);
    return true;
}

bool stall_task_note_read(uint64_t task, char *text) {
    text[0] = 0;
    note *found = task > CLAIMED ? find(task) : NULL;
    return found && read_text(found, task, text);
}

uint64_t stall_task_note_dropped(void) { return __atomic_load_n(&dropped, __ATOMIC_RELAXED); }
