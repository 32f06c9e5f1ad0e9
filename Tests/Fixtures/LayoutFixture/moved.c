// Preloaded: the C library's locks and Dispatch's queues with other insides than the agent knows, but as good as before. A lock's
// owner is in the word beside its own while the lock is held; a queue does not say which thread it runs on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, #name)

static void swap(void *lock, int word) {
    uint32_t *words = lock, first = words[word];
    words[word] = words[word + 1];
    words[word + 1] = first;
}

// Recursive and checking mutexes need their owner where it is.
static int is_moved(const pthread_mutex_t *mutex) { return mutex->__data.__kind == PTHREAD_MUTEX_TIMED_NP; }
static int moved(int result, pthread_mutex_t *mutex) {
    if (result == 0 && is_moved(mutex)) swap(mutex, 2);
    return result;
}
static void put_back(pthread_mutex_t *mutex) {
    if (is_moved(mutex)) swap(mutex, 2);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    REAL(pthread_mutex_lock);
    return moved(real(mutex), mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    REAL(pthread_mutex_trylock);
    return moved(real(mutex), mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    REAL(pthread_mutex_unlock);
    put_back(mutex);
    return real(mutex);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    REAL(pthread_cond_wait);
    put_back(mutex);
    const int result = real(condition, mutex);
    moved(0, mutex);
    return result;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    REAL(pthread_cond_timedwait);
    put_back(mutex);
    const int result = real(condition, mutex, until);
    moved(0, mutex);
    return result;
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    REAL(pthread_cond_clockwait);
    put_back(mutex);
    const int result = real(condition, mutex, clock, until);
    moved(0, mutex);
    return result;
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    REAL(pthread_rwlock_wrlock);
    const int result = real(lock);
    if (result == 0) swap(lock, 5);
    return result;
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    REAL(pthread_rwlock_unlock);
    if (((uint32_t *)lock)[5] != 0) swap(lock, 5);
    return real(lock);
}

// MARK: Dispatch

enum { QUEUE_WORDS = 15 };

struct work {
    void *queue, *context;
    void (*body)(void *);
};

static void hide_owner(void *context) {
    struct work *work = context;
    uint64_t *words = work->queue, before[QUEUE_WORDS];
    memcpy(before, words, sizeof before);
    for (int i = 1; i < QUEUE_WORDS; i++)
        if ((words[i] & 0x3fffffff) == (uint64_t)gettid()) words[i] &= ~UINT64_C(0x3fffffff);
    work->body(work->context);
    memcpy(words, before, sizeof before);
}

extern void dispatch_sync_f(void *queue, void *context, void (*work)(void *));
extern const char *dispatch_queue_get_label(void *queue);

void dispatch_sync_f(void *queue, void *context, void (*body)(void *)) {
    REAL(dispatch_sync_f);
    struct work work = {queue, context, body};
    if (strcmp(dispatch_queue_get_label(queue), "stallwatch.layout") != 0) return real(queue, context, body);
    real(queue, &work, hide_owner);
}
