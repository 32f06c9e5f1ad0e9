// Plants that wait for a semaphore, a condition, a futex or the end of a thread.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "planting.h"

static void take_nothing(void) {}

static sem_t semaphore;
static void make_semaphore(void) { NEED(sem_init(&semaphore, 0, 0) == 0); }
static void post_semaphore(void) { sem_post(&semaphore); }
static void hold_semaphore(void) {
    make_semaphore();
    plants_hold(take_nothing, post_semaphore);
}

PLANT(sem_wait) {
    plants_wait_begins();
    NEED(sem_wait(&semaphore) == 0);
}
PLANT(sem_timedwait) {
    const struct timespec deadline = plants_deadline(CLOCK_REALTIME, MILLISECOND);
    sem_timedwait(&semaphore, &deadline);
}
PLANT(sem_clockwait) {
    const struct timespec deadline = plants_deadline(CLOCK_MONOTONIC, MILLISECOND);
    sem_clockwait(&semaphore, CLOCK_MONOTONIC, &deadline);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool is_signalled;

static void signal_condition(void) {
    pthread_mutex_lock(&mutex);
    is_signalled = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
}
static void hold_condition(void) {
    is_signalled = false;
    plants_hold(take_nothing, signal_condition);
}

// One call: a spurious wake-up would only end the plant early.
PLANT(cond_wait) {
    pthread_mutex_lock(&mutex);
    plants_wait_begins();
    if (!is_signalled) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}
PLANT(cond_timedwait) {
    const struct timespec deadline = plants_deadline(CLOCK_REALTIME, MILLISECOND);
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &deadline);
    pthread_mutex_unlock(&mutex);
}
PLANT(cond_clockwait) {
    const struct timespec deadline = plants_deadline(CLOCK_MONOTONIC, MILLISECOND);
    pthread_mutex_lock(&mutex);
    pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &deadline);
    pthread_mutex_unlock(&mutex);
}

static cnd_t c_condition;
static mtx_t c_mutex;
static void make_c_condition(void) {
    static bool is_made;
    if (!is_made) NEED(cnd_init(&c_condition) == thrd_success && mtx_init(&c_mutex, mtx_plain) == thrd_success);
    is_made = true;
}

PLANT(cnd_timedwait) {
    const struct timespec deadline = plants_deadline(CLOCK_REALTIME, MILLISECOND);
    mtx_lock(&c_mutex);
    cnd_timedwait(&c_condition, &c_mutex, &deadline);
    mtx_unlock(&c_mutex);
}

// MARK: Threads

static pthread_barrier_t barrier;
static pthread_t other;
static bool has_other;
static sem_t may_end;

static void *arrive(void *unused) {
    pthread_barrier_wait(&barrier);
    return unused;
}
static void make_barrier(void) {
    if (has_other) pthread_join(other, NULL);
    NEED(pthread_barrier_init(&barrier, NULL, 2) == 0);
    NEED(pthread_create(&other, NULL, arrive, NULL) == 0);
    has_other = true;
}

PLANT(barrier_wait) { pthread_barrier_wait(&barrier); }

static void *await_end(void *unused) {
    while (sem_wait(&may_end) != 0) continue;
    nanosleep(&(struct timespec){0, MILLISECOND}, NULL);
    return unused;
}
static pthread_t joined;
static void start_joined(void) {
    NEED(sem_init(&may_end, 0, 0) == 0 && pthread_create(&joined, NULL, await_end, NULL) == 0);
}

static int await_end_in_c(void *unused) {
    await_end(unused);
    return 0;
}
static thrd_t c_joined;
static void start_c_joined(void) {
    NEED(sem_init(&may_end, 0, 0) == 0 && thrd_create(&c_joined, await_end_in_c, NULL) == thrd_success);
}

PLANT(pthread_join) {
    sem_post(&may_end);
    NEED(pthread_join(joined, NULL) == 0);
}
PLANT(thrd_join) {
    sem_post(&may_end);
    NEED(thrd_join(c_joined, NULL) == thrd_success);
}

PLANT(futex_wait) {
    static uint32_t word = 1;
    const struct timespec moment = {0, MILLISECOND};
    syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, &moment, NULL, 0);
}

#define LOCK(name, prepare) {#name, STALL_BLOCKING_LOCK, prepare, plant_##name}
static const plant plants[] = {
    LOCK(sem_wait, hold_semaphore),
    LOCK(sem_timedwait, make_semaphore),
    LOCK(sem_clockwait, make_semaphore),
    LOCK(cond_wait, hold_condition),
    LOCK(cond_timedwait, NULL),
    LOCK(cond_clockwait, NULL),
    LOCK(cnd_timedwait, make_c_condition),
    LOCK(barrier_wait, make_barrier),
    LOCK(pthread_join, start_joined),
    LOCK(thrd_join, start_c_joined),
    LOCK(futex_wait, NULL),
};
const plant_family wait_family = {plants, COUNT_OF(plants)};
