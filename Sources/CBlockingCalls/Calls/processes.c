// Waits for other processes: for their end, or for a new one to have started its program.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <features.h>
#ifdef __GLIBC__
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../descriptors.h"
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

// A wait for a process that has ended already, or for none, returns at once: after a pidfd or SIGCHLD announced the end,
// programs reap so.
static stall_blocking_kind kind_of_waiting(idtype_t kind_of_id, id_t id, int options) {
    enum { PIDFD = 3 };  // P_PIDFD, which glibc has since 2.36
    if (options & WNOHANG || (kind_of_id == PIDFD && blocking_is_nonblocking((int)id))) return 0;
    siginfo_t found = {0};
    const long result = stall_system_call(
        SYS_waitid, kind_of_id, id, (uintptr_t)&found, (uint64_t)(options | WNOHANG | WNOWAIT), 0, 0);
    return result == 0 && found.si_pid == 0 ? STALL_BLOCKING_IPC : 0;
}

static stall_blocking_kind kind_of_process(pid_t process, int options) {
    const idtype_t kind = process > 0 ? P_PID : process == -1 ? P_ALL : P_PGID;
    const id_t group = process == 0 ? (id_t)getpgrp() : -(id_t)process;
    return kind_of_waiting(kind, process > 0 ? (id_t)process : group, options | WEXITED);
}

pid_t wait(int *status) { RETURN_CALL(wait, kind_of_process(-1, 0), (status)); }

pid_t wait3(int *status, int options, struct rusage *usage) {
    RETURN_CALL(wait3, kind_of_process(-1, options), (status, options, usage));
}

pid_t wait4(pid_t process, int *status, int options, struct rusage *usage) {
    RETURN_CALL(wait4, kind_of_process(process, options), (process, status, options, usage));
}

pid_t waitpid(pid_t process, int *status, int options) {
    RETURN_CALL(waitpid, kind_of_process(process, options), (process, status, options));
}

int waitid(idtype_t kind_of_id, id_t id, siginfo_t *info, int options) {
    RETURN_CALL(waitid, kind_of_waiting(kind_of_id, id, options), (kind_of_id, id, info, options));
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
