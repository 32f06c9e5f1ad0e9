#define _GNU_SOURCE
#include "stall_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stall_clock.h"
#include "stall_numbers.h"
#include "stall_descriptors.h"

static int open_number(int32_t number, const char *name) {
    char path[64] = "/proc/self/task/", digits[12];
    size_t length = strlen(path), count = 0;
    for (uint32_t rest = (uint32_t)number; count == 0 || rest > 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    while (count > 0) path[length++] = digits[--count];
    path[length++] = '/';
    strcpy(path + length, name);
    return stall_descriptor_open_to_read(path, 0);
}

// "PROCESS/task/THREAD" of the calling thread.
static bool read_own(int32_t *process, int32_t *thread) {
    char link[64];
    const ssize_t length = readlink("/proc/thread-self", link, sizeof link - 1);
    if (length <= 0) return false;
    link[length] = 0;
    const char *last = strrchr(link, '/');
    *process = (int32_t)strtol(link, NULL, 10);
    *thread = last ? (int32_t)strtol(last + 1, NULL, 10) : 0;
    return *process > 0 && *thread > 0;
}

// Determined once per process: process << 32 | its number in /proc. A child may be in another namespace than its
// parent.
static int32_t number_in_proc(void) {
    static uint64_t known;
    const pid_t own = getpid();
    const uint64_t before = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if ((pid_t)(before >> 32) == own) return (int32_t)before;
    int32_t process, thread;
    // The process may have the same number in both by chance, but its threads do not.
    if (!read_own(&process, &thread)) process = own;
    else if (process == own && thread != stall_gettid()) process = -1;
    __atomic_store_n(&known, (uint64_t)(uint32_t)own << 32 | (uint32_t)process, __ATOMIC_RELAXED);
    return process;
}

static bool has_own_numbers(void) { return number_in_proc() == getpid(); }

int32_t stall_task_process(void) {
    const int32_t number = number_in_proc();
    return number > 0 ? number : getpid();
}

int32_t stall_task_thread(int32_t number) {
    if (has_own_numbers()) return number;
    char text[1024];
    const int file = open_number(number, "status");
    if (file < 0) return 0;
    const ssize_t count = read(file, text, sizeof text - 1);
    stall_descriptor_end(file);
    text[count > 0 ? count : 0] = 0;
    // "NSpid:\t4711\t12\n": from the namespace of /proc to the thread's own.
    char *field = strstr(text, "\nNSpid:");
    if (!field) return 0;
    long inner = 0;
    for (field += 7; *field == '\t' || *field == ' ';) inner = strtol(field, &field, 10);
    return (int32_t)inner;
}

// A cache of numbers: thread << 32 | number. Entries may be outdated and are checked.
enum { CACHE_SIZE = 256 };
static uint64_t cached[CACHE_SIZE];

static int32_t search(int32_t thread) {
    stall_numbers threads;
    if (!stall_numbers_open(&threads, "/proc/self/task")) return 0;
    int32_t found = 0;
    errno = ENOENT;
    for (int32_t number; found == 0 && (number = stall_numbers_next(&threads)) > 0;) {
        const int32_t inner = stall_task_thread(number);
        if (inner == 0) continue;
        __atomic_store_n(
            &cached[inner % CACHE_SIZE], (uint64_t)(uint32_t)inner << 32 | (uint32_t)number, __ATOMIC_RELAXED);
        if (inner == thread) found = number;
    }
    const int error = found == 0 ? errno : 0;
    stall_numbers_close(&threads);
    errno = error;
    return found;
}

static int32_t find_number(int32_t thread) {
    int32_t process, own;
    if (thread == stall_gettid() && read_own(&process, &own)) return own;
    const uint64_t known = __atomic_load_n(&cached[(uint32_t)thread % CACHE_SIZE], __ATOMIC_RELAXED);
    if ((int32_t)(known >> 32) == thread && stall_task_thread((int32_t)known) == thread) return (int32_t)known;
    return search(thread);
}

bool stall_task_exists(int32_t thread) { return thread > 0 && syscall(SYS_tgkill, getpid(), thread, 0) == 0; }

int stall_task_open(int32_t thread, const char *name) {
    if (has_own_numbers()) return open_number(thread, name);
    const int32_t number = find_number(thread);
    return number > 0 ? open_number(number, name) : -1;
}

// No system has that many.
#define SYSTEM_CALL_LIMIT 0xffffff

int stall_task_file_shows_wait(int descriptor) {
    static const long waits[] = {
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
        SYS_epoll_pwait, SYS_io_uring_enter, 441 /* epoll_pwait2 */};
    char text[32];
    const ssize_t count = pread(descriptor, text, sizeof text - 1, 0);
    if (count <= 0) return -1;
    text[count] = 0;
    if (strcmp(text, "running\n") == 0) return 0;
    // A number and a space, -1 in no system call: nothing else is the file's, whose descriptor may be another's by now.
    const bool isOutside = text[0] == '-';
    const char *const digits = text + isOutside;
    long number = 0;
    size_t length = 0;
    for (; digits[length] >= '0' && digits[length] <= '9'; length++) {
        if (number > SYSTEM_CALL_LIMIT) return -1;
        number = number * 10 + (digits[length] - '0');
    }
    if (length == 0 || digits[length] != ' ' || number > SYSTEM_CALL_LIMIT) return -1;
    if (isOutside) return number == 1 ? 0 : -1;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        if (waits[i] == number) return 1;
    }
    return 0;
}

int stall_task_waits_for_events(int32_t thread) {
    const int file = stall_task_open(thread, "syscall");
    if (file < 0) return -1;
    const int result = stall_task_file_shows_wait(file);
    stall_descriptor_end(file);
    return result;
}
