// Activity labels of Swift tasks: "GET /orders/:id". They belong to the task and not to its thread, which a request
// leaves at its first await; a label on the thread would be attributed to the next request.
//
// A fixed table of atomics: a task writes its own label, the watchdog reads it without waiting.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stall_open_work.h"

/// Maximum number of tasks with a label at the same time.
#define STALL_TASK_NOTE_LIMIT 1024

/// The address of the calling task; 0 outside of tasks.
uint64_t stall_task_current(void);
/// Sets the label of the calling task, of at most 63 bytes; its previous one is copied to `before` (64 bytes,
/// zero-ended). A `length` of 0 removes it. False outside of tasks, and if the table is full, which is counted.
bool stall_task_note_set(const char *_Nullable utf8, uint32_t length, char *_Nonnull before);
/// Adds the id of the trace that the calling task, which has a label, belongs to; truncated to 39 bytes. It is removed
/// with the label.
void stall_task_note_set_trace(const char *_Nullable utf8, uint32_t length);
/// Copies a task's label into `text` (64 bytes, zero-ended). False if it has none.
bool stall_task_note_read(uint64_t task, char *_Nonnull text);
/// Copies the label with this index, below STALL_TASK_NOTE_LIMIT. False if there is none.
bool stall_task_note_at(uint32_t index, stall_open_work *_Nonnull work);
/// The number of labelled tasks.
uint32_t stall_task_note_count(void);
/// The number of labels dropped because the table was full.
uint64_t stall_task_note_dropped(void);
