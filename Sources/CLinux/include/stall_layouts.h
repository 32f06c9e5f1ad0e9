// The insides of other libraries that the agent reads, tried once in this process. A layout that is not the one it was proven with
// is not used: a wrong owner of a lock is worse than none.
#pragma once
#include <stdbool.h>
#include <stddef.h>

/// A part of another library that is not laid out as expected.
typedef struct {
    const char *_Nullable name;
    const char *_Nullable effect;  ///< what is missing without it; a clause
} stall_unknown_layout;

/// Tries the layouts: the first call locks a mutex and a rwlock of its own and, where Dispatch is in the process, uses
/// queues of its own. Any thread; later calls only read the result.
///
/// Returns how many are unknown; stores at most `capacity` of them.
size_t stall_layouts_probe(stall_unknown_layout *_Nonnull unknown, size_t capacity);

/// Whether the owner of a mutex is where glibc 2.36 has it: in the third word from the one that waiters wait on.
bool stall_mutex_layout_is_known(void);

/// The same of the thread that holds a rwlock for writing: in the fifth word from the readers' and the fourth from the
/// writers'.
bool stall_rwlock_layout_is_known(void);
