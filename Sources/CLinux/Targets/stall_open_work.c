#include "stall_open_work.h"

#include <stddef.h>
#include <string.h>

#include "stall_clock.h"
#include "stall_task_note.h"
#include "stall_thread.h"

enum { FREE = 0, CLAIMED = 1, WORDS = sizeof(stall_open_work) / 8, REACH = 64 };

_Static_assert(sizeof(stall_open_work) % 8 == 0, "it is copied word by word");

typedef struct {
    uint64_t state;    // FREE, CLAIMED while it is being written, or the span's number
    uint64_t version;  // odd while the words are being written: at the begin, or for another name
    uint64_t words[WORDS];  // remain after the end
} entry;

static entry entries[STALL_SPAN_LIMIT];
static uint64_t last_number;  // multiplied by the limit, plus the entry's index, it is a span's number
static uint64_t open_count, dropped;

static void copy_text(char *into, uint32_t room, const char *text, uint32_t length) {
    if (!text) return;
    if (length >= room) {
        length = room - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    }
    memcpy(into, text, length);
}

// False if another thread writes them.
static bool begin_writing(entry *entry) {
    uint64_t version = __atomic_load_n(&entry->version, __ATOMIC_RELAXED);
    return version % 2 == 0
        && __atomic_compare_exchange_n(
            &entry->version, &version, version + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void end_writing(entry *entry) { __atomic_fetch_add(&entry->version, 1, __ATOMIC_SEQ_CST); }

static void write_words(entry *entry, const void *from, size_t offset, size_t size) {
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word;
        memcpy(&word, (const char *)from + at, 8);
        __atomic_store_n(&entry->words[(offset + at) / 8], word, __ATOMIC_RELAXED);
    }
}

// False if they were written meanwhile.
static bool read_words(const entry *entry, stall_open_work *work) {
    const uint64_t version = __atomic_load_n(&entry->version, __ATOMIC_ACQUIRE);
    for (int i = 0; i < WORDS; i++) {
        uint64_t word = __atomic_load_n(&entry->words[i], __ATOMIC_RELAXED);
        memcpy((char *)work + 8 * i, &word, 8);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return version % 2 == 0 && __atomic_load_n(&entry->version, __ATOMIC_RELAXED) == version;
}

uint64_t stall_span_begin(
    const char *name, uint32_t name_length, const char *trace, uint32_t trace_length, const char *id,
    uint32_t id_length) {
    uint64_t number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
    for (uint64_t step = 0; step < REACH; step++) {
        uint64_t index = (number + step) % STALL_SPAN_LIMIT, expected = FREE;
        entry *found = &entries[index];
        if (!__atomic_compare_exchange_n(
                &found->state, &expected, CLAIMED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        if (!begin_writing(found)) {
            __atomic_store_n(&found->state, FREE, __ATOMIC_RELEASE);
            continue;
        }
        const uint64_t span = number * STALL_SPAN_LIMIT + index;
        stall_open_work work = {
            .task = stall_task_current(), .began_ns = stall_monotonic_ns(), .number = span,
            .thread = stall_thread_id(), .is_span = 1};
        copy_text(work.name, sizeof work.name, name, name_length);
        copy_text(work.trace, sizeof work.trace, trace, trace_length);
        copy_text(work.span, sizeof work.span, id, id_length);
        write_words(found, &work, 0, sizeof work);
        end_writing(found);
        __atomic_store_n(&found->state, span, __ATOMIC_RELEASE);
        __atomic_fetch_add(&open_count, 1, __ATOMIC_RELAXED);
        return span;
    }
    __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
    return 0;
}

void stall_span_end(uint64_t span) {
    if (span <= CLAIMED) return;
    if (__atomic_compare_exchange_n(
            &entries[span % STALL_SPAN_LIMIT].state, &span, FREE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        __atomic_fetch_sub(&open_count, 1, __ATOMIC_RELAXED);
}

void stall_span_rename(uint64_t span, const char *name, uint32_t name_length) {
    if (span <= CLAIMED) return;
    entry *found = &entries[span % STALL_SPAN_LIMIT];
    // Of two names at once one is as late as the other.
    if (!begin_writing(found)) return;
    char text[sizeof(((stall_open_work *)0)->name)] = {0};
    copy_text(text, sizeof text, name, name_length);
    if (__atomic_load_n(&found->state, __ATOMIC_SEQ_CST) == span)
        write_words(found, text, offsetof(stall_open_work, name), sizeof text);
    end_writing(found);
}

bool stall_span_read_name(uint64_t span, char *name) {
    stall_open_work work;
    if (span <= CLAIMED || !read_words(&entries[span % STALL_SPAN_LIMIT], &work) || work.number != span) return false;
    memcpy(name, work.name, sizeof work.name);
    return true;
}

uint64_t stall_span_dropped(void) { return __atomic_load_n(&dropped, __ATOMIC_RELAXED); }

// False if the entry is free or changed meanwhile.
static bool read_span(const entry *entry, stall_open_work *work) {
    uint64_t before = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
    if (before <= CLAIMED || !read_words(entry, work)) return false;
    return __atomic_load_n(&entry->state, __ATOMIC_RELAXED) == before;
}

uint64_t stall_span_find(const char *trace, uint32_t trace_length, const char *id, uint32_t id_length) {
    stall_open_work work;
    if (!trace || !id || trace_length == 0 || trace_length >= sizeof work.trace || id_length == 0
        || id_length >= sizeof work.span || __atomic_load_n(&open_count, __ATOMIC_RELAXED) == 0)
        return 0;
    for (uint32_t i = 0; i < STALL_SPAN_LIMIT; i++) {
        if (read_span(&entries[i], &work) && work.trace[trace_length] == 0 && work.span[id_length] == 0
            && memcmp(work.trace, trace, trace_length) == 0 && memcmp(work.span, id, id_length) == 0)
            return work.number;
    }
    return 0;
}

typedef struct {
    stall_open_work *into;
    uint32_t count;
    int32_t thread;
    uint64_t own_task;
} list;

static bool is_own(const list *list, const stall_open_work *work) {
    return list->own_task != 0 && work->task == list->own_task;
}

static bool comes_before(const list *list, const stall_open_work *left, const stall_open_work *right) {
    if (is_own(list, left) != is_own(list, right)) return is_own(list, left);
    return left->began_ns < right->began_ns;
}

// Keeps the list sorted, and the first of it where there is no room for all.
static void add(list *list, const stall_open_work *work) {
    bool is_wanted = list->thread != 0 ? work->thread == list->thread || is_own(list, work) : work->task != 0;
    if (!is_wanted) return;
    uint32_t place = list->count;
    while (place > 0 && comes_before(list, work, &list->into[place - 1])) place--;
    if (place == STALL_OPEN_WORK_SHOWN) return;
    if (list->count < STALL_OPEN_WORK_SHOWN) list->count++;
    for (uint32_t i = list->count - 1; i > place; i--) list->into[i] = list->into[i - 1];
    list->into[place] = *work;
}

uint32_t stall_open_work_copy(stall_open_work *into, int32_t thread, uint64_t own_task) {
    list list = {into, 0, thread, own_task};
    stall_open_work work;
    uint32_t notes = stall_task_note_count();
    for (uint32_t i = 0; notes > 0 && i < STALL_TASK_NOTE_LIMIT; i++) {
        memset(&work, 0, sizeof work);
        if (stall_task_note_at(i, &work)) add(&list, &work);
    }
    if (__atomic_load_n(&open_count, __ATOMIC_RELAXED) == 0) return list.count;
    for (uint32_t i = 0; i < STALL_SPAN_LIMIT; i++) {
        if (read_span(&entries[i], &work)) add(&list, &work);
    }
    return list.count;
}
