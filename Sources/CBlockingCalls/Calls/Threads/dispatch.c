// Dispatch. Weak: a program with a static standard library has libdispatch's own definitions, and is not watched here.
// Declared without libdispatch's headers, which a C module cannot count on; without Dispatch nothing calls these.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include "../interpose.h"

typedef void *queue, *block, *semaphore, *group;
typedef void (*function)(void *);
typedef uint64_t dispatch_time;
enum { NOW = 0 };  // DISPATCH_TIME_NOW

extern void dispatch_sync(queue, block);
extern void dispatch_sync_f(queue, void *, function);
extern void dispatch_barrier_sync(queue, block);
extern void dispatch_barrier_sync_f(queue, void *, function);
extern void dispatch_async_and_wait(queue, block);
extern void dispatch_async_and_wait_f(queue, void *, function);
extern void dispatch_barrier_async_and_wait(queue, block);
extern void dispatch_barrier_async_and_wait_f(queue, void *, function);
extern intptr_t dispatch_semaphore_wait(semaphore, dispatch_time);
extern intptr_t dispatch_group_wait(group, dispatch_time);
extern intptr_t dispatch_block_wait(block, dispatch_time);

INTERPOSE(dispatch_sync)
INTERPOSE(dispatch_sync_f)
INTERPOSE(dispatch_barrier_sync)
INTERPOSE(dispatch_barrier_sync_f)
INTERPOSE(dispatch_async_and_wait)
INTERPOSE(dispatch_async_and_wait_f)
INTERPOSE(dispatch_barrier_async_and_wait)
INTERPOSE(dispatch_barrier_async_and_wait_f)
INTERPOSE(dispatch_semaphore_wait)
INTERPOSE(dispatch_group_wait)
INTERPOSE(dispatch_block_wait)

#define SYNC(name)                                                               \
    WEAK void name(queue queue, block block) {                                   \
        MAKE_CALL(name, STALL_BLOCKING_LOCK, (queue, block));                    \
    }                                                                            \
    WEAK void name##_f(queue queue, void *context, function function) {          \
        MAKE_CALL(name##_f, STALL_BLOCKING_LOCK, (queue, context, function));    \
    }

SYNC(dispatch_sync)
SYNC(dispatch_barrier_sync)
SYNC(dispatch_async_and_wait)
SYNC(dispatch_barrier_async_and_wait)

// The first attempt does not wait.
#define WAIT(name, object)                                                                        \
    if (!blocking_is_forbidden_anywhere() || timeout == NOW) return NEXT(name)(object, timeout);  \
    if (NEXT(name)(object, NOW) == 0) return 0;                                                   \
    REPORT_WAIT(name, (object, timeout))

WEAK intptr_t dispatch_semaphore_wait(semaphore semaphore, dispatch_time timeout) {
    WAIT(dispatch_semaphore_wait, semaphore);
}

WEAK intptr_t dispatch_group_wait(group group, dispatch_time timeout) { WAIT(dispatch_group_wait, group); }

// A block can be waited for once, so there is no attempt.
WEAK intptr_t dispatch_block_wait(block block, dispatch_time timeout) {
    RETURN_CALL(dispatch_block_wait, timeout == NOW ? 0 : STALL_BLOCKING_LOCK, (block, timeout));
}
#endif
