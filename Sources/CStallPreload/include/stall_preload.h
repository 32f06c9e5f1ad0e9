// Between libstallwatch-preload.so, which is loaded into any program, and libstallwatch-agent.so, which the former loads
// when the program begins to wait for events. Both are files of one installation.
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct stall_blocking_core;

/// Changes with the structs below: an upgrade may replace the agent while programs run that the older object is in.
#define STALL_PRELOAD_INTERFACE 2

/// The environment's settings at the program's start.
typedef struct stall_preload_settings {
    const char *_Nonnull app;
    const char *_Nullable version;  ///< NULL: "0"
    const char *_Nonnull store;     ///< an absolute path
    const char *_Nullable settings; ///< the operator's settings file
    uint32_t threshold_ms;          ///< 0: the default
    /// As libstallwatch-blocking.so exports it: blocking is forbidden; else NULL.
    void (*_Nullable set_blocking)(const struct stall_blocking_core *_Nullable core, bool is_watched);
    const char *_Nullable allowed;  ///< rules of what may block, one a line
    bool records_all_threads;
    bool logs;                      ///< to standard error; otherwise the agent is silent
} stall_preload_settings;

/// The agent's functions. None of them waits for the program.
typedef struct stall_preload_agent {
    /// Watches the loop of the calling thread, for which `is_over` says whether it has been left for good; called on the
    /// watchdog's thread. NULL if that is not possible.
    void *_Nullable (*_Nonnull watch)(
        const char *_Nonnull name, bool (*_Nonnull is_over)(const void *_Nonnull), const void *_Nonnull context);
    /// Ends the watch. Any thread, once.
    void (*_Nonnull unwatch)(void *_Nonnull watch);
    /// As `stall_door_told_enter` and `stall_door_told_leave`.
    bool (*_Nonnull enter)(bool is_instant, uintptr_t frame, uint64_t caller);
    void (*_Nonnull leave)(bool is_instant);
    /// Starts the agent again in a forked child.
    bool (*_Nonnull restart)(const stall_preload_settings *_Nonnull settings);
    /// Ends it when what was noted is written, or after two seconds.
    void (*_Nonnull finish)(void);
} stall_preload_agent;

/// The agent's only exported function, `stallwatch_preload_start`. False if no agent was started.
typedef bool (*stall_preload_start)(
    uint32_t interface, const stall_preload_settings *_Nonnull settings, stall_preload_agent *_Nonnull agent);
