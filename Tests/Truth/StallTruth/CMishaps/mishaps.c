#define _GNU_SOURCE
#include "mishaps.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t wall_shift_ns;

/// Interposes the C library's function in the whole program.
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*_Atomic real)(clockid_t, struct timespec *);
    int (*call)(clockid_t, struct timespec *) = atomic_load_explicit(&real, memory_order_relaxed);
    if (!call) {
        call = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        atomic_store(&real, call);
    }
    int result = call(clock, time);
    int64_t shift = clock == CLOCK_REALTIME ? atomic_load(&wall_shift_ns) : 0;
    if (result == 0 && shift != 0) {
        int64_t total = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + shift;
        time->tv_sec = total / 1000000000;
        time->tv_nsec = total % 1000000000;
    }
    return result;
}

void mishap_shift_wall_clock(int64_t nanoseconds) { atomic_store(&wall_shift_ns, nanoseconds); }

uint64_t mishap_thread_cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void sleep_ms(uint32_t milliseconds) {
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {}
}

pid_t mishap_fork(uint32_t child_ms) {
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(child_ms);
        _exit(0);
    }
    return child;
}

#define THREADS 1024

/// Lists the threads of a process.
static size_t threads_of(pid_t process, pid_t *threads) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *directory = opendir(path);
    size_t count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (entry->d_name[0] != '.' && count < THREADS) threads[count++] = atoi(entry->d_name);
    if (directory) closedir(directory);
    return count;
}

static bool stop(pid_t thread) {
    int status;
    return ptrace(PTRACE_INTERRUPT, thread, 0, 0) == 0 && waitpid(thread, &status, __WALL) == thread;
}

bool mishap_debug_all(pid_t process, uint32_t stop_ms) {
    pid_t threads[THREADS];
    size_t count = threads_of(process, threads), stopped = 0;
    for (size_t i = 0; i < count; i++) {
        // A thread may have ended since it was listed.
        if (ptrace(PTRACE_SEIZE, threads[i], 0, 0) != 0) threads[i] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (threads[i] && stop(threads[i])) stopped++;
    }
    if (stopped > 0) sleep_ms(stop_ms);
    for (size_t i = 0; i < count; i++) {
        if (threads[i]) ptrace(PTRACE_DETACH, threads[i], 0, 0);
    }
    return stopped > 0;
}

bool mishap_debug_thread(pid_t thread, uint32_t count, uint32_t stop_ms, uint32_t run_ms) {
    if (ptrace(PTRACE_SEIZE, thread, 0, 0) != 0) return false;
    for (uint32_t i = 0; i < count && stop(thread); i++) {
        sleep_ms(stop_ms);
        ptrace(PTRACE_CONT, thread, 0, 0);
        sleep_ms(run_ms);
    }
    if (stop(thread)) ptrace(PTRACE_DETACH, thread, 0, 0);
    return true;
}
