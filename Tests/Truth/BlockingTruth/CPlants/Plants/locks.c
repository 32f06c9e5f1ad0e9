// Plants that wait for a lock which another thread holds.
#define _GNU_SOURCE
#include <pthread.h>
#include <threads.h>

#include "planting.h"

enum { PATIENCE = 900 * MILLISECOND };  // longer than any holder; none waits so long

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void take_mutex(void) { pthread_mutex_lock(&mutex); }
static void release_mutex(void) { pthread_mutex_unlock(&mutex); }
static void hold_mutex(void) { plants_hold(take_mutex, release_mutex); }

PLANT(mutex_lock) {
    plants_wait_begins();
    NEED(pthread_mutex_lock(&mutex) == 0);
    pthread_mutex_unlock(&mutex);
}
PLANT(mutex_timedlock) {
    const struct timespec deadline = plants_deadline(CLOCK_REALTIME, PATIENCE);
    plants_wait_begins();
    if (pthread_mutex_timedlock(&mutex, &deadline) == 0) pthread_mutex_unlock(&mutex);
}
PLANT(mutex_clocklock) {
    const struct timespec deadline = plants_deadline(CLOCK_MONOTONIC, PATIENCE);
    plants_wait_begins();
    if (pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &deadline) == 0) pthread_mutex_unlock(&mutex);
}

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void take_recursive(void) { pthread_mutex_lock(&recursive); }
static void release_recursive(void) { pthread_mutex_unlock(&recursive); }
static void hold_recursive(void) { plants_hold(take_recursive, release_recursive); }

PLANT(recursive_mutex_lock) {
    plants_wait_begins();
    NEED(pthread_mutex_lock(&recursive) == 0);
    pthread_mutex_unlock(&recursive);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static void take_rwlock(void) { pthread_rwlock_wrlock(&rwlock); }
static void release_rwlock(void) { pthread_rwlock_unlock(&rwlock); }
static void hold_rwlock(void) { plants_hold(take_rwlock, release_rwlock); }

PLANT(rwlock_rdlock) {
    plants_wait_begins();
    NEED(pthread_rwlock_rdlock(&rwlock) == 0);
    pthread_rwlock_unlock(&rwlock);
}
PLANT(rwlock_wrlock) {
    plants_wait_begins();
    NEED(pthread_rwlock_wrlock(&rwlock) == 0);
    pthread_rwlock_unlock(&rwlock);
}
PLANT(rwlock_timedwrlock) {
    const struct timespec deadline = plants_deadline(CLOCK_REALTIME, PATIENCE);
    plants_wait_begins();
    if (pthread_rwlock_timedwrlock(&rwlock, &deadline) == 0) pthread_rwlock_unlock(&rwlock);
}

static pthread_spinlock_t spin;
static void take_spin(void) { pthread_spin_lock(&spin); }
static void release_spin(void) { pthread_spin_unlock(&spin); }
static void hold_spin(void) {
    static bool is_made;
    if (!is_made) pthread_spin_init(&spin, 0);
    is_made = true;
    plants_hold(take_spin, release_spin);
}

PLANT(spin_lock) {
    plants_wait_begins();
    NEED(pthread_spin_lock(&spin) == 0);
    pthread_spin_unlock(&spin);
}

static mtx_t mtx;
static void take_mtx(void) { mtx_lock(&mtx); }
static void release_mtx(void) { mtx_unlock(&mtx); }
static void hold_mtx(void) {
    static bool is_made;
    if (!is_made) mtx_init(&mtx, mtx_plain);
    is_made = true;
    plants_hold(take_mtx, release_mtx);
}

PLANT(mtx_lock) {
    plants_wait_begins();
    NEED(mtx_lock(&mtx) == thrd_success);
    mtx_unlock(&mtx);
}

static FILE *stream;
static void take_stream(void) { flockfile(stream); }
static void release_stream(void) { funlockfile(stream); }
static void hold_stream(void) {
    if (!stream) stream = fopen("/dev/null", "we");
    NEED(stream);
    plants_hold(take_stream, release_stream);
}

PLANT(flockfile) {
    plants_wait_begins();
    flockfile(stream);
    funlockfile(stream);
}

#define LOCK(name, prepare) {#name, STALL_BLOCKING_LOCK, prepare, plant_##name}
static const plant plants[] = {
    LOCK(mutex_lock, hold_mutex),
    LOCK(mutex_timedlock, hold_mutex),
    LOCK(mutex_clocklock, hold_mutex),
    LOCK(recursive_mutex_lock, hold_recursive),
    LOCK(rwlock_rdlock, hold_rwlock),
    LOCK(rwlock_wrlock, hold_rwlock),
    LOCK(rwlock_timedwrlock, hold_rwlock),
    LOCK(spin_lock, hold_spin),
    LOCK(mtx_lock, hold_mtx),
    LOCK(flockfile, hold_stream),
};
const plant_family lock_family = {plants, COUNT_OF(plants)};
