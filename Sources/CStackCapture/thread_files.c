#define _GNU_SOURCE
#include "thread_files.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stall_descriptors.h"
#include "stall_task.h"

enum { CLOCK_PAUSE_NS = 50000 };

int stall_thread_open(int32_t id, const char *name) { return stall_task_open(id, name); }

void stall_thread_close(int file) { stall_descriptor_close(file); }

static int read_text(int file, char *text, size_t capacity) {
    if (file < 0) return errno;
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
    int file = stall_task_open(thread, "stat");
    if (file < 0) return open_error(thread, errno);
    int error = read_text(file, text, sizeof text);
    close(file);
    if (error != 0) return error;
    const char *field = strrchr(text, ')');  // the name before it may hold anything
    for (int number = 2; field && number < 22; number++) field = strchr(field + 1, ' ');
    *ticks = field ? strtoull(field, NULL, 10) : 0;
    return 0;
}

// The descriptor of a file that is opened when it is first asked for; -1 without one. Two samplers may ask at once.
static int kept_file(_Atomic(int) *file, pid_t thread, const char *name) {
    int kept = atomic_load(file);
    if (kept >= 0) return kept;
    const int opened = stall_task_open(thread, name);
    if (opened < 0 || atomic_compare_exchange_strong(file, &kept, opened)) return opened;
    close(opened);
    return kept;
}

// What may have passed at the next look; every other refusal stands.
static bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

int stall_thread_files_open(thread_files *files, const stall_thread *thread, const char **failed_call) {
    uint64_t ticks;
    *failed_call = "open /proc/self/task";
    int error = stall_thread_start_ticks(thread->id, &ticks);
    if (error == ESRCH || is_shortage(error)) return error;
    if (error == 0 && thread->start_ticks != 0 && ticks != thread->start_ticks) return ESRCH;  // another one has its id
    const int system_call = stall_task_open(thread->id, "syscall");
    if (system_call < 0) {
        error = errno;
        if (is_shortage(error)) return error;
        if (open_error(thread->id, error) == ESRCH) return ESRCH;
    }
    *files = (thread_files){thread->id, thread->start_ticks, system_call, error, -1, -1, -1};
    return 0;
}

void stall_thread_files_close(thread_files *files) {
    const int all[] = {
        files->system_call, atomic_load(&files->schedule), atomic_load(&files->status), atomic_load(&files->state)};
    if (files->thread == 0) return;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stall_descriptor_close(all[i]);
    }
    files->thread = 0;
}

// "12 (name) S ..."; the name may hold anything.
static int read_state(thread_files *files, char *state) {
    char text[512];
    int error = read_text(kept_file(&files->state, files->thread, "stat"), text, sizeof text);
    if (error != 0) return error;
    const char *field = strrchr(text, ')');
    if (!field || field[1] != ' ') return ENODATA;
    *state = field[2];
    return 0;
}

// Where /proc is not there: a thread whose CPU clock goes on runs.
static int is_clock_running(pid_t thread, bool *is_running) {
    const struct timespec pause = {.tv_nsec = CLOCK_PAUSE_NS};
    uint64_t before, after;
    int error = stall_thread_cpu_ns(thread, &before);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    if (error == 0) error = stall_thread_cpu_ns(thread, &after);
    *is_running = error == 0 && after - before >= CLOCK_PAUSE_NS / 2;
    return error;
}

// "running", "<number> <six arguments> <SP> <PC>", or "-1 <SP> <PC>" when blocked outside of a system call.
int stall_thread_files_position(thread_files *files, thread_position *position) {
    char text[256], state;
    *position = (thread_position){.system_call = -1};
    if (files->system_call < 0) {
        int error = read_state(files, &state);
        const bool is_state_known = error == 0;
        if (error == 0) position->is_running = state == 'R';
        else if (error != ESRCH) error = is_clock_running(files->thread, &position->is_running);
        if (error != 0) return error;
        if (position->is_running) return 0;
        return is_state_known ? ENODATA : EAGAIN;
    }
    int error = read_text(files->system_call, text, sizeof text);
    if (error != 0) return error;
    position->is_running = text[0] == 'r';
    if (position->is_running) return 0;
    char *end;
    position->system_call = strtol(text, &end, 10);
    for (int i = 0; position->system_call >= 0 && i < 6; i++) position->arguments[i] = strtoull(end, &end, 16);
    position->stack_pointer = strtoull(end, &end, 16);
    position->program_counter = strtoull(end, &end, 16);
    return position->stack_pointer != 0 && position->program_counter != 0 ? 0 : ENODATA;
}

static bool read_field(const char *text, const char *label, int base, uint64_t *value) {
    const char *field = strstr(text, label);
    if (field) *value = strtoull(field + strlen(label), NULL, base);
    return field != NULL;
}

int stall_thread_files_status(thread_files *files, thread_status *status) {
    char text[4096];
    int error = read_text(kept_file(&files->status, files->thread, "status"), text, sizeof text);
    if (error != 0) return error;
    const bool is_whole = read_field(text, "\nvoluntary_ctxt_switches:", 10, &status->waits)
        && read_field(text, "\nSigBlk:", 16, &status->blocked);
    return is_whole ? 0 : ENODATA;
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
int stall_thread_files_activity(thread_files *files, thread_activity *activity) {
    char text[96];
    *activity = (thread_activity){0};
    const int schedule = kept_file(&files->schedule, files->thread, "schedstat");
    if (schedule >= 0) {
        int error = read_text(schedule, text, sizeof text);
        if (error != 0) return error;
        char *end;
        activity->cpu_ns = strtoull(text, &end, 10);
        strtoull(end, &end, 10);
        activity->slices = strtoull(end, &end, 10);
        if (activity->slices != 0) return 0;
    }
    return stall_thread_cpu_ns(files->thread, &activity->cpu_ns);
}
