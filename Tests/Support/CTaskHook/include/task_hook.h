// Another hook of the global executor than the agent's, as SwiftNIO sets one.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Installs a hook that passes every job to its predecessor: the previous hook, or the runtime.
void task_hook_set(void);
/// How many jobs came by.
uint64_t task_hook_count(void);
/// How often one did, by its address: a task is its own job.
uint64_t task_hook_count_of(uint64_t job);
/// Whether any hook is set.
bool task_hook_is_set(void);
