// Calls that block, and calls that do not, for a truth test of StallBlocking: each plant must be reported once, with its
// kind and with plant_NAME in its stack, and no innocent ever. A plant's call returns within about 2 ms, unless it starts
// a process or waits for a disk.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "stall_blocking.h"

/// One call that may block.
typedef struct {
    const char *_Nonnull name;          ///< the function is plant_NAME
    stall_blocking_kind kind;
    void (*_Nullable prepare)(void);    ///< makes the next play possible; blocks, so it is called where that is allowed
    void (*_Nonnull play)(void);        ///< on the thread that called `prepare`
} plant;

/// Calls that look alike but do not block; each can be played a million times.
typedef struct {
    const char *_Nonnull name;
    void (*_Nonnull play)(void);
} innocent;

/// Makes the files, sockets and signal handlers that the plants need, in a new directory of `parent`, which must
/// be on a disk. False if something of that failed. Sets SIGUSR1's handler.
bool plants_open(const char *_Nonnull parent);
/// Removes the directory.
void plants_close(void);

size_t plant_count(void);
const plant *_Nonnull plant_at(size_t index);
size_t innocent_count(void);
const innocent *_Nonnull innocent_at(size_t index);
