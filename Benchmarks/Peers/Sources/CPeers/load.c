#include "load.h"

#include <glib.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

uint64_t load_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
static uint64_t began;
static void begin(void) { began = load_cpu_ns(); }
static double each(uint32_t count) { return (double)(load_cpu_ns() - began) / count; }

static uint64_t state = 88172645463325252;
static uint64_t next_random(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
/// From 1,000 seconds to twelve days, in milliseconds.
static uint64_t far_ms(void) { return 1000000 + (next_random() >> 34); }

static void shuffle(void **items, uint32_t count) {
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t other = (uint32_t)(next_random() % (i + 1));
        void *kept = items[i];
        items[i] = items[other], items[other] = kept;
    }
}

// MARK: libuv

static void ignore_timer(uv_timer_t *timer) { (void)timer; }
static void ignore_async(uv_async_t *async) { (void)async; }
static void ignore_prepare(uv_prepare_t *prepare) { (void)prepare; }
static void ignore_poll(uv_poll_t *poll, int status, int events) { (void)poll, (void)status, (void)events; }
static void free_handle(uv_handle_t *handle) { free(handle); }
static void end_uv(uv_loop_t *loop, void **handles, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!uv_is_closing(handles[i])) uv_close(handles[i], free_handle);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);
    free(handles);
}

static void add_uv_timer(uv_loop_t *loop, void **place) {
    uv_timer_t *timer = *place = malloc(sizeof *timer);
    uv_timer_init(loop, timer);
    uv_timer_start(timer, ignore_timer, far_ms(), 0);
}
load_costs load_uv_timers(uint32_t present, uint32_t count) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    load_costs costs;
    void **timers = calloc(present + count, sizeof *timers);
    for (uint32_t i = 0; i < present; i++) add_uv_timer(&loop, &timers[i]);
    begin();
    for (uint32_t i = present; i < present + count; i++) add_uv_timer(&loop, &timers[i]);
    costs.add = each(count);
    shuffle(timers, present + count);
    begin();
    for (uint32_t i = 0; i < count; i++) uv_timer_start(timers[i], ignore_timer, far_ms(), 0);
    costs.change = each(count);
    shuffle(timers, present + count);
    begin();
    for (uint32_t i = 0; i < count; i++) uv_timer_stop(timers[i]);
    costs.remove = each(count);
    end_uv(&loop, timers, present + count);
    return costs;
}

static void add_uv_async(uv_loop_t *loop, void **place) {
    uv_async_init(loop, *place = malloc(sizeof(uv_async_t)), ignore_async);
}
load_costs load_uv_sources(uint32_t present, uint32_t count) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    load_costs costs = {0};
    void **sources = calloc(present + count, sizeof *sources);
    for (uint32_t i = 0; i < present; i++) add_uv_async(&loop, &sources[i]);
    begin();
    for (uint32_t i = present; i < present + count; i++) add_uv_async(&loop, &sources[i]);
    costs.add = each(count);
    shuffle(sources, present + count);
    begin();
    for (uint32_t i = 0; i < count; i++) uv_close(sources[i], free_handle);
    costs.remove = each(count);
    // The first are freed by the run.
    for (uint32_t i = count; i < present + count; i++) uv_close(sources[i], free_handle);
    end_uv(&loop, sources, 0);
    return costs;
}

static void add_uv_prepare(uv_loop_t *loop, void **place) {
    uv_prepare_t *prepare = *place = malloc(sizeof *prepare);
    uv_prepare_init(loop, prepare);
    uv_prepare_start(prepare, ignore_prepare);
}
load_costs load_uv_observers(uint32_t present, uint32_t count) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    load_costs costs = {0};
    void **observers = calloc(present + count, sizeof *observers);
    for (uint32_t i = 0; i < present; i++) add_uv_prepare(&loop, &observers[i]);
    begin();
    for (uint32_t i = present; i < present + count; i++) add_uv_prepare(&loop, &observers[i]);
    costs.add = each(count);
    shuffle(observers, present + count);
    begin();
    for (uint32_t i = 0; i < count; i++) uv_prepare_stop(observers[i]);
    costs.remove = each(count);
    end_uv(&loop, observers, present + count);
    return costs;
}

static void add_uv_poll(uv_loop_t *loop, void **place, int descriptor) {
    uv_poll_t *poll = *place = malloc(sizeof *poll);
    uv_poll_init(loop, poll, descriptor);
    uv_poll_start(poll, UV_READABLE, ignore_poll);
}
load_costs load_uv_descriptors(const int *descriptors, uint32_t present, uint32_t count) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    load_costs costs = {0};
    void **polls = calloc(present + count, sizeof *polls);
    for (uint32_t i = 0; i < present; i++) add_uv_poll(&loop, &polls[i], descriptors[i]);
    // Applies changes to the kernel at its next poll.
    uv_run(&loop, UV_RUN_NOWAIT);
    begin();
    for (uint32_t i = present; i < present + count; i++) add_uv_poll(&loop, &polls[i], descriptors[i]);
    uv_run(&loop, UV_RUN_NOWAIT);
    costs.add = each(count);
    shuffle(polls, present + count);
    begin();
    for (uint32_t i = 0; i < count; i++) uv_poll_stop(polls[i]);
    uv_run(&loop, UV_RUN_NOWAIT);
    costs.remove = each(count);
    end_uv(&loop, polls, present + count);
    return costs;
}

static uint32_t left;
static void count_idle(uv_idle_t *idle) {
    if (--left == 0) uv_stop(idle->loop);
}
double load_uv_idle(uint32_t present, uint32_t iterations) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    void **handles = calloc(present + 1, sizeof *handles);
    for (uint32_t i = 0; i < present; i++) add_uv_async(&loop, &handles[i]);
    uv_idle_t *idle = handles[present] = malloc(sizeof *idle);
    uv_idle_init(&loop, idle);
    uv_idle_start(idle, count_idle);
    left = iterations;
    begin();
    uv_run(&loop, UV_RUN_DEFAULT);
    double cost = each(iterations);
    end_uv(&loop, handles, present + 1);
    return cost;
}
static void do_nothing(uv_idle_t *idle) { (void)idle; }
double load_uv_ready(uint32_t ready, uint32_t iterations) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    void **handles = calloc(ready, sizeof *handles);
    for (uint32_t i = 0; i < ready; i++) {
        uv_idle_t *idle = handles[i] = malloc(sizeof *idle);
        uv_idle_init(&loop, idle);
        uv_idle_start(idle, i ? do_nothing : count_idle);
    }
    left = iterations;
    begin();
    uv_run(&loop, UV_RUN_DEFAULT);
    double cost = each(iterations);
    end_uv(&loop, handles, ready);
    return cost;
}
double load_uv_sleep(uint32_t present, uint32_t sleeps) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    void **timers = calloc(present + 1, sizeof *timers);
    for (uint32_t i = 0; i < present; i++) add_uv_timer(&loop, &timers[i]);
    uv_timer_t *often = timers[present] = malloc(sizeof *often);
    uv_timer_init(&loop, often);
    uv_timer_start(often, ignore_timer, 1, 1);
    begin();
    for (uint32_t i = 0; i < sleeps; i++) uv_run(&loop, UV_RUN_ONCE);
    double cost = each(sleeps);
    end_uv(&loop, timers, present + 1);
    return cost;
}

// MARK: GLib

static gboolean go_on(gpointer data) {
    (void)data;
    return G_SOURCE_CONTINUE;
}
static gboolean never(GSource *source) {
    (void)source;
    return FALSE;
}
static gboolean never_prepared(GSource *source, gint *timeout) {
    (void)source;
    *timeout = -1;
    return FALSE;
}
static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data) {
    (void)source, (void)callback, (void)data;
    return G_SOURCE_CONTINUE;
}
static GSourceFuncs idle_functions = {never_prepared, never, dispatch, NULL, NULL, NULL};
/// Lets GLib itself check ready times and descriptors.
static GSourceFuncs plain_functions = {NULL, NULL, dispatch, NULL, NULL, NULL};

static void end_glib(GMainContext *context, void **sources, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) g_source_destroy(sources[i]), g_source_unref(sources[i]);
    g_main_context_unref(context);
    free(sources);
}
typedef void (*make_glib)(GMainContext *, void **);
static void add_glib_timer(GMainContext *context, void **place) {
    GSource *timer = *place = g_timeout_source_new((guint)(far_ms() & 0x3fffffff));
    g_source_set_callback(timer, go_on, NULL, NULL);
    g_source_attach(timer, context);
}
static void add_glib_source(GMainContext *context, void **place) {
    g_source_attach(*place = g_source_new(&idle_functions, sizeof(GSource)), context);
}
static load_costs play_glib(uint32_t present, uint32_t count, make_glib make) {
    GMainContext *context = g_main_context_new();
    load_costs costs = {0};
    void **sources = calloc(present + count, sizeof *sources);
    for (uint32_t i = 0; i < present; i++) make(context, &sources[i]);
    begin();
    for (uint32_t i = present; i < present + count; i++) make(context, &sources[i]);
    costs.add = each(count);
    shuffle(sources, present + count);
    begin();
    gint64 now = g_get_monotonic_time();
    for (uint32_t i = 0; i < count; i++) g_source_set_ready_time(sources[i], now + (gint64)far_ms() * 1000);
    costs.change = each(count);
    shuffle(sources, present + count);
    begin();
    for (uint32_t i = 0; i < count; i++) g_source_destroy(sources[i]);
    costs.remove = each(count);
    end_glib(context, sources, present + count);
    return costs;
}
load_costs load_glib_timers(uint32_t present, uint32_t count) { return play_glib(present, count, add_glib_timer); }
load_costs load_glib_sources(uint32_t present, uint32_t count) {
    load_costs costs = play_glib(present, count, add_glib_source);
    costs.change = 0;
    return costs;
}
static void add_glib_descriptor(GMainContext *context, void **place, int descriptor) {
    GSource *source = *place = g_source_new(&plain_functions, sizeof(GSource));
    g_source_add_unix_fd(source, descriptor, G_IO_IN);
    g_source_attach(source, context);
}
load_costs load_glib_descriptors(const int *descriptors, uint32_t present, uint32_t count) {
    GMainContext *context = g_main_context_new();
    load_costs costs = {0};
    void **sources = calloc(present + count, sizeof *sources);
    for (uint32_t i = 0; i < present; i++) add_glib_descriptor(context, &sources[i], descriptors[i]);
    begin();
    for (uint32_t i = present; i < present + count; i++) add_glib_descriptor(context, &sources[i], descriptors[i]);
    costs.add = each(count);
    // Those that were added: the others are removed in their order, which costs less, at the end.
    shuffle(sources + present, count);
    begin();
    for (uint32_t i = present; i < present + count; i++) g_source_destroy(sources[i]);
    costs.remove = each(count);
    end_glib(context, sources, present + count);
    return costs;
}
double load_glib_idle(uint32_t present, uint32_t iterations) {
    GMainContext *context = g_main_context_new();
    void **sources = calloc(present + 1, sizeof *sources);
    for (uint32_t i = 0; i < present; i++) add_glib_source(context, &sources[i]);
    GSource *ready = sources[present] = g_source_new(&plain_functions, sizeof(GSource));
    g_source_set_ready_time(ready, 0);
    g_source_attach(ready, context);
    begin();
    for (uint32_t i = 0; i < iterations; i++) g_main_context_iteration(context, FALSE);
    double cost = each(iterations);
    end_glib(context, sources, present + 1);
    return cost;
}
double load_glib_ready(uint32_t ready, uint32_t iterations) {
    GMainContext *context = g_main_context_new();
    void **sources = calloc(ready, sizeof *sources);
    for (uint32_t i = 0; i < ready; i++) {
        GSource *source = sources[i] = g_source_new(&plain_functions, sizeof(GSource));
        g_source_set_ready_time(source, 0);
        g_source_attach(source, context);
    }
    begin();
    for (uint32_t i = 0; i < iterations; i++) g_main_context_iteration(context, FALSE);
    double cost = each(iterations);
    end_glib(context, sources, ready);
    return cost;
}
double load_glib_sleep(uint32_t present, uint32_t sleeps) {
    GMainContext *context = g_main_context_new();
    void **sources = calloc(present + 1, sizeof *sources);
    for (uint32_t i = 0; i < present; i++) add_glib_timer(context, &sources[i]);
    GSource *often = sources[present] = g_timeout_source_new(1);
    g_source_set_callback(often, go_on, NULL, NULL);
    g_source_attach(often, context);
    begin();
    for (uint32_t i = 0; i < sleeps; i++) g_main_context_iteration(context, TRUE);
    double cost = each(sleeps);
    end_glib(context, sources, present + 1);
    return cost;
}
