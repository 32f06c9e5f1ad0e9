#include "peers.h"

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
static uint32_t *shuffled(uint32_t size) {
    uint32_t *order = calloc(size, sizeof *order);
    uint64_t state = 362436069;
    for (uint32_t i = 0; i < size; i++) order[i] = i;
    for (uint32_t i = size - 1; i > 0; i--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint32_t other = (uint32_t)(state % (i + 1)), kept = order[i];
        order[i] = order[other], order[other] = kept;
    }
    return order;
}

// MARK: libuv

static uint64_t left;
static void count_idle(uv_idle_t *idle) {
    if (--left == 0) uv_idle_stop(idle);
}
uint64_t peers_uv_iterate(uint64_t count) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    uv_idle_t idle;
    uv_idle_init(&loop, &idle);
    left = count;
    uv_idle_start(&idle, count_idle);
    uint64_t began = now_ns();
    uv_run(&loop, UV_RUN_DEFAULT);
    uint64_t elapsed = now_ns() - began;
    uv_close((uv_handle_t *)&idle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return elapsed;
}

typedef struct node {
    struct node *next;
    void (*run)(void *);
    void *argument;
} node;
static void count_node(void *argument) {
    left -= *(uint64_t *)argument;
}
static struct {
    pthread_mutex_t lock;
    node *head, **tail;
    uv_async_t async;
} queue;
static void serve_queue(uv_async_t *async) {
    pthread_mutex_lock(&queue.lock);
    node *first = queue.head;
    queue.head = NULL, queue.tail = &queue.head;
    pthread_mutex_unlock(&queue.lock);
    while (first) {
        node *done = first;
        first = first->next;
        if (done->run) {
            done->run(done->argument);
            free(done);
        } else {
            left--;
        }
    }
    if (left == 0) uv_close((uv_handle_t *)async, NULL);
}
typedef struct { node *nodes; uint64_t count; GMainContext *context; } producer;
static void *produce_uv(void *argument) {
    producer *p = argument;
    static uint64_t one = 1;
    for (uint64_t i = 0; i < p->count; i++) {
        node *posted = p->nodes ? &p->nodes[i] : malloc(sizeof *posted);
        *posted = (node){NULL, p->nodes ? NULL : count_node, &one};
        pthread_mutex_lock(&queue.lock);
        *queue.tail = posted, queue.tail = &posted->next;
        pthread_mutex_unlock(&queue.lock);
        uv_async_send(&queue.async);
    }
    return NULL;
}
uint64_t peers_uv_post(uint64_t count, int producers, bool allocating) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    uv_async_init(&loop, &queue.async, serve_queue);
    pthread_mutex_init(&queue.lock, NULL);
    queue.head = NULL, queue.tail = &queue.head;
    left = count * (uint64_t)producers;
    pthread_t threads[16];
    producer p[16];
    for (int i = 0; i < producers; i++) p[i] = (producer){allocating ? NULL : calloc(count, sizeof(node)), count, NULL};
    uint64_t began = now_ns();
    for (int i = 0; i < producers; i++) pthread_create(&threads[i], NULL, produce_uv, &p[i]);
    uv_run(&loop, UV_RUN_DEFAULT);
    uint64_t elapsed = now_ns() - began;
    for (int i = 0; i < producers; i++) pthread_join(threads[i], NULL), free(p[i].nodes);
    uv_loop_close(&loop);
    return elapsed;
}

static void ignore_timer(uv_timer_t *timer) { (void)timer; }
void peers_uv_timers(uint32_t size, uint64_t *insert, uint64_t *cancel) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    uv_timer_t *timers = calloc(size, sizeof *timers);
    for (uint32_t i = 0; i < size; i++) uv_timer_init(&loop, &timers[i]);
    uint32_t *order = shuffled(size);
    uint64_t began = now_ns();
    for (uint32_t i = 0; i < size; i++) uv_timer_start(&timers[i], ignore_timer, 1000000 + order[i], 0);
    *insert = now_ns() - began;
    began = now_ns();
    for (uint32_t i = 0; i < size; i++) uv_timer_stop(&timers[order[i]]);
    *cancel = now_ns() - began;
    for (uint32_t i = 0; i < size; i++) uv_close((uv_handle_t *)&timers[i], NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    free(order);
    free(timers);
}

static struct { uv_poll_t *polls; int *descriptors, active, pending; uint64_t served, count; } served;
static void write_all(void) {
    uint64_t one = 1;
    for (int i = 0; i < served.active; i++) (void)!write(served.descriptors[i], &one, 8);
    served.pending = served.active;
}
static void serve_poll(uv_poll_t *poll, int status, int events) {
    (void)status, (void)events;
    uint64_t value;
    (void)!read(served.descriptors[poll - served.polls], &value, 8);
    served.served++;
    if (--served.pending > 0) return;
    if (served.served < served.count) return write_all();
    for (int i = 0; i < served.active; i++) uv_close((uv_handle_t *)&served.polls[i], NULL);
}
uint64_t peers_uv_descriptors(int active, uint64_t count) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    served.polls = calloc((size_t)active, sizeof(uv_poll_t));
    served.descriptors = calloc((size_t)active, sizeof(int));
    served.active = active, served.served = 0, served.count = count;
    for (int i = 0; i < active; i++) {
        served.descriptors[i] = eventfd(0, EFD_NONBLOCK);
        uv_poll_init(&loop, &served.polls[i], served.descriptors[i]);
        uv_poll_start(&served.polls[i], UV_READABLE, serve_poll);
    }
    write_all();
    uint64_t began = now_ns();
    uv_run(&loop, UV_RUN_DEFAULT);
    uint64_t elapsed = now_ns() - began;
    for (int i = 0; i < active; i++) close(served.descriptors[i]);
    uv_loop_close(&loop);
    free(served.polls);
    free(served.descriptors);
    return elapsed * count / served.served;
}

// MARK: GLib

static gboolean count_source(gpointer data) {
    (void)data;
    return --left > 0 ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}
uint64_t peers_glib_iterate(uint64_t count) {
    GMainContext *context = g_main_context_new();
    GSource *idle = g_idle_source_new();
    g_source_set_callback(idle, count_source, NULL, NULL);
    g_source_attach(idle, context);
    left = count;
    uint64_t began = now_ns();
    while (left > 0) g_main_context_iteration(context, FALSE);
    uint64_t elapsed = now_ns() - began;
    g_source_unref(idle);
    g_main_context_unref(context);
    return elapsed;
}
static gboolean count_post(gpointer data) {
    (void)data;
    left--;
    return G_SOURCE_REMOVE;
}
static void *produce_glib(void *argument) {
    producer *p = argument;
    for (uint64_t i = 0; i < p->count; i++) {
        GSource *source = g_idle_source_new();
        g_source_set_priority(source, G_PRIORITY_DEFAULT);
        g_source_set_callback(source, count_post, NULL, NULL);
        g_source_attach(source, p->context);
        g_source_unref(source);
    }
    return NULL;
}
uint64_t peers_glib_post(uint64_t count, int producers) {
    GMainContext *context = g_main_context_new();
    left = count * (uint64_t)producers;
    pthread_t threads[16];
    producer p = {NULL, count, context};
    uint64_t began = now_ns();
    for (int i = 0; i < producers; i++) pthread_create(&threads[i], NULL, produce_glib, &p);
    while (left > 0) g_main_context_iteration(context, TRUE);
    uint64_t elapsed = now_ns() - began;
    for (int i = 0; i < producers; i++) pthread_join(threads[i], NULL);
    g_main_context_unref(context);
    return elapsed;
}
void peers_glib_timers(uint32_t size, uint64_t *insert, uint64_t *cancel) {
    GMainContext *context = g_main_context_new();
    GSource **sources = calloc(size, sizeof *sources);
    uint32_t *order = shuffled(size);
    for (uint32_t i = 0; i < size; i++) {
        sources[i] = g_timeout_source_new(1000000 + order[i]);
        g_source_set_callback(sources[i], count_post, NULL, NULL);
    }
    uint64_t began = now_ns();
    for (uint32_t i = 0; i < size; i++) g_source_attach(sources[i], context);
    *insert = now_ns() - began;
    began = now_ns();
    for (uint32_t i = 0; i < size; i++) g_source_destroy(sources[order[i]]);
    *cancel = now_ns() - began;
    for (uint32_t i = 0; i < size; i++) g_source_unref(sources[i]);
    g_main_context_unref(context);
    free(order);
    free(sources);
}

int peers_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
