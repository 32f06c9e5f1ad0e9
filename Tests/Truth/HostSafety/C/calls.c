// Calls that may block: under locks, all in turn, and by new processes.
#define _GNU_SOURCE
#include "host_safety_calls.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_safety.h"

extern char **environ;

__attribute__((noinline)) void host_call(void) {
    usleep(1);
    __asm__ volatile("");
}

__attribute__((noinline)) void host_call_deep(int depth) {
    volatile char room[1024];
    room[0] = 0;
    if (depth > 0) {
        host_call_deep(depth - 1);
    } else {
        host_call();
    }
    room[1] = 0;
}

// MARK: Under locks

static int call_once(struct dl_phdr_info *image, size_t size, void *context) {
    (void)image, (void)size, (void)context;
    host_call();
    return 1;
}

void host_call_in_loader(void) { dl_iterate_phdr(call_once, NULL); }

static ssize_t write_slowly(void *cookie, const char *bytes, size_t count) {
    (void)cookie, (void)bytes;
    host_call();
    return (ssize_t)count;
}

void host_call_in_stream(void) {
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_slowly});
    if (!stream) return;
    fputs("text", stream);
    fflush(stream);
    fclose(stream);
}

// MARK: errno

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;

static void *hold_lock(void *context) {
    pthread_mutex_lock(&contended);
    sem_post(context);
    usleep(200);
    pthread_mutex_unlock(&contended);
    return NULL;
}

enum { BEFORE = 4711 };

#define CHECK(call)                                    \
    errno = BEFORE;                                    \
    if ((call) >= 0) changed += errno != BEFORE

int host_calls_that_change_errno(void) {
    int ends[2], changed = 0;
    char byte = 0;
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    if (pipe(ends) != 0) return 1;
    CHECK(usleep(50));
    CHECK(write(ends[1], &byte, 1));
    CHECK(read(ends[0], &byte, 1));
    pthread_t thread;
    if (pthread_create(&thread, NULL, hold_lock, &semaphore) == 0) {
        while (sem_wait(&semaphore) != 0) {}
        CHECK(-pthread_mutex_lock(&contended));
        pthread_mutex_unlock(&contended);
        CHECK(-pthread_join(thread, NULL));
    }
    close(ends[0]);
    close(ends[1]);
    return changed;
}

int host_errno_after(int before, void (*call)(void)) {
    errno = before;
    call();
    return errno;
}

// MARK: Processes

static bool succeeds(pid_t child) {
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

bool host_make_process(const char *how) {
    char *const arguments[] = {"true", NULL};
    pid_t child = 0;
    if (strcmp(how, "vfork") == 0) return succeeds(host_vfork_exec("/bin/true", "x"));
    if (strcmp(how, "spawn") == 0) {
        return posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0 && succeeds(child);
    }
    if (strcmp(how, "system") == 0) return system("true") == 0;
    if (strcmp(how, "popen") == 0) {
        FILE *stream = popen("echo x", "r");
        return stream && fgetc(stream) == 'x' && pclose(stream) == 0;
    }
    child = fork();
    if (child == 0) {
        host_call();
        execv("/bin/true", arguments);
        _exit(1);
    }
    return succeeds(child);
}

static void *call_on_thread(void *context) {
    host_call();
    return context;
}

void host_call_all(void) {
    host_call();
    host_calls_that_change_errno();
    pthread_t thread;
    if (pthread_create(&thread, NULL, call_on_thread, NULL) == 0) pthread_join(thread, NULL);
    FILE *stream = tmpfile();
    if (stream) {
        fputs("text", stream);
        fflush(stream);
        fsync(fileno(stream));
        fclose(stream);
    }
    if (!host_make_process("system") || !host_make_process("spawn")) _exit(9);
}
