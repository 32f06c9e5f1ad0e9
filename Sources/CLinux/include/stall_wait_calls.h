// Two modules interpose the functions that wait for descriptors: CWaitCalls, and CBlockingCalls behind it.
#pragma once

/// Finds what CWaitCalls calls instead of libc's function of this name; NULL for a function that it has not. Set by a
/// constructor of CBlockingCalls, which runs before those without a priority; NULL in a program without that module.
extern void *_Nullable (*_Nullable stall_wait_calls_behind)(const char *_Nonnull name)
    __attribute__((visibility("hidden")));
