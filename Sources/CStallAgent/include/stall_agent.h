// stallwatch's agent for programs in C, and for languages that call C. See docs/c-api.md.
//
//     stall_agent *agent = stall_agent_start(&(stall_agent_configuration){.app = "decoder"}, NULL, 0);
//     stall_thread_marks *marks = stall_agent_watch_current_thread(agent, "main", 0);
//     while (next(&packet)) {
//         stall_begin(marks);
//         decode(&packet);
//         stall_end(marks);
//     }
//     stall_agent_stop(agent);
//
// Every function accepts NULL for an agent or for marks and then does nothing: a program need not check.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__clang__)
#pragma clang assume_nonnull begin
#define STALL_NULLABLE _Nullable
#else
#define STALL_NULLABLE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The agent's configuration. Fields that are 0 or NULL have their defaults. Operators can override parts of it by
/// environment variables: STALLWATCH_DISABLED, STALLWATCH_STORE and STALLWATCH_THRESHOLD_MS.
typedef struct stall_agent_configuration {
    const char *STALL_NULLABLE app;      ///< the app's name in reports; the only required field
    const char *STALL_NULLABLE version;  ///< the app's version in reports; default "0"
    const char *STALL_NULLABLE store;    ///< path of the store; default "stalls.sqlite", in $STATE_DIRECTORY if any
    uint32_t threshold_ms;               ///< how long watched work may take; at least 20; default 250
    uint32_t without_symbols;            ///< not 0: reports contain images and offsets only
} stall_agent_configuration;

/// A running agent.
typedef struct stall_agent stall_agent;
/// A thread that marks its work.
typedef struct stall_thread_marks stall_thread_marks;
/// A loop that is watched by its waits.
typedef struct stall_watched_waits stall_watched_waits;

/// Starts an agent: two threads, and a store, which is created if missing. A process needs one agent. Returns NULL for
/// an invalid configuration, and then writes the reason into `error`, truncated to `error_capacity` bytes. An
/// unwritable store is not an error here: losses are counted.
stall_agent *STALL_NULLABLE stall_agent_start(
    const stall_agent_configuration *STALL_NULLABLE configuration, char *STALL_NULLABLE error,
    size_t error_capacity);

/// Writes pending reports, closes the store, ends the agent's threads and frees the agent. Marks stay valid and do
/// nothing.
void stall_agent_stop(stall_agent *STALL_NULLABLE agent);

/// Watches the calling thread by its marks. `threshold_ms` 0 means the agent's. NULL without memory.
stall_thread_marks *STALL_NULLABLE stall_agent_watch_current_thread(
    stall_agent *STALL_NULLABLE agent, const char *STALL_NULLABLE name, uint32_t threshold_ms);

/// Work begins and ends. Only on the watched thread; elsewhere ignored. Pairs nest, the outermost counts; an end
/// without a begin is ignored. Cost: about 0.1 microseconds each.
void stall_begin(stall_thread_marks *STALL_NULLABLE marks);
void stall_end(stall_thread_marks *STALL_NULLABLE marks);

/// Ends the watch and frees the marks. Any thread, once.
void stall_thread_marks_free(stall_thread_marks *STALL_NULLABLE marks);

/// Labels the watched thread's activity until the next call; reports of stalls in it carry the label. NULL removes it.
/// At most 63 bytes of UTF-8. Only on the watched thread.
void stall_set_activity(stall_thread_marks *STALL_NULLABLE marks, const char *STALL_NULLABLE label);

/// Watches the loop that the calling thread is about to run, of any library: GLib, GTK, Qt, libuv, or one of the
/// program's own. Between two of its waits in epoll_wait, poll, ppoll, select or their siblings it is busy. Call it right
/// before the loop runs: the first wait is taken as the loop's.
///
/// The function is in libstallwaits (`pkg-config --libs stallagent-waits`), which has definitions of those seven
/// functions that call libc's. Because it is linked with the program itself, they are found before libc's, also by the
/// program's libraries.
///
/// `threshold_ms` 0 means the agent's. NULL without an agent, without memory, and if the library's calls do not arrive in
/// libstallwaits, because it was loaded by dlopen. Watching ends with the thread, or when the result is freed.
stall_watched_waits *STALL_NULLABLE stall_agent_watch_waits(
    stall_agent *STALL_NULLABLE agent, const char *STALL_NULLABLE name, uint32_t threshold_ms);

/// How many of the loop's waits were seen. It stays 0 if the library does not wait through libc (io_uring, direct system
/// calls). Any thread.
uint64_t stall_watched_waits_count(const stall_watched_waits *STALL_NULLABLE waits);

/// Ends the watch and frees it: call it when the thread leaves the loop, or its later work counts as one stall. Any
/// thread, once.
void stall_watched_waits_free(stall_watched_waits *STALL_NULLABLE waits);

/// Watches the main dispatch queue, for a program that calls `dispatch_main()`.
void stall_agent_watch_main_queue(stall_agent *STALL_NULLABLE agent, uint32_t threshold_ms);

#ifdef __cplusplus
}
#endif
#if defined(__clang__)
#pragma clang assume_nonnull end
#endif
