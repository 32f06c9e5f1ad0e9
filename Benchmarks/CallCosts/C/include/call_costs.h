// Calls of libc and libdispatch, and how long each takes in a loop of nothing else.
#pragma once

/// The name of a call; NULL behind the last.
const char *_Nullable cost_name(int index);
/// Nanoseconds of CPU time of one call, of many that do not block.
double cost_of(int index);

/// The name of a call that may block, but does not wait here; NULL behind the last.
const char *_Nullable cost_blocking_name(int index);
/// Nanoseconds of one such call; what it needs is made before, and not counted.
double cost_of_blocking(int index);
