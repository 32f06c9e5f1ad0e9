// Waits for other processes: for their end, or for a new one to have started its program.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "interpose.h"

INTERPOSE(wait)
INTERPOSE(wait3)
INTERPOSE(wait4)
INTERPOSE(waitpid)
INTERPOSE(waitid)
INTERPOSE(system)
INTERPOSE(popen)
INTERPOSE(pclose)
INTERPOSE(posix_spawn)
INTERPOSE(posix_spawnp)

#define KIND_OF_WAIT(options) ((options) & WNOHANG ? 0 : STALL_BLOCKING_IPC)

pid_t wait(int *status) { RETURN_CALL(wait, STALL_BLOCKING_IPC, (status)); }

pid_t wait3(int *status, int options, struct rusage *usage) {
    RETURN_CALL(wait3, KIND_OF_WAIT(options), (status, options, usage));
}

pid_t wait4(pid_t process, int *status, int options, struct rusage *usage) {
    RETURN_CALL(wait4, KIND_OF_WAIT(options), (process, status, options, usage));
}

pid_t waitpid(pid_t process, int *status, int options) {
    RETURN_CALL(waitpid, KIND_OF_WAIT(options), (process, status, options));
}

int waitid(idtype_t kind_of_id, id_t id, siginfo_t *info, int options) {
    RETURN_CALL(waitid, KIND_OF_WAIT(options), (kind_of_id, id, info, options));
}

// Without a command it only says that there is a shell.
int system(const char *command) { RETURN_CALL(system, command ? STALL_BLOCKING_IPC : 0, (command)); }

FILE *popen(const char *command, const char *mode) { RETURN_CALL(popen, STALL_BLOCKING_IPC, (command, mode)); }

int pclose(FILE *stream) { RETURN_CALL(pclose, STALL_BLOCKING_IPC, (stream)); }

int posix_spawn(
    pid_t *process, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
    char *const arguments[], char *const environment[]) {
    RETURN_CALL(posix_spawn, STALL_BLOCKING_IPC, (process, path, actions, attributes, arguments, environment));
}

int posix_spawnp(
    pid_t *process, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
    char *const arguments[], char *const environment[]) {
    RETURN_CALL(posix_spawnp, STALL_BLOCKING_IPC, (process, file, actions, attributes, arguments, environment));
}
#endif
