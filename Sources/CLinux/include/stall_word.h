// Waits for a word of memory to change: the slow path of a lock whose fast path is one atomic operation.
#pragma once
#include <stdint.h>

/// Sleeps while `*word` is `value`, until `stall_word_wake_one`. Returns early on a signal: check again. Preserves
/// errno.
void stall_word_wait(const void *_Nonnull word, uint32_t value);

/// Wakes one thread that waits for the word, if any. Uses only the address: the memory may be freed already. Preserves
/// errno.
void stall_word_wake_one(const void *_Nonnull word);

/// The processor's hint for a spin loop.
void stall_word_pause(void);

/// Sleeps for some 50 us. No cancellation point. Preserves errno.
void stall_word_nap(void);
