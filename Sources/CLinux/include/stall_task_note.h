// Notes that tasks leave of what they do: "GET /orders/:id". They belong to the task and not to its thread, which a
// request leaves at its first await; a label left on the thread would accuse the next request.
//
// A fixed table of atomics: a task writes its own note, the watchdog reads it without waiting.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// How many tasks can have a note at the same time.
#define STALL_TASK_NOTE_LIMIT 1024

/// The address of the calling task; 0 outside of tasks.
uint64_t stall_task_current(void);
/// Sets the note of the calling task, of at most 63 bytes; the one that it had goes to `before` (64 bytes, zero ended).
/// A `length` of 0 removes it. False outside of tasks, and when the table is full: that is counted.
bool stall_task_note_set(const char *_Nullable utf8, uint32_t length, char *_Nonnull before);
/// Copies a task's note into `text` (64 bytes, zero ended). False when it has none.
bool stall_task_note_read(uint64_t task, char *_Nonnull text);
/// How many notes found no place.
uint64_t stall_task_note_dropped(void);
