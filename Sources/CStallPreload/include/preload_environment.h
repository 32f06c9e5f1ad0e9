// The variables that `stallctl run`, or a unit of systemd, sets.
#pragma once
#include "stall_preload.h"

typedef struct {
    bool is_wanted;        ///< this program is to be watched
    bool follows_children;
    bool forbids_blocking;
    stall_preload_settings settings;
} preload_environment;

/// Reads the environment, and removes from it what children and the program itself need not see. At the program's start,
/// before anything else runs.
preload_environment preload_read_environment(void);
