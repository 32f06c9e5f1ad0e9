// Declarations that the families of plants share.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "blocking_plants.h"

// The call must return to the plant: a tail call would remove it from the stack.
#ifdef __clang__
#define PLANT(name) __attribute__((noinline, disable_tail_calls)) void plant_##name(void)
#else
#define PLANT(name) __attribute__((noinline, optimize("no-optimize-sibling-calls"))) void plant_##name(void)
#endif
#define INNOCENT(name) static __attribute__((noinline)) void innocent_##name(void)

#define COUNT_OF(table) (sizeof(table) / sizeof *(table))
#define MILLISECOND 1000000L

/// A family's plants.
typedef struct {
    const plant *_Nonnull plants;
    size_t count;
} plant_family;

extern const plant_family time_family, descriptor_family, file_family, stream_family, network_family, process_family,
    lock_family, wait_family;

extern char plants_directory[];
/// The path of a name in the directory; valid until the eighth call from here.
const char *_Nonnull plants_path(const char *_Nonnull name);
/// A file of 64 KiB that is open for reading and writing.
extern int plants_file;
/// Ends the program if a preparation failed: the test would be wrong.
#define NEED(condition) ((condition) ? (void)0 : plants_fail(#condition, __FILE__, __LINE__))
_Noreturn void plants_fail(const char *_Nonnull condition, const char *_Nonnull file, int line);

/// Two pipes' or sockets' ends; a new call closes the ends of the one before.
extern int plants_ends[2];
void plants_make_pipe(bool has_data);
void plants_make_sockets(int type, bool has_data);

/// Starts a thread that takes something, keeps it until this thread waits for it, and releases it a millisecond later.
void plants_hold(void (*_Nonnull take)(void), void (*_Nonnull release)(void));
/// From here on this thread waits for it. Called by the play just before its call.
void plants_wait_begins(void);

static inline struct timespec plants_deadline(clockid_t clock, long nanoseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += nanoseconds;
    if (time.tv_nsec >= 1000000000) time = (struct timespec){time.tv_sec + 1, time.tv_nsec - 1000000000};
    return time;
}
