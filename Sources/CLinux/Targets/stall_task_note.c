#include "stall_task_note.h"

#include <string.h>

#include "stall_clock.h"
#include "stall_thread.h"

#define WEAK __attribute__((weak))
extern __attribute__((swiftcall)) void *swift_task_getCurrent(void) WEAK;

// REACH: how far from its hashed index a label may be.
enum { FREE = 0, CLAIMED = 1, REACH = 32, NAME_WORDS = 8, TRACE_WORDS = 5, WORDS = NAME_WORDS + TRACE_WORDS };

typedef struct {
    uint64_t task;         // its address; FREE, or CLAIMED while it is being written
    uint64_t began_ns;     // of the outermost label
    int32_t thread;        // that set the outermost label
    uint32_t sequence;     // odd while the text changes
    uint64_t text[WORDS];  // the label, then the trace's id
} note;

static note notes[STALL_TASK_NOTE_LIMIT];
static uint32_t note_count;
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

// Writes a zero-ended text into some of the words.
static void write_text(note *note, int first, int words, const char *utf8, uint32_t length) {
    char text[8 * NAME_WORDS] = {0};
    uint32_t limit = 8 * (uint32_t)words - 1;
    if (length > limit) {
        length = limit;
        while (length > 0 && ((unsigned char)utf8[length] & 0xc0) == 0x80) length--;
    }
    if (length > 0) memcpy(text, utf8, length);
    uint32_t sequence = __atomic_load_n(&note->sequence, __ATOMIC_RELAXED);
    __atomic_store_n(&note->sequence, sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (int i = 0; i < words; i++) {
        uint64_t part;
        memcpy(&part, text + 8 * i, 8);
        __atomic_store_n(&note->text[first + i], part, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&note->sequence, sequence + 2, __ATOMIC_RELEASE);
}

static void copy_words(const note *note, int first, int words, char *text) {
    for (int i = 0; i < words; i++) {
        uint64_t part = __atomic_load_n(&note->text[first + i], __ATOMIC_RELAXED);
        memcpy(text + 8 * i, &part, 8);
    }
}

// `trace` may be NULL.
static bool read_texts(const note *note, uint64_t task, char *text, char *trace) {
    for (int attempt = 0; attempt < 8; attempt++) {
        uint32_t before = __atomic_load_n(&note->sequence, __ATOMIC_ACQUIRE);
        copy_words(note, 0, NAME_WORDS, text);
        if (trace) copy_words(note, NAME_WORDS, TRACE_WORDS, trace);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&note->task, __ATOMIC_RELAXED) != task) break;
        if (before % 2 == 0 && __atomic_load_n(&note->sequence, __ATOMIC_RELAXED) == before) return true;
    }
    text[0] = 0;
    if (trace) trace[0] = 0;
    return false;
}

static bool set_first(uint64_t task, const char *utf8, uint32_t length) {
    note *found = claim(task);
    if (!found) {
        __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
        return false;
    }
    __atomic_store_n(&found->began_ns, stall_monotonic_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&found->thread, stall_thread_id(), __ATOMIC_RELAXED);
    write_text(found, 0, NAME_WORDS, utf8, length);
    write_text(found, NAME_WORDS, TRACE_WORDS, NULL, 0);
    __atomic_store_n(&found->task, task, __ATOMIC_RELEASE);
    __atomic_fetch_add(&note_count, 1, __ATOMIC_RELAXED);
    return true;
}

bool stall_task_note_set(const char *utf8, uint32_t length, char *before) {
    before[0] = 0;
    uint64_t task = stall_task_current();
    if (task <= CLAIMED) return false;
    note *own = find(task);
    if (own) read_texts(own, task, before, NULL);
    if (length == 0 || !utf8) {
        if (!own) return true;
        __atomic_store_n(&own->task, FREE, __ATOMIC_RELEASE);
        __atomic_fetch_sub(&note_count, 1, __ATOMIC_RELAXED);
        return true;
    }
    if (!own) return set_first(task, utf8, length);
    write_text(own, 0, NAME_WORDS, utf8, length);
    return true;
}

void stall_task_note_set_trace(const char *utf8, uint32_t length) {
    uint64_t task = stall_task_current();
    note *own = task > CLAIMED ? find(task) : NULL;
    if (own && utf8) write_text(own, NAME_WORDS, TRACE_WORDS, utf8, length);
}

bool stall_task_note_read(uint64_t task, char *text) {
    text[0] = 0;
    note *found = task > CLAIMED ? find(task) : NULL;
    return found && read_texts(found, task, text, NULL);
}

bool stall_task_note_at(uint32_t index, stall_open_work *work) {
    const note *note = &notes[index];
    uint64_t task = __atomic_load_n(&note->task, __ATOMIC_ACQUIRE);
    if (task <= CLAIMED) return false;
    work->task = task;
    work->began_ns = __atomic_load_n(&note->began_ns, __ATOMIC_RELAXED);
    work->thread = __atomic_load_n(&note->thread, __ATOMIC_RELAXED);
    work->is_span = 0;
    return read_texts(note, task, work->name, work->trace);
}

uint32_t stall_task_note_count(void) { return __atomic_load_n(&note_count, __ATOMIC_RELAXED); }

uint64_t stall_task_note_dropped(void) { return __atomic_load_n(&dropped, __ATOMIC_RELAXED); }
