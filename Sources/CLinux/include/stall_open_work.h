// Requests and spans that are open: what a report lists as open while a stall began. The watchdog reads them without
// waiting.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Maximum number of open spans.
#define STALL_SPAN_LIMIT 1024
/// Maximum number of open requests and spans that a report lists.
#define STALL_OPEN_WORK_SHOWN 8

/// A labelled task (stall_task_note.h) or a span, as it was when it was read.
typedef struct {
    uint64_t task;      ///< the task that began it, by its address; 0: none
    uint64_t began_ns;
    uint64_t number;    ///< of a span, for `stall_span_read_name`; 0 of a task
    int32_t thread;     ///< the thread that began it
    uint32_t is_span;
    char name[64];      ///< zero-ended, as is `trace`
    char trace[40];     ///< the trace's id; empty: unknown
    char span[24];      ///< the span's id in its trace; empty: unknown
} stall_open_work;

/// Lists a span, begun now by the calling thread and task. Texts are truncated. 0 if the table is full, which is
/// counted; otherwise a number for `stall_span_end`.
uint64_t stall_span_begin(
    const char *_Nullable name, uint32_t name_length, const char *_Nullable trace, uint32_t trace_length,
    const char *_Nullable id, uint32_t id_length);
/// The number of the open span of these ids; 0 if there is none. An id that is truncated or empty is none.
uint64_t stall_span_find(
    const char *_Nullable trace, uint32_t trace_length, const char *_Nullable id, uint32_t id_length);
/// Gives a span another name, while it is listed. Any thread.
void stall_span_rename(uint64_t span, const char *_Nullable name, uint32_t name_length);
/// Copies the present name of a span into `name` (64 bytes, zero-ended), the last one if it has ended. False if the
/// entry belongs to a later span by now.
bool stall_span_read_name(uint64_t span, char *_Nonnull name);
/// Removes the span. Any thread; only the first call has an effect.
void stall_span_end(uint64_t span);
/// The number of spans dropped because the table was full.
uint64_t stall_span_dropped(void);

/// Copies the work that is open: that of `own_task` first, then the oldest. If `thread` is not 0, only what that thread
/// began; otherwise what any task began. `into` has STALL_OPEN_WORK_SHOWN entries. Returns how many were copied.
/// Neither allocates nor waits.
uint32_t stall_open_work_copy(stall_open_work *_Nonnull into, int32_t thread, uint64_t own_task);
