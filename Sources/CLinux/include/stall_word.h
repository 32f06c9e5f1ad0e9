// Waiting for a word of memory to change: the slow half of a lock whose fast half is one atomic operation.
#pragma once
#include <stdint.h>

/// Sleeps while `*word` is `value`, until `stall_word_wake_one`. Returns early on a signal: look again. Keeps errno.
void stall_word_wait(const void *_Nonnull word, uint32_t value);

/// Ends one thread's wait for the word, if one waits. Only the address is used: the memory may be gone by now. Keeps errno.
void stall_word_wake_one(const void *_Nonnull word);

/// Says to the processor that the thread is looking at a word again and again.
void stall_word_pause(void);
