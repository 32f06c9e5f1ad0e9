// Another hook of the global executor than the agent's, as SwiftNIO sets one.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Sets a hook that passes every job on to what was there before: the hook that it found, or else the runtime.
void task_hook_set(void);
/// How many jobs came by.
uint64_t task_hook_count(void);
/// Whether any hook is set.
bool task_hook_is_set(void);
