// The scheduling of whoever starts the agent, and a second user of Swift's hook for jobs.
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host_safety.h"

bool host_pin(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

bool host_schedule(const char *class, int number) {
    const struct sched_param parameters = {number}, none = {0};
    if (strcmp(class, "fifo") == 0) return sched_setscheduler(0, SCHED_FIFO, &parameters) == 0;
    if (strcmp(class, "rr") == 0) return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameters) == 0;
    if (strcmp(class, "batch") == 0) return sched_setscheduler(0, SCHED_BATCH, &none) == 0;
    if (strcmp(class, "idle") == 0) return sched_setscheduler(0, SCHED_IDLE, &none) == 0;
    if (strcmp(class, "other") == 0) return sched_setscheduler(0, SCHED_OTHER, &none) == 0;
    return setpriority(PRIO_PROCESS, 0, number) == 0;
}

// Of one name with the agent's: -fsanitize=function compares the types of functions by it.
typedef struct swift_job host_job;
typedef __attribute__((swiftcall)) void (*enqueue)(host_job *);
typedef __attribute__((swiftcall)) void (*hook)(host_job *, enqueue);
extern hook swift_task_enqueueGlobal_hook;
static hook before;
static bool calls_earlier;

static __attribute__((swiftcall)) void pass(host_job *job, enqueue original) {
    if (calls_earlier && before) return before(job, original);
    original(job);
}

void host_hook_jobs(bool chains) {
    calls_earlier = chains;
    before = swift_task_enqueueGlobal_hook;
    swift_task_enqueueGlobal_hook = pass;
}

void host_clear_jobs_hook(void) { swift_task_enqueueGlobal_hook = NULL; }
