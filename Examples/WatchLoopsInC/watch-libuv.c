// A libuv loop that is watched by its waits, and stalls once. `make c-loops` builds and runs it.
//
//     gcc -O2 -g watch-libuv.c $(pkg-config --cflags --libs stallagent-waits libuv) -o watch-libuv
//     watch-libuv [STORE]
//
// Without STORE: stalls.sqlite, here or in the directory that systemd gives a service for its state.
#include <stall_agent.h>
#include <stdio.h>
#include <unistd.h>
#include <uv.h>

static int requests;

__attribute__((noinline)) void render_invoice(void) {
    usleep(600000);
    __asm__ volatile("");  // keeps the call above from becoming a jump, which leaves no frame
}

static void order(uv_timer_t *timer) {
    (void)timer;
    const uint64_t began = uv_hrtime();
    render_invoice();
    printf("render_invoice took %d ms\n", (int)((uv_hrtime() - began) / 1000000));
}

static void serve(uv_timer_t *timer) {
    (void)timer;
    requests++;
    usleep(2000);
}

static void quit(uv_timer_t *timer) { uv_stop(timer->loop); }

int main(int count, char **arguments) {
    char error[200];
    stall_agent_configuration configuration = {
        .app = "in-libuv", .version = "1.0", .store = count > 1 ? arguments[1] : NULL};
    stall_agent *agent = stall_agent_start(&configuration, error, sizeof error);
    if (!agent) return fprintf(stderr, "%s\n", error), 1;

    uv_loop_t *loop = uv_default_loop();
    uv_timer_t timers[3];
    for (int i = 0; i < 3; i++) uv_timer_init(loop, &timers[i]);
    uv_timer_start(&timers[0], serve, 20, 20);
    uv_timer_start(&timers[1], order, 1000, 0);
    uv_timer_start(&timers[2], quit, 3000, 0);

    stall_watched_waits *waits = stall_agent_watch_waits(agent, "libuv", 0);
    uv_run(loop, UV_RUN_DEFAULT);
    printf("%d requests, %s\n", requests, stall_watched_waits_count(waits) > 0 ? "waits seen" : "no waits seen");
    stall_watched_waits_free(waits);

    stall_agent_stop(agent);
    return 0;
}
