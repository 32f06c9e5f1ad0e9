#define _GNU_SOURCE
#include "stall_layouts.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "stall_clock.h"
#include "stall_queue.h"

// Source: glibc 2.36, `struct __pthread_mutex_s` and `struct __pthread_rwlock_arch_t`, in words of 32 bits.
enum { MUTEX_WORD = 0, MUTEX_OWNER = 2, RWLOCK_WRITER = 6, WORDS = 8 };

static bool is_mutex_known, is_rwlock_known;

static void take(uint32_t *words, const void *lock) { memcpy(words, lock, WORDS * sizeof *words); }

// The word that waiters wait on says that it is locked, and another one by whom.
static bool try_mutex(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint32_t free_words[WORDS], locked[WORDS], freed[WORDS];
    take(free_words, &mutex);
    if (pthread_mutex_lock(&mutex) != 0) return false;
    take(locked, &mutex);
    pthread_mutex_unlock(&mutex);
    take(freed, &mutex);
    pthread_mutex_destroy(&mutex);
    return free_words[MUTEX_WORD] == 0 && locked[MUTEX_WORD] != 0 && freed[MUTEX_WORD] == 0 && free_words[MUTEX_OWNER] == 0
        && locked[MUTEX_OWNER] == (uint32_t)stall_gettid() && freed[MUTEX_OWNER] == 0;
}

static bool try_rwlock(void) {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    uint32_t locked[WORDS], freed[WORDS];
    if (pthread_rwlock_wrlock(&lock) != 0) return false;
    take(locked, &lock);
    pthread_rwlock_unlock(&lock);
    take(freed, &lock);
    pthread_rwlock_destroy(&lock);
    return locked[RWLOCK_WRITER] == (uint32_t)stall_gettid() && freed[RWLOCK_WRITER] == 0;
}

static void try_locks(void) {
    is_mutex_known = try_mutex();
    is_rwlock_known = try_rwlock();
}

static void prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, try_locks);
}

bool stall_mutex_layout_is_known(void) {
    prepare();
    return is_mutex_known;
}

bool stall_rwlock_layout_is_known(void) {
    prepare();
    return is_rwlock_known;
}

static size_t add(stall_unknown_layout *unknown, size_t capacity, size_t count, const char *name, const char *effect) {
    if (count < capacity) unknown[count] = (stall_unknown_layout){name, effect};
    return count + 1;
}

size_t stall_layouts_probe(stall_unknown_layout *unknown, size_t capacity) {
    size_t count = 0;
    if (!stall_mutex_layout_is_known())
        count = add(unknown, capacity, count, "the C library's mutex", "the holder of a mutex is not named");
    if (!stall_rwlock_layout_is_known())
        count = add(unknown, capacity, count, "the C library's rwlock", "the writer that holds a rwlock is not named");
    if (!stall_queue_layout_is_usual())
        count = add(unknown, capacity, count, "a Dispatch queue", "the holder of a queue is not named");
    return count;
}
