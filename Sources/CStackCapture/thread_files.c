#define _GNU_SOURCE
#include "thread_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// "/proc/self/task/<thread>/<name>", without stdio: it may lock.
static int open_file(pid_t thread, const char *name) {
    char path[64] = "/proc/self/task/", digits[12];
    size_t length = strlen(path), count = 0;
    for (uint32_t rest = (uint32_t)thread; count == 0 || rest > 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
    while (count > 0) path[length++] = digits[--count];
    path[length++] = '/';
    strcpy(path + length, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int stall_thread_open(int32_t id, const char *name) { return open_file(id, name); }

static int read_text(int file, char *text, size_t capacity) {
    ssize_t count = pread(file, text, capacity - 1, 0);
    if (count < 0) return errno;
    text[count] = 0;
    return 0;
}

// A missing file means a thread that ended, or a /proc that cannot be read; the kernel tells which.
static int open_error(pid_t thread, int error) {
    if (error == ENOENT && syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH) return ESRCH;
    return error;
}

int stall_thread_start_ticks(pid_t thread, uint64_t *ticks) {
    char text[1024];
    int file = open_file(thread, "stat");
    if (file < 0) return open_error(thread, errno);
    int error = read_text(file, text, sizeof text);
    close(file);
    if (error != 0) return error;
    const char *field = strrchr(text, ')');  // the name before it may hold anything
    for (int number = 2; field && number < 22; number++) field = strchr(field + 1, ' ');
    *ticks = field ? strtoull(field, NULL, 10) : 0;
    return 0;
}

int stall_thread_files_open(thread_files *files, const stall_thread *thread, const char **failed_call) {
    uint64_t ticks;
    *failed_call = "open /proc/self/task";
    int error = stall_thread_start_ticks(thread->id, &ticks);
    if (error != 0) return error;
    if (thread->start_ticks != 0 && ticks != thread->start_ticks) return ESRCH;  // another thread has its id
    int system_call = open_file(thread->id, "syscall");
    if (system_call < 0) return open_error(thread->id, errno);
    *files = (thread_files){
        thread->id, thread->start_ticks, system_call, open_file(thread->id, "schedstat"), open_file(thread->id, "status")};
    return 0;
}

void stall_thread_files_close(thread_files *files) {
    if (files->thread == 0) return;
    close(files->system_call);
    if (files->schedule >= 0) close(files->schedule);
    if (files->status >= 0) close(files->status);
    files->thread = 0;
}

// "running", "<number> <six arguments> <SP> <PC>", or "-1 <SP> <PC>" when blocked outside of a system call.
int stall_thread_files_position(const thread_files *files, thread_position *position) {
    char text[256];
    int error = read_text(files->system_call, text, sizeof text);
    if (error != 0) return error;
    *position = (thread_position){.is_running = text[0] == 'r'};
    if (position->is_running) return 0;
    char *end;
    long number = strtol(text, &end, 10);
    for (int argument = 0; number >= 0 && argument < 6; argument++) strtoull(end, &end, 16);
    position->stack_pointer = strtoull(end, &end, 16);
    position->program_counter = strtoull(end, &end, 16);
    return position->stack_pointer != 0 && position->program_counter != 0 ? 0 : ENODATA;
}

int stall_thread_files_waits(const thread_files *files, uint64_t *waits) {
    static const char label[] = "\nvoluntary_ctxt_switches:";
    char text[4096];
    int error = read_text(files->status, text, sizeof text);
    if (error != 0) return error;
    const char *field = strstr(text, label);
    if (!field) return ENODATA;
    *waits = strtoull(field + sizeof label - 1, NULL, 10);
    return 0;
}

int stall_thread_cpu_ns(pid_t thread, uint64_t *used_ns) {
    struct timespec used;
    const clockid_t clock = (clockid_t)(~(uint32_t)thread << 3 | 6);  // the kernel's id of a thread's CPU clock
    if (clock_gettime(clock, &used) != 0) return errno == EINVAL ? ESRCH : errno;
    *used_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    return 0;
}

// schedstat: CPU time, time in the run queue, number of time slices. Where the kernel does not count, the
// thread's CPU clock alone has to do.
int stall_thread_files_activity(const thread_files *files, thread_activity *activity) {
    char text[96];
    *activity = (thread_activity){0};
    if (files->schedule >= 0) {
        int error = read_text(files->schedule, text, sizeof text);
        if (error != 0) return error;
        char *end;
        activity->cpu_ns = strtoull(text, &end, 10);
        strtoull(end, &end, 10);
        activity->slices = strtoull(end, &end, 10);
        if (activity->slices != 0) return 0;
    }
    return stall_thread_cpu_ns(files->thread, &activity->cpu_ns);
}
