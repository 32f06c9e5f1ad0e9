// Calls that may block, and calls that do not, each in a function of its own.
#pragma once
#include <stdint.h>

typedef struct {
    const char *_Nonnull name;        ///< the function is `plant_` and this
    uint8_t kind;                     ///< stall_blocking_kind
    void (*_Nullable prepare)(void);  ///< on a thread that is not watched, before each play
    void (*_Nonnull play)(void);
} blocking_plant;

/// Numbered from 0; NULL beyond the last.
const blocking_plant *_Nullable blocking_plant_numbered(uint32_t number);
/// Calls that do not block.
const blocking_plant *_Nullable blocking_innocent_numbered(uint32_t number);
