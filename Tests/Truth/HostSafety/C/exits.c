// An app that ends itself while it is stuck.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "host_safety.h"

uint64_t host_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct {
    uint64_t ns;
    int file;
} request;

static void *leave(void *context) {
    host_rest(request.ns);
    const uint64_t now = host_now();
    if (write(request.file, &now, sizeof now) != sizeof now) _exit(78);
    exit(7);
    return context;
}

void host_exit_soon(uint64_t ns, const char *path) {
    pthread_t thread;
    request.ns = ns;
    request.file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pthread_create(&thread, NULL, leave, NULL);
}

void host_fill_standard_error(void) {
    static const char bytes[4096];
    int ends[2];
    if (pipe(ends) != 0) _exit(78);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], bytes, sizeof bytes) > 0) {}
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
}
