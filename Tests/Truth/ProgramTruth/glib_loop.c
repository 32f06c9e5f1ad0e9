// A GLib main loop, with planted stalls: PLANTS SECONDS-OF-IDLE. Each line it prints is a plant, as in asyncio_loop.py.
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static unsigned random_ms(unsigned from, unsigned to) { return from + (unsigned)rand() % (to - from); }

__attribute__((noinline)) static void planted_sleep(void) { g_usleep(1000 * random_ms(300, 600)); }

__attribute__((noinline)) static void planted_spin(void) {
    const double end = now() + random_ms(300, 600) / 1e3;
    while (now() < end) {}
}

static GMutex mutex;

static void *hold(void *milliseconds) {
    g_mutex_lock(&mutex);
    g_usleep(1000 * GPOINTER_TO_UINT(milliseconds));
    g_mutex_unlock(&mutex);
    return NULL;
}

__attribute__((noinline)) static void planted_lock(void) {
    GThread *holder = g_thread_new("holder", hold, GUINT_TO_POINTER(random_ms(400, 600)));
    g_usleep(10000);
    g_mutex_lock(&mutex);
    g_mutex_unlock(&mutex);
    g_thread_join(holder);
}

__attribute__((noinline)) static void planted_command(void) {
    g_spawn_command_line_sync("sleep 0.4", NULL, NULL, NULL, NULL);
}

static GMainLoop *loop;
static int plants, planted;

static gboolean end_loop(void *nothing) {
    (void)nothing;
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

static gboolean plant(void *nothing) {
    static const struct {
        const char *name;
        void (*site)(void);
    } sites[] = {
        {"planted_sleep", planted_sleep}, {"planted_spin", planted_spin}, {"planted_lock", planted_lock},
        {"planted_command", planted_command},
    };
    (void)nothing;
    const double begin = now();
    sites[planted % 4].site();
    printf("%s %.6f %.6f\n", sites[planted % 4].name, begin, now());
    fflush(stdout);
    planted++;
    if (planted < plants) g_timeout_add(random_ms(300, 500), plant, NULL); else g_timeout_add(500, end_loop, NULL);
    return G_SOURCE_REMOVE;
}

static gboolean tick(void *nothing) {
    (void)nothing;
    return G_SOURCE_CONTINUE;
}

int main(int count, char **words) {
    if (count != 3) return 64;
    plants = atoi(words[1]);
    loop = g_main_loop_new(NULL, FALSE);
    g_timeout_add(20, tick, NULL);
    g_timeout_add((guint)(1000 * atof(words[2])) + 300, plant, NULL);
    g_main_loop_run(loop);
    return 0;
}
