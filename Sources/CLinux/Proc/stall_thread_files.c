#define _GNU_SOURCE
#include "stall_thread_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "stall_descriptors.h"
#include "stall_task.h"

static const char *const names[] = {"syscall", "stat", "status", "schedstat", "wchan"};

static int read_text(int number, char *text, size_t capacity) {
    const ssize_t count = pread(number, text, capacity - 1, 0);
    if (count < 0) return errno;
    text[count] = 0;
    return 0;
}

// A missing file means an ended thread or an unreadable /proc; the kernel distinguishes them.
static int open_error(int32_t thread, int error) {
    return error == ENOENT && !stall_task_exists(thread) ? ESRCH : error;
}

// Errors that may be over at the next poll; all others are permanent.
static bool is_out_of_resources(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// Descriptors are the app's to use. Two files of a watched thread are kept: `syscall`, which must be opened before a
// server drops its privileges, and `schedstat`, which every poll reads, and twice around the copy of a stack. All
// watched threads together keep at most an eighth of what the process may have, and at most 128; half of that is for
// `syscall`. Every other file is opened for each reading.
enum { MOST_KEPT = 128, SHARE = 8 };
static int32_t kept_count;

static bool may_keep(const stall_thread_files *files, stall_thread_file file) {
    struct rlimit limit;
    int32_t most = MOST_KEPT;
    if (files->keeps_none || (file != STALL_THREAD_SYSCALL && file != STALL_THREAD_SCHEDSTAT)) return false;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / SHARE < MOST_KEPT) most = (int32_t)limit.rlim_cur / SHARE;
    if (file != STALL_THREAD_SYSCALL) most /= 2;
    if (__atomic_add_fetch(&kept_count, 1, __ATOMIC_RELAXED) <= most) return true;
    __atomic_sub_fetch(&kept_count, 1, __ATOMIC_RELAXED);
    return false;
}

// A file that cannot be marked as the agent's own could later neither be read nor closed.
static bool keep(const stall_thread_files *files, stall_thread_file file, int opened) {
    if (!may_keep(files, file)) return false;
    if (stall_descriptor_is_own(opened)) return true;
    __atomic_sub_fetch(&kept_count, 1, __ATOMIC_RELAXED);
    return false;
}

static void close_kept(int number) {
    if (number < 0) return;
    stall_descriptor_close(number);
    __atomic_sub_fetch(&kept_count, 1, __ATOMIC_RELAXED);
}

// The number of a file that is kept; -1 if there is none. The app may have closed it and have something else there, of
// which a reading could wait.
static int32_t kept_file(stall_thread_files *files, stall_thread_file file) {
    int32_t kept = __atomic_load_n(&files->numbers[file], __ATOMIC_ACQUIRE);
    if (kept < 0 || stall_descriptor_is_own(kept)) return kept;
    if (__atomic_compare_exchange_n(&files->numbers[file], &kept, -1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        __atomic_sub_fetch(&kept_count, 1, __ATOMIC_RELAXED);
    return -1;
}

// The id may be another thread's by now. A kept file is of the thread itself and fails with ESRCH after its end.
static bool is_same_thread(stall_thread_files *files) {
    uint64_t ticks;
    char byte;
    const int32_t kept = kept_file(files, STALL_THREAD_SYSCALL);
    if (kept >= 0 && pread(kept, &byte, 1, 0) == 1) return true;
    if (kept >= 0 && errno == ESRCH) return false;
    return files->start_ticks == 0
        || (stall_thread_start_ticks(files->thread, &ticks) == 0 && ticks == files->start_ticks);
}

// Keeps the file, or reads it once and closes it.
static int read_opened(
    stall_thread_files *files, stall_thread_file file, int opened, char *text, size_t capacity) {
    int32_t kept = -1;
    if (keep(files, file, opened)) {
        if (__atomic_compare_exchange_n(
                &files->numbers[file], &kept, opened, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return read_text(opened, text, capacity);
        close_kept(opened);
        return read_text(kept, text, capacity);
    }
    const int error = read_text(opened, text, capacity);
    stall_descriptor_end(opened);
    // Checked afterwards: if the thread still lives, the file was its own.
    return error == 0 && !is_same_thread(files) ? ESRCH : error;
}

static int read_file(stall_thread_files *files, stall_thread_file file, char *text, size_t capacity) {
    const int32_t kept = kept_file(files, file);
    if (kept >= 0) return read_text(kept, text, capacity);
    // Only attempted at the registration, with its privileges; then it is readable, but was not kept.
    if (file == STALL_THREAD_SYSCALL && files->syscall_error != 0) return files->syscall_error;
    const int opened = stall_task_open(files->thread, names[file]);
    return opened < 0 ? errno : read_opened(files, file, opened, text, capacity);
}

int stall_thread_files_read(stall_thread_files *files, stall_thread_file file, char *text, size_t capacity) {
    return read_file(files->shared ? files->shared : files, file, text, capacity);
}

void stall_thread_files_begin(stall_thread_files *files, int32_t thread) {
    *files = (stall_thread_files){.thread = thread, .syscall_error = ENOENT, .numbers = {-1, -1, -1, -1, -1}};
}

void stall_thread_files_visit(stall_thread_files *files, int32_t thread) {
    stall_thread_files_begin(files, thread);
    files->keeps_none = true;
}

void stall_thread_files_share(stall_thread_files *files, stall_thread_files *other, int32_t thread) {
    stall_thread_files_begin(files, thread);
    files->shared = other;
    if (other) stall_thread_files_retain(other);
}

int stall_thread_files_open(stall_thread_files *files, int32_t thread, uint64_t start_ticks) {
    uint64_t ticks = 0;
    stall_thread_files_begin(files, 0);
    int error = stall_thread_start_ticks(thread, &ticks);
    if (error == ESRCH || is_out_of_resources(error)) return error;
    if (error == 0 && start_ticks != 0 && ticks != start_ticks) return ESRCH;  // another thread has its id
    error = 0;
    const int number = stall_task_open(thread, names[STALL_THREAD_SYSCALL]);
    if (number < 0) {
        error = errno;
        if (is_out_of_resources(error)) return error;
        if (open_error(thread, error) == ESRCH) return ESRCH;
    }
    if (number >= 0 && keep(files, STALL_THREAD_SYSCALL, number)) {
        files->numbers[STALL_THREAD_SYSCALL] = number;
    } else if (number >= 0) {
        stall_descriptor_end(number);
    }
    files->syscall_error = error;
    files->start_ticks = ticks;
    files->thread = thread;
    return 0;
}

void stall_thread_files_close(stall_thread_files *files) {
    if (files->thread == 0) return;
    if (files->shared) stall_thread_files_release(files->shared);
    for (int file = 0; file < STALL_THREAD_FILE_COUNT; file++) close_kept(files->numbers[file]);
    files->thread = 0;
}

stall_thread_files *stall_thread_files_create(int32_t thread, uint64_t start_ticks) {
    stall_thread_files *files = malloc(sizeof *files);
    if (!files) return NULL;
    const int error = stall_thread_files_open(files, thread, start_ticks);
    if (error != 0) {
        free(files);
        errno = error;
        return NULL;
    }
    files->user_count = 1;
    return files;
}

void stall_thread_files_retain(stall_thread_files *files) {
    __atomic_fetch_add(&files->user_count, 1, __ATOMIC_RELAXED);
}

void stall_thread_files_release(stall_thread_files *files) {
    if (__atomic_sub_fetch(&files->user_count, 1, __ATOMIC_ACQ_REL) > 0) return;
    stall_thread_files_close(files);
    free(files);
}

// "running", "<number> <six arguments> <SP> <PC>", or "-1 <SP> <PC>" when blocked outside of a system call.
int stall_thread_read_position(stall_thread_files *files, stall_thread_position *position) {
    char text[256];
    *position = (stall_thread_position){.system_call = -1};
    const int error = stall_thread_files_read(files, STALL_THREAD_SYSCALL, text, sizeof text);
    if (error != 0) return error;
    position->is_running = text[0] == 'r';
    if (position->is_running) return 0;
    char *end;
    position->system_call = strtol(text, &end, 10);
    if (end == text) return ENODATA;
    for (int i = 0; position->system_call >= 0 && i < 6; i++) position->arguments[i] = strtoull(end, &end, 16);
    position->stack_pointer = strtoull(end, &end, 16);
    position->program_counter = strtoull(end, &end, 16);
    return 0;
}

// "12 (name) S ..."; the name may contain anything. Fields as in proc(5).
static int parse_state(const char *text, stall_thread_state *state) {
    const char *field = strrchr(text, ')');
    if (!field || field[1] != ' ' || field[2] == 0) return ENODATA;
    *state = (stall_thread_state){.letter = (uint8_t)field[2]};
    char *rest = (char *)field + 3;
    for (int number = 4; number <= 22; number++) {
        const uint64_t value = strtoull(rest, &rest, 10);
        if (number == 10) state->minor_faults = value;
        if (number == 12) state->major_faults = value;
        if (number == 22) state->start_ticks = value;
    }
    return 0;
}

int stall_thread_read_state(stall_thread_files *files, stall_thread_state *state) {
    char text[1024];
    const int error = stall_thread_files_read(files, STALL_THREAD_STAT, text, sizeof text);
    return error != 0 ? error : parse_state(text, state);
}

static bool read_field(const char *text, const char *label, int base, uint64_t *value) {
    const char *field = strstr(text, label);
    if (field) *value = strtoull(field + strlen(label), NULL, base);
    return field != NULL;
}

int stall_thread_read_status(stall_thread_files *files, stall_thread_status *status) {
    char text[4096];
    uint64_t tracer = 0;
    *status = (stall_thread_status){0};
    const int error = stall_thread_files_read(files, STALL_THREAD_STATUS, text, sizeof text);
    if (error != 0) return error;
    read_field(text, "\nTracerPid:", 10, &tracer);
    read_field(text, "\nnonvoluntary_ctxt_switches:", 10, &status->preemptions);
    const bool is_whole = read_field(text, "\nSigBlk:", 16, &status->blocked)
        && read_field(text, "\nvoluntary_ctxt_switches:", 10, &status->waits);
    status->tracer = (int32_t)tracer;
    return is_whole ? 0 : ENODATA;
}

int stall_thread_read_schedule(stall_thread_files *files, stall_thread_schedule *schedule) {
    char text[96], *end;
    *schedule = (stall_thread_schedule){0};
    const int error = stall_thread_files_read(files, STALL_THREAD_SCHEDSTAT, text, sizeof text);
    if (error != 0) return error;
    schedule->cpu_ns = strtoull(text, &end, 10);
    schedule->run_delay_ns = strtoull(end, &end, 10);
    schedule->slices = strtoull(end, &end, 10);
    return 0;
}

int stall_thread_cpu_ns(int32_t thread, uint64_t *used_ns) {
    struct timespec used;
    const clockid_t clock = (clockid_t)(~(uint32_t)thread << 3 | 6);  // the kernel's id of a thread's CPU clock
    if (clock_gettime(clock, &used) != 0) return errno == EINVAL ? ESRCH : errno;
    *used_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    return 0;
}

int stall_thread_start_ticks(int32_t thread, uint64_t *ticks) {
    char text[1024];
    stall_thread_state state;
    const int number = stall_task_open(thread, names[STALL_THREAD_STAT]);
    if (number < 0) return open_error(thread, errno);
    const int error = read_text(number, text, sizeof text);
    stall_descriptor_end(number);
    if (error != 0) return error;
    const bool is_known = parse_state(text, &state) == 0;
    *ticks = is_known ? state.start_ticks : 0;
    // The first thread of a process is listed until the others have ended, too.
    return is_known && (state.letter == 'Z' || state.letter == 'X') ? ESRCH : 0;
}

int stall_process_read_state(int32_t process, stall_thread_state *state) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    const int number = stall_descriptor_open_to_read(path, 0);
    if (number < 0) return errno == ENOENT ? ESRCH : errno;
    const int error = read_text(number, text, sizeof text);
    stall_descriptor_end(number);
    return error != 0 ? error : parse_state(text, state);
}
