// The Swift runtime's `swift_once`, which makes lazy globals and conformances, locks with the thread's id, and each
// thread remembers its own. A forked child's thread remembers its parent's. While another thread waits for it, the
// kernel refuses to unlock for that id, and both threads spin and never end (Swift 6.3).
#pragma once
#include <stdbool.h>

/// Whether the runtime takes the calling thread for itself. Any runtime that locks in another way: false.
bool stall_runtime_knows_thread(void);
