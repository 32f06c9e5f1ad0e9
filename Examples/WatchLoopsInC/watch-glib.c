// A GLib main loop, as GTK has it, that is watched by its waits, and stalls once. `make c-loops` builds and runs it.
//
//     gcc -O2 -g watch-glib.c $(pkg-config --cflags --libs stallagent-waits glib-2.0) -o watch-glib
//     watch-glib [STORE]
//
// Without STORE: stalls.sqlite, here or in the directory that systemd gives a service for its state.
#include <glib.h>
#include <stall_agent.h>
#include <stdio.h>

__attribute__((noinline)) void load_thumbnails(void) {
    g_usleep(600000);
    __asm__ volatile("");  // keeps the call above from becoming a jump, which leaves no frame
}

static gboolean click(gpointer context) {
    (void)context;
    const gint64 began = g_get_monotonic_time();
    load_thumbnails();
    printf("load_thumbnails took %d ms\n", (int)((g_get_monotonic_time() - began) / 1000));
    return G_SOURCE_REMOVE;
}

static gboolean animate(gpointer context) {
    int *frames = context;
    ++*frames;
    g_usleep(2000);
    return G_SOURCE_CONTINUE;
}

static gboolean quit(gpointer loop) {
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

int main(int count, char **arguments) {
    char error[200];
    stall_agent_configuration configuration = {
        .app = "in-glib", .version = "1.0", .store = count > 1 ? arguments[1] : NULL};
    stall_agent *agent = stall_agent_start(&configuration, error, sizeof error);
    if (!agent) return fprintf(stderr, "%s\n", error), 1;

    int frames = 0;
    GMainLoop *loop = g_main_loop_new(NULL, FALSE);
    g_timeout_add(20, animate, &frames);
    g_timeout_add(1000, click, NULL);
    g_timeout_add(3000, quit, loop);

    stall_watched_waits *waits = stall_agent_watch_waits(agent, "glib", 0);
    g_main_loop_run(loop);
    printf("%d frames, %s\n", frames, stall_watched_waits_count(waits) > 0 ? "waits seen" : "no waits seen");
    stall_watched_waits_free(waits);

    g_main_loop_unref(loop);
    stall_agent_stop(agent);
    return 0;
}
