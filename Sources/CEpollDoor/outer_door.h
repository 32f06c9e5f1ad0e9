// The doors of a process whose wait functions are interposed by an object of its own (CStallWaits): exported by the C
// interface's library, whose agent has the doors. Both are files of one installation.
#pragma once
#include "door.h"

/// The calling thread's door; NULL if it is not watched.
stall_door *_Nullable stall_agent_door_here(void);
/// As `door_enter` and `door_leave`.
bool stall_agent_door_enter(
    stall_door *_Nonnull door, uint64_t kind, uint64_t key, const int *_Nullable descriptors, size_t count,
    size_t stride, bool is_instant, uintptr_t frame, uint64_t caller);
void stall_agent_door_leave(stall_door *_Nonnull door, bool is_instant);
