#include "minimal_loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// MARK: loop

typedef struct task {
    struct task *next;
    void (*run)(struct task *);
} task;

typedef struct {
    int poller, wake;
    pthread_mutex_t lock;
    task *head, **tail;           // guarded by lock
    _Atomic(task *) stack;        // lock-free
    _Atomic(bool) sleeping;
    uint64_t done;
} loop;

static void loop_open(loop *l) {
    l->poller = epoll_create1(EPOLL_CLOEXEC);
    l->wake = eventfd(0, EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    epoll_ctl(l->poller, EPOLL_CTL_ADD, l->wake, &event);
    pthread_mutex_init(&l->lock, NULL);
    l->head = NULL;
    l->tail = &l->head;
    atomic_init(&l->stack, NULL);
    atomic_init(&l->sleeping, false);
    l->done = 0;
}
static void loop_close(loop *l) {
    close(l->poller);
    close(l->wake);
    pthread_mutex_destroy(&l->lock);
}
static void loop_wake(loop *l) {
    uint64_t one = 1;
    if (atomic_exchange(&l->sleeping, false)) (void)!write(l->wake, &one, 8);
}
static task *loop_take_locked(loop *l) {
    pthread_mutex_lock(&l->lock);
    task *first = l->head;
    l->head = NULL;
    l->tail = &l->head;
    pthread_mutex_unlock(&l->lock);
    return first;
}
static task *loop_take_free(loop *l) {
    task *taken = atomic_exchange(&l->stack, NULL), *first = NULL;
    while (taken) {
        task *next = taken->next;
        taken->next = first;
        first = taken;
        taken = next;
    }
    return first;
}
static uint64_t drain(task *first) {
    uint64_t count = 0;
    while (first) {
        task *next = first->next;
        first->run(first);
        first = next;
        count++;
    }
    return count;
}
static void post_locked(loop *l, task *t) {
    pthread_mutex_lock(&l->lock);
    t->next = NULL;
    *l->tail = t;
    l->tail = &t->next;
    pthread_mutex_unlock(&l->lock);
    if (atomic_load(&l->sleeping)) loop_wake(l);
}
static void post_free(loop *l, task *t) {
    t->next = atomic_load_explicit(&l->stack, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&l->stack, &t->next, t)) {}
    if (atomic_load(&l->sleeping)) loop_wake(l);
}

static loop *self_loop;
static void post_self(task *t) { post_locked(self_loop, t); }

uint64_t minimal_iterate(uint64_t count) {
    loop l;
    loop_open(&l);
    self_loop = &l;
    task t = {.run = post_self};
    struct epoll_event event;
    post_locked(&l, &t);
    uint64_t began = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        drain(loop_take_locked(&l));
        epoll_wait(l.poller, &event, 1, 0);
    }
    uint64_t elapsed = now_ns() - began;
    loop_close(&l);
    return elapsed;
}

uint64_t minimal_wake(uint64_t count) {
    loop l;
    loop_open(&l);
    struct epoll_event event;
    uint64_t one = 1, began = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        one = 1;
        (void)!write(l.wake, &one, 8);
        epoll_wait(l.poller, &event, 1, -1);
        (void)!read(l.wake, &one, 8);
    }
    uint64_t elapsed = now_ns() - began;
    loop_close(&l);
    return elapsed;
}

typedef struct {
    loop *l;
    task *tasks;
    uint64_t count;
    bool locked;
} producer;
static void count_task(task *t) { (void)t; }
static void *produce(void *argument) {
    producer *p = argument;
    for (uint64_t i = 0; i < p->count; i++) {
        p->tasks[i].run = count_task;
        if (p->locked) post_locked(p->l, &p->tasks[i]);
        else post_free(p->l, &p->tasks[i]);
    }
    return NULL;
}
static uint64_t post_from(uint64_t count, int producers, bool locked) {
    loop l;
    loop_open(&l);
    pthread_t threads[16];
    producer p[16];
    for (int i = 0; i < producers; i++)
        p[i] = (producer){&l, calloc(count, sizeof(task)), count, locked};
    uint64_t began = now_ns(), total = count * (uint64_t)producers;
    for (int i = 0; i < producers; i++) pthread_create(&threads[i], NULL, produce, &p[i]);
    struct epoll_event event;
    while (l.done < total) {
        uint64_t served = drain(locked ? loop_take_locked(&l) : loop_take_free(&l));
        l.done += served;
        if (served > 0) continue;
        atomic_store(&l.sleeping, true);
        bool empty = locked ? __atomic_load_n(&l.head, __ATOMIC_SEQ_CST) == NULL
                            : atomic_load(&l.stack) == NULL;
        epoll_wait(l.poller, &event, 1, empty ? -1 : 0);
        atomic_store(&l.sleeping, false);
    }
    uint64_t elapsed = now_ns() - began;
    for (int i = 0; i < producers; i++) {
        pthread_join(threads[i], NULL);
        free(p[i].tasks);
    }
    loop_close(&l);
    return elapsed;
}
uint64_t minimal_post_locked(uint64_t count, int producers) { return post_from(count, producers, true); }
uint64_t minimal_post_lock_free(uint64_t count, int producers) { return post_from(count, producers, false); }

// MARK: timers

typedef struct {
    uint64_t deadline;
    uint32_t sequence, slot;
} entry;
struct minimal_timers {
    entry *entries;
    uint32_t *positions, count, sequence;
};

static bool earlier(entry a, entry b) {
    return a.deadline != b.deadline ? a.deadline < b.deadline : (int32_t)(a.sequence - b.sequence) < 0;
}
static void place(minimal_timers *t, entry e, uint32_t at) {
    t->entries[at] = e;
    t->positions[e.slot] = at;
}
static void sift_up(minimal_timers *t, entry e, uint32_t at) {
    while (at > 0 && earlier(e, t->entries[(at - 1) / 4])) {
        place(t, t->entries[(at - 1) / 4], at);
        at = (at - 1) / 4;
    }
    place(t, e, at);
}
static void sift_down(minimal_timers *t, entry e, uint32_t at) {
    for (;;) {
        uint32_t child = 4 * at + 1, last = child + 4 < t->count ? child + 4 : t->count, least = child;
        if (child >= t->count) break;
        for (uint32_t other = child + 1; other < last; other++)
            if (earlier(t->entries[other], t->entries[least])) least = other;
        if (!earlier(t->entries[least], e)) break;
        place(t, t->entries[least], at);
        at = least;
    }
    place(t, e, at);
}
static void settle(minimal_timers *t, entry e, uint32_t at) {
    if (at > 0 && earlier(e, t->entries[(at - 1) / 4])) sift_up(t, e, at);
    else sift_down(t, e, at);
}
static void insert(minimal_timers *t, uint32_t slot, uint64_t deadline) {
    sift_up(t, (entry){deadline, t->sequence++, slot}, t->count++);
}
static void cancel(minimal_timers *t, uint32_t slot) {
    uint32_t at = t->positions[slot];
    t->count--;
    if (at != t->count) settle(t, t->entries[t->count], at);
}
static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}
static minimal_timers *empty_timers(uint32_t size) {
    minimal_timers *t = calloc(1, sizeof *t);
    t->entries = calloc(size, sizeof(entry));
    t->positions = calloc(size, sizeof(uint32_t));
    return t;
}
minimal_timers *minimal_timers_create(uint32_t size) {
    minimal_timers *t = empty_timers(size);
    uint64_t state = 88172645463325252u;
    for (uint32_t i = 0; i < size; i++) insert(t, i, (uint64_t)1 << 50 | next_random(&state) >> 20);
    return t;
}
void minimal_timers_destroy(minimal_timers *t) {
    free(t->entries);
    free(t->positions);
    free(t);
}
uint64_t minimal_timers_insert(uint32_t size) {
    minimal_timers *t = empty_timers(size);
    uint64_t state = 88172645463325252u, began = now_ns();
    for (uint32_t i = 0; i < size; i++) insert(t, i, (uint64_t)1 << 50 | next_random(&state) >> 20);
    uint64_t elapsed = now_ns() - began;
    minimal_timers_destroy(t);
    return elapsed;
}
uint64_t minimal_timers_cancel(uint32_t size) {
    minimal_timers *t = minimal_timers_create(size);
    uint32_t *order = calloc(size, sizeof *order);
    uint64_t state = 362436069;
    for (uint32_t i = 0; i < size; i++) order[i] = i;
    for (uint32_t i = size - 1; i > 0; i--) {
        uint32_t other = (uint32_t)(next_random(&state) % (i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    uint64_t began = now_ns();
    for (uint32_t i = 0; i < size; i++) cancel(t, order[i]);
    uint64_t elapsed = now_ns() - began;
    free(order);
    minimal_timers_destroy(t);
    return elapsed;
}
static uint64_t fired;
static void fire(uint32_t slot) { fired += slot; }
uint64_t minimal_timers_fire(uint32_t size) {
    minimal_timers *t = minimal_timers_create(size);
    void (*volatile handler)(uint32_t) = fire;
    uint64_t began = now_ns();
    while (t->count > 0) {
        uint32_t slot = t->entries[0].slot;
        cancel(t, slot);
        handler(slot);
    }
    uint64_t elapsed = now_ns() - began;
    minimal_timers_destroy(t);
    return elapsed;
}
uint64_t minimal_timers_churn(uint32_t size, uint64_t count) {
    minimal_timers *t = minimal_timers_create(size + 1);
    cancel(t, size);
    uint64_t state = 521288629, began = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        insert(t, size, (uint64_t)1 << 50 | next_random(&state) >> 20);
        cancel(t, size);
    }
    uint64_t elapsed = now_ns() - began;
    minimal_timers_destroy(t);
    return elapsed;
}
uint64_t minimal_timers_redate(uint32_t size, uint64_t count) {
    minimal_timers *t = minimal_timers_create(size);
    uint64_t state = 521288629, began = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        uint32_t slot = (uint32_t)(next_random(&state) % size);
        settle(t, (entry){(uint64_t)1 << 50 | next_random(&state) >> 20, t->sequence++, slot}, t->positions[slot]);
    }
    uint64_t elapsed = now_ns() - began;
    minimal_timers_destroy(t);
    return elapsed;
}

// MARK: descriptors

uint64_t minimal_descriptors(int active, uint64_t count, int events_per_wait) {
    int poller = epoll_create1(EPOLL_CLOEXEC), *descriptors = calloc((size_t)active, sizeof(int));
    for (int i = 0; i < active; i++) {
        descriptors[i] = eventfd(0, EFD_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptors[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, descriptors[i], &event);
    }
    struct epoll_event events[256];
    uint64_t value = 1, served = 0, began = now_ns();
    while (served < count) {
        for (int i = 0; i < active; i++) (void)!write(descriptors[i], &value, 8);
        for (int left = active; left > 0;) {
            int ready = epoll_wait(poller, events, events_per_wait, -1);
            for (int i = 0; i < ready; i++) (void)!read(events[i].data.fd, &value, 8);
            left -= ready;
        }
        value = 1;
        served += (uint64_t)active;
    }
    uint64_t elapsed = now_ns() - began;
    for (int i = 0; i < active; i++) close(descriptors[i]);
    free(descriptors);
    close(poller);
    return elapsed * count / served;
}

// MARK: allocations

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static __thread uint64_t allocations;

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
    allocations++;
    return __libc_realloc(memory, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
    allocations++;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : 12;
}
uint64_t minimal_allocations(void) { return allocations; }

int minimal_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
