// A gate that opens once: any number of threads may wait for it, each up to a deadline of its own. A futex and nothing
// else.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// Zeroed memory is a closed gate.
typedef struct stall_gate {
    uint32_t is_open;  ///< a futex word
} stall_gate;

void stall_gate_open(stall_gate *_Nonnull gate);
/// Waits until it is open, or until `deadline_ns` (CLOCK_MONOTONIC). Returns whether it is open.
bool stall_gate_wait(stall_gate *_Nonnull gate, uint64_t deadline_ns);
