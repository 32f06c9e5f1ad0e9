// Watches a loop by its waits, and misuses that part of the C interface. A test builds it linked with libstallwaits, also
// with a sanitizer, and as one that loads it (LOADED) when libc's functions have long been found. Prints what it sees.
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stall_agent.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef stall_watched_waits *(*watch_call)(stall_agent *, const char *, uint32_t);

static watch_call find_watch(const char *library) {
#ifdef LOADED
    void *loaded = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    return loaded ? (watch_call)dlsym(loaded, "stall_agent_watch_waits") : NULL;
#else
    (void)library;
    return stall_agent_watch_waits;
#endif
}

__attribute__((noinline)) static void run_loop(int file, int rounds) {
    struct pollfd files = {.fd = file, .events = POLLIN};
    for (int i = 0; i < rounds; i++) poll(&files, 1, 10);
}

static stall_agent *agent;
static watch_call watch;

static void *run_elsewhere(void *context) {
    stall_watched_waits **waits = context;
    *waits = watch(agent, "thread", 0);
    run_loop(eventfd(0, 0), 2);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 3 || !(watch = find_watch(arguments[1]))) return 1;
    printf("without an agent %d\n", watch(NULL, "loop", 0) != NULL);
    stall_watched_waits_free(NULL);
    printf("of nothing %d\n", (int)stall_watched_waits_count(NULL));

    agent = stall_agent_start(
        &(stall_agent_configuration){.app = "waits", .store = arguments[2], .threshold_ms = 100}, NULL, 0);
    stall_watched_waits *waits = watch(agent, NULL, 0);
    stall_watched_waits *again = watch(agent, "again", 0);
    printf("watched %d %d\n", waits != NULL, again != NULL);
    const int file = eventfd(0, 0);
    run_loop(file, 3);
    printf("waits %d %d\n", (int)stall_watched_waits_count(waits), (int)stall_watched_waits_count(again));
    stall_watched_waits_free(waits);
    stall_watched_waits_free(again);
    usleep(300000);  // it has left its loop: no stall
    run_loop(file, 1);

    pthread_t thread;
    stall_watched_waits *elsewhere = NULL;
    pthread_create(&thread, NULL, run_elsewhere, &elsewhere);
    pthread_join(thread, NULL);
    printf("of a thread that has ended %d\n", (int)stall_watched_waits_count(elsewhere));
    waits = watch(agent, "last", 0);
    stall_agent_stop(agent);
    run_loop(file, 2);
    stall_watched_waits_free(waits);
    stall_watched_waits_free(elsewhere);
    puts("done");
    return 0;
}
