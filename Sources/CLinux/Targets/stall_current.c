#include "stall_current.h"

#include <pthread.h>
#include <stdbool.h>

__thread stall_beacon *stall_current_beacon;

static __thread stall_beacon *kept;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void forget(void *beacon) {
    if (stall_current_beacon == beacon) stall_current_beacon = NULL;
    kept = NULL;
    stall_beacon_release(beacon);
}

// The watches of a forked child's parent are not its own.
static void forget_in_child(void) { stall_current_beacon = NULL; }

static void make_key(void) {
    has_key = pthread_key_create(&key, forget) == 0;
    pthread_atfork(NULL, NULL, forget_in_child);
}

void stall_current_keep(stall_beacon *beacon) {
    pthread_once(&once, make_key);
    if (!has_key) return;
    if (kept == beacon) {
        if (!stall_current_beacon) stall_current_beacon = beacon;  // in a forked child
        return;
    }
    stall_beacon_retain(beacon);
    stall_beacon *old = kept;
    if (pthread_setspecific(key, beacon) != 0) return stall_beacon_release(beacon);
    if (!stall_current_beacon || stall_current_beacon == old) stall_current_beacon = beacon;
    kept = beacon;
    if (old) stall_beacon_release(old);
}
