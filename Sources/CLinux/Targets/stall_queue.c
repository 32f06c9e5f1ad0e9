#define _GNU_SOURCE
#include "stall_queue.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stall_clock.h"
#include "stall_task.h"
#include "stall_descriptors.h"
#include "stall_memory.h"

#define WEAK __attribute__((weak))
extern void *dispatch_queue_create_with_target(const char *label, void *attributes, void *target) WEAK;
extern void dispatch_sync_f(void *queue, void *context, void (*work)(void *)) WEAK;
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *)) WEAK;
extern void dispatch_suspend(void *object) WEAK;
extern void dispatch_resume(void *object) WEAK;
extern void dispatch_release(void *object) WEAK;
extern void *dispatch_get_current_queue(void) WEAK;

// Dispatch allocates 15 words for a queue; the memory behind them is not its own.
enum { WORDS = 15, NOWHERE = 0, DEEPEST_TARGET = 16 };
#define OWNER_MASK UINT64_C(0x3fffffff)

// Word indexes in a queue. NOWHERE is its first word, which is none of them.
static struct {
    int state, head, tail, target;
    uint64_t suspended;  // bits of the state, any of which suspends the queue
} layout;

typedef struct {
    const void *queue;
    uint64_t words[WORDS];
} pattern;

static uint64_t word_of(const void *queue, int number) {
    return __atomic_load_n((const uint64_t *)queue + number, __ATOMIC_ACQUIRE);
}

static void take(pattern *into) {
    for (int i = 0; i < WORDS; i++) into->words[i] = word_of(into->queue, i);
}

static void take_inside(void *into) { take(into); }
static void do_nothing(void *context) { (void)context; }

// The only word that satisfies `differs`; NOWHERE if there is none or more than one.
static int find(bool (*differs)(const pattern *patterns, int word), const pattern *patterns) {
    int found = NOWHERE;
    for (int i = 1; i < WORDS; i++) {
        if (!differs(patterns, i)) continue;
        if (found != NOWHERE) return NOWHERE;
        found = i;
    }
    return found;
}

enum { IDLE, RUNNING, IDLE_AGAIN, SUSPENDED, ONE_ITEM, TWO_ITEMS, PATTERNS };

static bool names_this_thread(const pattern *patterns, int word) {
    uint64_t self = (uint64_t)stall_gettid();
    return (patterns[RUNNING].words[word] & OWNER_MASK) == self && (patterns[IDLE].words[word] & OWNER_MASK) == 0
        && patterns[IDLE_AGAIN].words[word] == patterns[IDLE].words[word];
}
static bool is_head(const pattern *patterns, int word) {
    return patterns[SUSPENDED].words[word] == 0 && patterns[ONE_ITEM].words[word] > UINT32_MAX
        && patterns[TWO_ITEMS].words[word] == patterns[ONE_ITEM].words[word];
}
static bool is_tail(const pattern *patterns, int word) {
    return patterns[SUSPENDED].words[word] == 0 && patterns[ONE_ITEM].words[word] > UINT32_MAX
        && patterns[TWO_ITEMS].words[word] > UINT32_MAX
        && patterns[TWO_ITEMS].words[word] != patterns[ONE_ITEM].words[word];
}

static int find_target(void *parent) {
    void *child = dispatch_queue_create_with_target("stallwatch.layout.child", NULL, parent);
    pattern targeted = {.queue = child};
    take(&targeted);
    int found = NOWHERE;
    for (int i = 1; i < WORDS && found == NOWHERE; i++) {
        if (targeted.words[i] == (uint64_t)(uintptr_t)parent) found = i;
    }
    dispatch_release(child);
    return found;
}

static void find_layout(void) {
    if (!dispatch_queue_create_with_target || !dispatch_sync_f || !dispatch_async_f || !dispatch_suspend
        || !dispatch_resume || !dispatch_release)
        return;
    void *queue = dispatch_queue_create_with_target("stallwatch.layout", NULL, NULL);
    if (malloc_usable_size(queue) < WORDS * sizeof(uint64_t)) return dispatch_release(queue);
    pattern patterns[PATTERNS];
    for (int i = 0; i < PATTERNS; i++) patterns[i].queue = queue;
    take(&patterns[IDLE]);
    dispatch_sync_f(queue, &patterns[RUNNING], take_inside);  // on this thread, because the queue is otherwise unused
    take(&patterns[IDLE_AGAIN]);
    dispatch_suspend(queue);
    take(&patterns[SUSPENDED]);
    dispatch_async_f(queue, NULL, do_nothing);
    take(&patterns[ONE_ITEM]);
    dispatch_async_f(queue, NULL, do_nothing);
    take(&patterns[TWO_ITEMS]);
    dispatch_resume(queue);

    int state = find(names_this_thread, patterns);
    int head = find(is_head, patterns), tail = find(is_tail, patterns);
    uint64_t suspension = patterns[SUSPENDED].words[state] & ~patterns[IDLE].words[state];
    // Suspensions are counted in the topmost bits; the changed bit is the lowest of them. The two bits below mark a
    // queue that was never activated.
    bool is_plausible = state != NOWHERE && head != NOWHERE && tail != NOWHERE && suspension >> 48 != 0
        && (suspension & (suspension - 1)) == 0;
    if (is_plausible) {
        layout.head = head;
        layout.tail = tail;
        layout.target = find_target(queue);
        layout.suspended = ~((suspension >> 3) - 1);
        __atomic_store_n(&layout.state, state, __ATOMIC_RELEASE);
    }
    dispatch_release(queue);
}

void stall_queue_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_layout);
}

bool stall_queue_layout_is_known(void) {
    return __atomic_load_n(&layout.state, __ATOMIC_ACQUIRE) != NOWHERE;
}

stall_queue_snapshot stall_queue_read(const void *queue) {
    int number = __atomic_load_n(&layout.state, __ATOMIC_ACQUIRE);
    if (number == NOWHERE) return (stall_queue_snapshot){.is_known = false};
    uint64_t state = word_of(queue, number);
    return (stall_queue_snapshot){
        .is_known = true,
        .is_suspended = (state & layout.suspended) != 0,
        .is_empty = word_of(queue, layout.tail) == 0,
        .drainer = (int32_t)(state & OWNER_MASK),
        .head = word_of(queue, layout.head),
        .tail = word_of(queue, layout.tail),
    };
}

// A queue may be retargeted at any moment and its old target freed: read its memory through the kernel.
static bool read_words(const void *queue, uint64_t *words) {
    return stall_read_exactly(words, (uintptr_t)queue, WORDS * sizeof *words);
}

// `waiter` is skipped: it may own a queue while it waits for that queue's target.
static int32_t find_drainer(const void *queue, int state, int target, int32_t waiter) {
    uint64_t words[WORDS];
    for (int depth = 0; queue && depth < DEEPEST_TARGET && read_words(queue, words); depth++) {
        int32_t drainer = (int32_t)(words[state] & OWNER_MASK);
        if (drainer != 0 && drainer != waiter) return drainer;
        if (target == NOWHERE) return 0;
        queue = (const void *)(uintptr_t)words[target];
    }
    return 0;
}

// The word of a thread's futex call; 0 in any other state.
static uint64_t waited_word(int32_t thread) {
    char text[128];
    int file = stall_task_open(thread, "syscall");
    if (file < 0) return 0;
    ssize_t count = read(file, text, sizeof text - 1);
    stall_descriptor_end(file);
    if (count <= 0) return 0;
    text[count] = 0;
    char *rest;
    return strtol(text, &rest, 10) == SYS_futex && rest != text ? strtoull(rest, NULL, 16) : 0;
}

bool stall_queue_worker_is_idle(const void *root, int32_t thread) {
    enum { HEADER_WORDS = 8, CONTEXT_BYTES = 256 };  // measured: the fifth word, and 176 bytes
    uint64_t waited = waited_word(thread);
    if (waited == 0) return false;
    for (int i = 1; i < HEADER_WORDS; i++) {
        uint64_t context = word_of(root, i);
        if (context > UINT32_MAX && waited >= context && waited - context < CONTEXT_BYTES) return true;
    }
    return false;
}

int32_t stall_queue_find_drainer(const void *queue) {
    int state = __atomic_load_n(&layout.state, __ATOMIC_ACQUIRE);
    return state == NOWHERE ? 0 : find_drainer(queue, state, layout.target, 0);
}

// The context of dispatch_sync on a thread's stack, in words from its start. In Dispatch: struct
// dispatch_sync_context_s. It points to itself and contains the waiter's id, which identifies it.
enum { SYNC_CONTEXT = 5, SYNC_QUEUE = 7, SYNC_EVENT = 12, SYNC_WORDS = 13 };
// The offsets in every libdispatch so far, for a process in which find_layout was not called: it starts a worker of Dispatch's.
enum { USUAL_STATE = 7, USUAL_TARGET = 3 };
static bool is_usual;

static void try_usual_layout(void) {
    if (!dispatch_queue_create_with_target || !dispatch_sync_f || !dispatch_release) return;
    void *queue = dispatch_queue_create_with_target("stallwatch.layout", NULL, NULL);
    if (malloc_usable_size(queue) < WORDS * sizeof(uint64_t)) return dispatch_release(queue);
    pattern patterns[PATTERNS];
    for (int i = 0; i < PATTERNS; i++) patterns[i].queue = queue;
    take(&patterns[IDLE]);
    dispatch_sync_f(queue, &patterns[RUNNING], take_inside);  // on this thread
    take(&patterns[IDLE_AGAIN]);
    is_usual = names_this_thread(patterns, USUAL_STATE) && find_target(queue) == USUAL_TARGET;
    dispatch_release(queue);
}

bool stall_queue_layout_is_usual(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, try_usual_layout);
    return is_usual || !dispatch_queue_create_with_target;
}

int32_t stall_queue_find_sync_holder(uint64_t futex, int32_t waiter) {
    uint64_t words[SYNC_WORDS], start = futex - SYNC_EVENT * sizeof *words;
    if (futex % sizeof *words != 0 || futex < sizeof words) return 0;
    if (!stall_read_exactly(words, start, sizeof words)) return 0;
    if (words[SYNC_CONTEXT] != start || (int32_t)(words[SYNC_EVENT] >> 32) != waiter) return 0;
    const void *queue = (const void *)(uintptr_t)words[SYNC_QUEUE];
    int state = __atomic_load_n(&layout.state, __ATOMIC_ACQUIRE);
    if (state != NOWHERE) return find_drainer(queue, state, layout.target, waiter);
    return is_usual ? find_drainer(queue, USUAL_STATE, USUAL_TARGET, waiter) : 0;
}

const void *stall_current_queue(void) { return dispatch_get_current_queue ? dispatch_get_current_queue() : NULL; }
