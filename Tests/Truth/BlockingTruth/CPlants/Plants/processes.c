// Plants that start processes and wait for their end.
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planting.h"

extern char **environ;
static pid_t child;
static FILE *pipe_of_child;

static void start_child(void) {
    child = fork();
    NEED(child >= 0);
    if (child == 0) alarm(10);  // should this program end before
    while (child == 0) pause();
}
static void end_child(void) { kill(child, SIGKILL); }
static void hold_child(void) { plants_hold(start_child, end_child); }

static pid_t spawned;

static void end_spawned(void) {
    if (spawned > 0) waitpid(spawned, NULL, 0);
    spawned = 0;
}

static void close_child(void) {
    if (pipe_of_child) pclose(pipe_of_child);
    pipe_of_child = NULL;
}

static void open_child(void) {
    close_child();
    NEED(pipe_of_child = popen("exit 0", "re"));
}

PLANT(waitpid) {
    plants_wait_begins();
    NEED(waitpid(child, NULL, 0) == child);
}
PLANT(wait4) {
    plants_wait_begins();
    NEED(wait4(child, NULL, 0, NULL) == child);
}
PLANT(waitid) {
    plants_wait_begins();
    NEED(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED) == 0);
}
PLANT(posix_spawn) {
    char *arguments[] = {"true", NULL};
    NEED(posix_spawn(&spawned, "/bin/true", NULL, NULL, arguments, environ) == 0);
}
PLANT(posix_spawnp) {
    char *arguments[] = {"true", NULL};
    NEED(posix_spawnp(&spawned, "true", NULL, NULL, arguments, environ) == 0);
}
PLANT(system) { NEED(system("exit 0") == 0); }
PLANT(popen) { NEED(pipe_of_child = popen("exit 0", "re")); }
PLANT(pclose) {
    NEED(pclose(pipe_of_child) == 0);
    pipe_of_child = NULL;
}

#define IPC(name, prepare) {#name, STALL_BLOCKING_IPC, prepare, plant_##name}
static const plant plants[] = {
    IPC(waitpid, hold_child),
    IPC(wait4, hold_child),
    IPC(waitid, hold_child),
    IPC(system, NULL),
    IPC(posix_spawn, end_spawned),
    IPC(posix_spawnp, end_spawned),
    IPC(popen, close_child),
    IPC(pclose, open_child),
};
const plant_family process_family = {plants, COUNT_OF(plants)};
