// timer_peers LOOP CASE COUNT ITEMS: COUNT operations on a loop that has ITEMS timers, as Benchmarks/FewItems does them on
// EventRunLoop. scripts/bench-timers builds and measures it. No target of the package, which needs no libuv.
//
//     add     a timer is made, added far away, cancelled and freed
//     fire    one is called again and again, because it is due at once
//     turn    the same, but each call in a turn of the loop of its own: libuv 1.44 calls a timer that its own callback has made
//             due again without one
#include <dispatch/dispatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "minimal_loop.h"

static long left;
static int is_fire, is_turn;

// libuv

static void ignore_uv(uv_timer_t *timer) { (void)timer; }
static void free_uv(uv_handle_t *timer) { free(timer); }
static void again_uv(uv_timer_t *timer) {
    if (--left > 0) uv_timer_start(timer, again_uv, 0, 0);
    else uv_stop(timer->loop);
}
static void count_uv(uv_timer_t *timer) {
    if (--left <= 0) uv_stop(timer->loop);
}
static void prepare_uv(uv_prepare_t *prepare) {
    if (left > 0) uv_timer_start(prepare->data, count_uv, 0, 0);
}
static uv_timer_t *make_uv(uv_loop_t *loop, uint64_t ms) {
    uv_timer_t *timer = malloc(sizeof *timer);
    uv_timer_init(loop, timer);
    uv_timer_start(timer, ignore_uv, ms, 0);
    return timer;
}
static void play_uv(long count, long items) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    for (long i = 0; i < items; i++) make_uv(&loop, 1000000 + (uint64_t)i * 1000);
    if (is_fire) {
        uv_timer_t timer;
        uv_timer_init(&loop, &timer);
        uv_prepare_t prepare = {.data = &timer};
        if (is_turn) {
            uv_prepare_init(&loop, &prepare);
            uv_prepare_start(&prepare, prepare_uv);
        }
        uv_timer_start(&timer, is_turn ? count_uv : again_uv, 0, 0);
        left = count;
        uv_run(&loop, UV_RUN_DEFAULT);
        return;
    }
    uv_timer_t **made = malloc((size_t)count * sizeof *made);
    for (long i = 0; i < count; i++) made[i] = make_uv(&loop, 2000000 + (uint64_t)i * 1000);
    for (long i = 0; i < count; i++) uv_close((uv_handle_t *)made[i], free_uv);
    uv_run(&loop, UV_RUN_NOWAIT);
}

// The floor: a heap in C, whose nodes the caller owns. No loop around it.

static void play_c(long count, long items) {
    if (is_fire) minimal_timers_redate((uint32_t)items, (uint64_t)count);
    else minimal_timers_churn((uint32_t)items, (uint64_t)count);
}

// Dispatch: sources of a serial queue

static void ignore_dispatch(void *context) { (void)context; }
static dispatch_source_t make_dispatch(dispatch_queue_t queue, long seconds) {
    dispatch_source_t timer = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, queue);
    dispatch_source_set_timer(timer, dispatch_time(DISPATCH_TIME_NOW, seconds * 1000000000), DISPATCH_TIME_FOREVER, 0);
    dispatch_source_set_event_handler_f(timer, ignore_dispatch);
    dispatch_resume(timer);
    return timer;
}
static dispatch_source_t due;
static dispatch_semaphore_t done;
static void again_dispatch(void *context) {
    (void)context;
    if (--left > 0) dispatch_source_set_timer(due, DISPATCH_TIME_NOW, DISPATCH_TIME_FOREVER, 0);
    else dispatch_semaphore_signal(done);
}
static void nothing(void *context) { (void)context; }
static void play_dispatch(long count, long items) {
    dispatch_queue_t queue = dispatch_queue_create("timers", NULL);
    for (long i = 0; i < items; i++) make_dispatch(queue, 1000 + i);
    dispatch_sync_f(queue, NULL, nothing);
    if (is_fire) {
        left = count;
        done = dispatch_semaphore_create(0);
        due = dispatch_source_create(DISPATCH_SOURCE_TYPE_TIMER, 0, 0, queue);
        dispatch_source_set_event_handler_f(due, again_dispatch);
        dispatch_source_set_timer(due, DISPATCH_TIME_NOW, DISPATCH_TIME_FOREVER, 0);
        dispatch_resume(due);
        dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
        return;
    }
    for (long i = 0; i < count; i++) {
        dispatch_source_t timer = make_dispatch(queue, 2000 + i);
        dispatch_source_cancel(timer);
        dispatch_release(timer);
    }
    dispatch_sync_f(queue, NULL, nothing);
}

// CFRunLoop: that of the toolchain's Foundation, whose headers need a compiler of its own

extern const void *kCFRunLoopDefaultMode;
extern double CFAbsoluteTimeGetCurrent(void);
extern void *CFRunLoopGetCurrent(void);
extern void CFRunLoopRun(void);
extern void CFRunLoopStop(void *loop);
extern void *CFRunLoopTimerCreate(
    const void *allocator, double date, double interval, unsigned long flags, long order, void (*call)(void *, void *),
    void *context);
extern void CFRunLoopAddTimer(void *loop, void *timer, const void *mode);
extern void CFRunLoopTimerInvalidate(void *timer);
extern void CFRunLoopTimerSetNextFireDate(void *timer, double date);
extern void CFRelease(const void *object);

static void again_cf(void *timer, void *context) {
    (void)context;
    // Not by a short interval: it counts the calls that it has missed, one by one.
    CFRunLoopTimerSetNextFireDate(timer, CFAbsoluteTimeGetCurrent());
    if (--left <= 0) CFRunLoopStop(CFRunLoopGetCurrent());
}
static void *make_cf(double date, double interval) {
    void *timer = CFRunLoopTimerCreate(NULL, date, interval, 0, 0, again_cf, NULL);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    return timer;
}
static void play_cf(long count, long items) {
    const double now = CFAbsoluteTimeGetCurrent();
    for (long i = 0; i < items; i++) make_cf(now + 1000 + i, 0);
    if (is_fire) {
        left = count;
        make_cf(now, 1000);
        CFRunLoopRun();
        return;
    }
    for (long i = 0; i < count; i++) {
        void *timer = make_cf(now + 2000 + i, 0);
        CFRunLoopTimerInvalidate(timer);
        CFRelease(timer);
    }
}

static void *rest(void *nothing) {
    pause();
    return nothing;
}

int main(int argc, char **argv) {
    if (argc != 5) return 64;
    // In a process with one thread, reference counts and malloc are cheaper; no app has one.
    pthread_t other;
    pthread_create(&other, NULL, rest, NULL);
    is_turn = strcmp(argv[2], "turn") == 0;
    is_fire = is_turn || strcmp(argv[2], "fire") == 0;
    const long count = atol(argv[3]), items = atol(argv[4]);
    const char *names[] = {"libuv", "c", "dispatch", "cf"};
    void (*const plays[])(long, long) = {play_uv, play_c, play_dispatch, play_cf};
    for (int i = 0; i < 4; i++)
        if (strcmp(argv[1], names[i]) == 0) plays[i](count, items);
    fflush(stdout);
    _exit(0);
}
