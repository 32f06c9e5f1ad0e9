// A one-shot gate on a futex: any number of threads can wait for it, each with its own deadline.
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
