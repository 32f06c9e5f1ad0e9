// The one function that libstallwatch-blocking.so exports besides the interposed ones.
#pragma once
#include "stall_blocking.h"

/// From now on, or no longer, calls that may block are noted by these functions; NULL: those that it has.
void stallwatch_blocking_set(const stall_blocking_core *_Nullable core, bool is_watched);
